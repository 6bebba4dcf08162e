"""An order beyond the settings of a collection: to look at its pages again. A record, light to import."""

import msgspec


class Recrawl(msgspec.Struct, frozen=True, kw_only=True):
    """Look at pages again. `budget` is in visits a day, `most` ends it after so many visits, `time_s` after so long;
    `everything`: whether it is due or not."""

    budget: float | None = None
    most: int | None = None
    everything: bool = False
    time_s: float | None = None
