"""The article in a page, by the extra `article` in a process of its own."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lycosa.errors import MissingExtra, SettingsError
from lycosa.export.format import make_format
from lycosa.web import article, extract_article, extract_readable
from lycosa.web.reader_process import borrowed

WORDS = "The council has agreed on a plan for the river, and work on the new bridge begins in spring next year. "
PAGE = f"""<html><head><title>Bridge</title></head><body><div class=top><a href=/>Home</a> <a href=/news>News</a></div>
<article><h1>A new bridge</h1><p>{WORDS * 3}</p><h2>What it costs</h2><p>{WORDS * 3} <a href=/budget>budget</a></p>
<ul><li>{WORDS}</li><li>{WORDS}</li></ul></article><div class=more>Read more of us</div></body></html>""".encode()


@pytest.fixture(autouse=True)
def reader() -> object:
    pytest.importorskip("trafilatura")
    yield
    with borrowed(article.ArticleProcess) as reader:
        reader.close()


@pytest.mark.slow  # the library takes a second to start
def test_article_has_text_and_markdown_with_headings_and_links() -> None:
    found = extract_article(PAGE, url="https://a.example/x", content_type="text/html")
    assert WORDS.strip() in found.text
    assert "Home" not in found.text
    assert "## What it costs" in found.markdown
    assert found.title == "Bridge"


@pytest.mark.slow
def test_page_that_takes_too_long_gets_the_usual_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article, "SECONDS", 0.01)
    found = extract_article(PAGE, url="https://a.example/x", content_type="text/html")
    assert found == extract_readable(PAGE, url="https://a.example/x", content_type="text/html", wants_markdown=True)


@pytest.mark.slow
def test_page_without_an_article_gets_the_usual_text() -> None:
    found = extract_article(b"<p>short</p>", url="https://a.example/x", content_type="text/html")
    assert found.text == "short"


@pytest.mark.parametrize(("words", "is_usual"), [(30, True), (200, False)])
def test_article_with_few_of_the_words_of_a_page_is_a_part_of_it(
    monkeypatch: pytest.MonkeyPatch, words: int, is_usual: bool
) -> None:
    text = " ".join(["word"] * words)
    exchange = partial(_answer, json.dumps({"text": text, "markdown": text}))
    monkeypatch.setattr(article.ArticleProcess, "exchange", lambda self, asked, take: exchange(asked, take))

    found = extract_article(PAGE, url="https://a.example/x", content_type="text/html")

    assert (found.text != text) == is_usual


def _answer(answer: str, asked: bytes, take: Callable[[str, str], None]) -> None:
    take("E", answer)


def test_document_that_is_no_page_has_its_text() -> None:
    assert extract_article(b"plain words", url="https://a.example/x", content_type="text/plain").text == "plain words"


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'lycosa\[article\]'"):
        make_format("jsonl", {"extractor": "article"})


def test_formats_without_text_have_no_extractor(tmp_path: Path) -> None:
    assert make_format("markdown", {"extractor": "main"}).extractor == ""
    with pytest.raises(SettingsError, match="it is for jsonl"):
        make_format("sitemap", {"extractor": "article"})
