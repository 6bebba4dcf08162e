"""Removal: pages that are taken out of a collection for good, and old versions that are no longer kept.

`forget` takes URLs and hosts out of the state, the archive and everything derived from them, and keeps them from coming
back (`store.Forgotten`). `prune_versions` drops old versions of pages. Both run while no crawl does, hold the writer's
lock, and can be run again after a kill: every step leaves state and archive in agreement.
"""

from lycosa.removal.pages import ArchiveRemoval, Removal, forget, open_shards_to_write, plan_removal, undo_forget
from lycosa.removal.versions import Pruned, VersionLimits, count_old_versions, prune_versions

__all__ = [
    "ArchiveRemoval",
    "Pruned",
    "Removal",
    "VersionLimits",
    "count_old_versions",
    "forget",
    "open_shards_to_write",
    "plan_removal",
    "prune_versions",
    "undo_forget",
]
