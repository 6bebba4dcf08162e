"""The URLs of a collection one by one, as the product gives them in lists."""

from collections.abc import Iterator
from itertools import chain

from lycosa.inspect import KnownUrl, KnownUrlFilter, url_batches
from lycosa.store import CollectionStore


def list_urls(
    collection: CollectionStore, wanted: KnownUrlFilter | None = None, *, referrers: int = 0
) -> Iterator[KnownUrl]:
    return chain.from_iterable(url_batches(collection, wanted, referrers=referrers))
