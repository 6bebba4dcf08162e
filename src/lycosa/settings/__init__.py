"""The settings of a crawl: one schema, merged from defaults, a TOML file, the environment and the command line.

`CrawlSettings` is the frozen result that the engine reads; `merge` makes it of several sources, the last one wins;
`to_toml` writes it as the `lycosa.toml` that a collection keeps. Everything wrong is a `SettingsError` of one sentence.
"""

from lycosa.settings.schema import CrawlSettings
from lycosa.settings.sources import Source, from_environment, kept_in, merge, read_file
from lycosa.settings.toml import to_toml

__all__ = ["CrawlSettings", "Source", "from_environment", "kept_in", "merge", "read_file", "to_toml"]
