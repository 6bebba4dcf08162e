"""What can be set about a crawl: one schema for options, TOML files, environment variables and docs/settings.md.

`CrawlSettings` is the frozen result that all rooms above read; `SETTINGS` says what is known of each setting; `merge`
makes a `CrawlSettings` of several sources, of which the last one wins; `to_toml` writes it as the `lycosa.toml` that a
collection keeps. Whatever is wrong with a value is a `SettingsError` of one sentence.
"""

from lycosa.settings.credentials import (
    CREDENTIALS_FILE,
    DIRECT,
    OPEN_FIELDS,
    LoginRule,
    read_login,
    read_secrets,
    references,
    replace_references,
    save_secrets,
    split_certificate,
    split_origin,
    split_proxy,
    take_out_secrets,
)
from lycosa.settings.fields import read_field
from lycosa.settings.named import NamedSettings
from lycosa.settings.schema import DEFAULTS, SETTINGS, CrawlSettings, Setting, shown_value
from lycosa.settings.sources import (
    SettingsSource,
    field_rules,
    from_environment,
    has_settings,
    merge,
    read_fields_file,
    read_file,
    reference,
    save_settings,
    settings_of_folder,
    to_toml,
)
from lycosa.settings.values import (
    InvalidValue,
    read_group,
    read_host_pages,
    read_letter,
    read_place,
    read_render_step,
    seconds,
    seed,
)
from lycosa.settings.watching import WatchRule, read_rule

__all__ = [
    "CREDENTIALS_FILE",
    "DEFAULTS",
    "DIRECT",
    "OPEN_FIELDS",
    "SETTINGS",
    "CrawlSettings",
    "InvalidValue",
    "LoginRule",
    "NamedSettings",
    "Setting",
    "SettingsSource",
    "WatchRule",
    "field_rules",
    "from_environment",
    "has_settings",
    "merge",
    "read_field",
    "read_fields_file",
    "read_file",
    "read_group",
    "read_host_pages",
    "read_letter",
    "read_login",
    "read_place",
    "read_render_step",
    "read_rule",
    "read_secrets",
    "reference",
    "references",
    "replace_references",
    "save_secrets",
    "save_settings",
    "seconds",
    "seed",
    "settings_of_folder",
    "shown_value",
    "split_certificate",
    "split_origin",
    "split_proxy",
    "take_out_secrets",
    "to_toml",
]
