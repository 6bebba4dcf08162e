"""Opens the link index of a collection to read it, whole whatever has become of its files.

    sound_index    the segments; where they are gone, damaged, of another version, or end before the feed begins, all of
                   it is built anew from the state: in its folder if no crawl holds the collection, else in memory
    whole_index    the same with what the feed tells beyond it

Of a collection of several shards the segments stand side by side: signed pairs of all shards add up as those of one do.
`note` hears in one sentence what had to be done. Called by the views and by whoever makes the search index.
"""

from collections.abc import Callable

from lycosa.engine.linker import CONSUMER, all_pages, replay, slices
from lycosa.errors import LycosaError, StoreError
from lycosa.graph.columns import from_pages
from lycosa.graph.feed import FOLDER as FEED
from lycosa.graph.feed import consumers, cover, last_told, news_after
from lycosa.graph.index import FOLDER, LinkIndex, LinkWriter, Listed
from lycosa.graph.segment import Segment
from lycosa.store import Collection, JoinedCollection
from lycosa.store.collection import held

Note = Callable[[str], None]


def whole_index(collection: Collection, note: Note | None = None) -> LinkIndex:
    """The index with what the feed tells beyond it. The state was opened first, so nothing is missing between."""
    if isinstance(collection, JoinedCollection):
        return _side_by_side([whole_index(shard, note) for shard in collection.shards])
    index = sound_index(collection, note)
    index.lay_over(list(replay(collection.state, index.covered)))
    return index


def sound_index(collection: Collection, note: Note | None = None) -> LinkIndex:
    """The index as far as it has come, with no pages missing before that."""
    if isinstance(collection, JoinedCollection):
        return _side_by_side([sound_index(shard, note) for shard in collection.shards])
    told = consumers(collection.path / FEED).get(CONSUMER, 0)  # first: a crawl covers after it has written
    try:
        index = LinkIndex.open(collection.path)
        if is_sound(collection, index.covered, told):
            return index
        why = "is not there" if not index.segments else "is behind what it once was"
    except StoreError as error:
        why = f"cannot be used ({error})"
    return _built(collection, why, note or (lambda text: None))


def is_sound(collection: Collection, covered: int, told: int) -> bool:
    """Does the feed tell all that came after `covered`, of which the index once said `told`?"""
    if covered < told:
        return False
    if covered > last_told(collection.state):
        collection.state.refresh()  # a crawl has written meanwhile
        if covered > last_told(collection.state):
            return False
    following = next(news_after(collection.state, covered), None)
    return covered >= last_told(collection.state) if following is None else following.sequence == covered + 1


def _built(collection: Collection, why: str, note: Note) -> LinkIndex:
    try:
        with held(collection.path):
            collection.state.refresh()
            last = last_told(collection.state)
            writer = LinkWriter.open(collection.path)
            writer.clear()
            writer.add_all(slices(all_pages(collection.state)), last)
            cover(collection.path, CONSUMER, last)
            writer.close()
        index = LinkIndex.open(collection.path)
        note(f"the link index {collection.path / FOLDER} {why}: it was built anew from the state")
    except (LycosaError, OSError):  # a crawl holds the collection, or nothing may be written there
        last = last_told(collection.state)
        parts = [Segment.of(from_pages(some)) for some in slices(all_pages(collection.state))]
        index = LinkIndex(collection.path / FOLDER, Listed(last), parts)
        mends = "" if (collection.path / FOLDER).is_file() else "; the next crawl mends it"
        note(f"the link index {collection.path / FOLDER} {why}: links are read from the state{mends}")
    return index


def _side_by_side(indexes: list[LinkIndex]) -> LinkIndex:
    first, *others = indexes
    first.segments += [segment for other in others for segment in other.segments]
    return first
