"""Removal: pages that are taken out of a collection for good, and old versions that are no longer kept.

`forget` takes URLs and hosts out of the state, the archive and everything derived from them, and keeps them from coming
back (`store.Forgotten`). `prune_versions` drops old versions of pages. Both run while no crawl does, hold the writer's
lock, and can be run again after a kill: every step leaves state and archive in agreement.
"""

from lycosa.removal.pages import ArchiveRemoval, Removal, forget, plan_removal, undo_forget

__all__ = ["ArchiveRemoval", "Removal", "forget", "plan_removal", "undo_forget"]
