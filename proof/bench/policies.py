"""The frontier alone under every policy, state on disk: `python -m proof.bench.policies [--urls 200000]`.

Admits URLs of many hosts, then gives them out and takes them back as done, a commit every few thousand; rankings hear
of as many links to known URLs as a page of a real site has, and move URLs between bands. Prints URLs given out and
taken back a second of CPU time, with what the rankings' evidence costs in it and without.
"""

import argparse
import random
import tempfile
from pathlib import Path

from lycosa.frontier.lease import Lease
from lycosa.frontier.rankings import RANKINGS, Relevance, policy_of
from lycosa.frontier.rows import UrlState
from lycosa.store import CollectionStore
from lycosa.web.relevance import Topic
from proof.bench.frontier import A_COMMIT, Feed, url_of
from proof.bench.measure import cpu_s

BAR = 15_000
POLICIES = ("breadth", "top-window", "leaf-window", "pvalue", "rank", "topic", "pvalue+leaf-window", "rank+top-window")
MAKERS = {**RANKINGS, "topic": lambda: Relevance(Topic.of_words("solar power storage"))}
LINKS = 3  # to known URLs that a page adds to the evidence, after those that stand on every page are put together


def measure(name: str, urls: int, links: int) -> float:
    """URLs a second of CPU time."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, CollectionStore.create(Path(folder) / "collection") as collection:
        feed = Feed(collection, policy_of(name, MAKERS))
        feed.admit(0, urls)
        began, done = cpu_s(), 0
        while feed.frontier.queued > 0:
            leases: list[Lease] = []
            while len(leases) < A_COMMIT and (lease := feed.frontier.next(feed.now, feed.now)):
                leases.append(lease)
            for lease in leases:
                feed.frontier.finish(lease, UrlState.DONE)
                feed.frontier.release(lease, feed.now, feed.now)
            done += len(leases)
            if links and feed.frontier.policy.ranking:
                known = (url_of(chance.randrange(urls)).href for _ in range(links * len(leases)))
                feed.frontier.vouch(dict.fromkeys(known, 1.0), feed.now)
            feed.commit()
        return done / (cpu_s() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=200_000)
    parser.add_argument("--policy", choices=POLICIES, action="append")
    args = parser.parse_args()
    for name in args.policy or POLICIES:
        rate = max(measure(name, args.urls, 0) for _ in range(3))
        with_evidence = (
            f"{measure(name, args.urls, LINKS):>10,.0f}/s with evidence" if policy_of(name, MAKERS).ranking else ""
        )
        print(f"{name:<20}{rate:>10,.0f}/s   ≥ {BAR:,}  {'yes' if rate >= BAR else 'NO'}{with_evidence}")


if __name__ == "__main__":
    main()
