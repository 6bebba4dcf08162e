"""Completeness: a crawl nobody disturbs fetches exactly the truth, every page once, politely."""

from collections import Counter
from pathlib import Path

import pytest

from tests.engine.full_crawl import LONGEST_S, PAGES, full_crawl, pages_of_whole
from tests.long import long
from tests.simweb.conftest import lycosa


@pytest.mark.slow
@pytest.mark.parametrize("size", [PAGES // 6, pytest.param(PAGES, marks=long)])
def test_crawl_that_nobody_disturbs_is_the_truth_each_page_once(tmp_path: Path, size: int) -> None:
    with full_crawl(tmp_path, size) as crawl:
        process = lycosa(*crawl.words)
        try:
            _, err = process.communicate(timeout=LONGEST_S)
        finally:
            process.kill()

    assert (process.returncode, err) == (0, "")
    pages = Counter((entry.host, entry.path) for entry in pages_of_whole(crawl))
    assert [page for page, times in pages.items() if times > 1] == []
    assert len(pages) > size // 2
