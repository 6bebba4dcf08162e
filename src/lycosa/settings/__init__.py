"""The settings of a crawl: one schema, merged from defaults, a TOML file, the environment and the command line.

`CrawlSettings` is the frozen result that the engine reads; `merge` makes it of several sources, the last one wins;
`to_toml` writes it as the `lycosa.toml` that a collection keeps. Everything wrong is a `SettingsError` of one sentence.
"""

from lycosa.settings.schema import CrawlSettings
from lycosa.settings.sources import SettingsSource, from_environment, merge, read_file, settings_of_folder, to_toml
from lycosa.settings.values import InvalidValue, read_group, read_letter, read_place, seed

__all__ = [
    "CrawlSettings",
    "InvalidValue",
    "SettingsSource",
    "from_environment",
    "merge",
    "read_file",
    "read_group",
    "read_letter",
    "read_place",
    "seed",
    "settings_of_folder",
    "to_toml",
]
