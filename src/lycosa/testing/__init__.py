"""Contract suites for parts: a class for each port, to inherit from in one's own tests.

    class TestMyResolver(ResolverContract):
        def make(self) -> MyResolver: ...

Built-in parts pass the same suites. The in-memory simulated web (`lycosa.simweb.memory`) is the fake to test against.
"""

from lycosa.testing.contracts import (
    AnalyserContract,
    DownloaderContract,
    RankingContract,
    ResolverContract,
    StatisticsContract,
    UrlFilterContract,
)

__all__ = [
    "AnalyserContract",
    "DownloaderContract",
    "RankingContract",
    "ResolverContract",
    "StatisticsContract",
    "UrlFilterContract",
]
