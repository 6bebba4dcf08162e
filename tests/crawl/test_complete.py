"""Completeness: a crawl nobody disturbs fetches exactly the truth, every page once, politely."""

from collections import Counter
from pathlib import Path

import pytest

from tests.crawl.full_crawl import LONGEST_S, full_crawl, pages_of_whole
from tests.simweb.conftest import lycosa

PAGES = 3_300


@pytest.mark.slow
def test_crawl_that_nobody_disturbs_is_the_truth_each_page_once(tmp_path: Path) -> None:
    with full_crawl(tmp_path, PAGES) as crawl:
        process = lycosa(*crawl.words)
        try:
            _, err = process.communicate(timeout=LONGEST_S)
        finally:
            process.kill()

    assert (process.returncode, err) == (0, "")
    pages = Counter((entry.host, entry.path) for entry in pages_of_whole(crawl))
    assert [page for page, times in pages.items() if times > 1] == []
    assert len(pages) > PAGES // 2
