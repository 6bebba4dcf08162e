"""`lycosa shell`: pages are fetched as a crawl does and looked into; code runs and prints."""

from pathlib import Path

import pytest

from tests.cli.command import Said, lycosa
from tests.notify.receivers import Site, page, site

LINKS = (
    "<a href=/a>About</a><a href=/secret/x>Secret</a><a rel=nofollow href=/n>No</a><a href=http://o.example/>O</a>"
    "<a href=/old>Old</a>"
)


def fill(web: Site) -> None:
    web.pages |= {
        "/": page("Shop", "<h1>Pumps</h1>", "<i class=price>5 coins</i>", LINKS),
        "/a": page("About", "<h1>We</h1>", "text of about"),
        "/robots.txt": "User-agent: *\nDisallow: /secret/\n",
    }


def shell(target: str | Path, code: str, *options: str) -> Said:
    return lycosa("shell", target, "-c", code, *options)


@pytest.mark.slow
def test_shell_on_a_url_tries_selectors_links_and_scope() -> None:
    with site() as web:
        fill(web)
        code = (
            "print(css('h1'), css('.price'), css('a@href')[0])\n"
            "print(fields(price='.price', all='a*')['all'][0], text().splitlines()[0], markdown().splitlines()[0])\n"
            "print(follow('/secret/y'), '|', follow('/b'), '|', follow('mailto:x@y.z'))\n"
            "links()"
        )
        said = shell(f"{web.url}/", code, "--delay", "0")
        assert (said.code, said.err) == (0, "")
        assert said.out.splitlines() == [
            f"['Pumps'] ['5 coins'] {web.url}/a",
            "About Pumps # Pumps",
            "no: robots.txt forbids it | followed | no: not an http or https URL",
            f"{'followed':<30} {web.url}/a  About",
            f"{'no: robots.txt forbids it':<30} {web.url}/secret/x  Secret",
            f"{'no: nofollow':<30} {web.url}/n  No",
            f"{'no: out of scope':<30} http://o.example/  O",
            f"{'followed':<30} {web.url}/old  Old",
        ]
        assert web.asked == ["/robots.txt", "/"]  # one page, and nothing that it links to


@pytest.mark.slow
def test_shell_fetches_another_page_politely_and_says_why_there_is_none() -> None:
    with site() as web:
        fill(web)
        said = shell(
            f"{web.url}/", "fetch('/a'); print(page.title); fetch('/secret/x'); print(page.title)", "--delay", "0"
        )
        assert said.out == "About\nAbout\n"
        assert "robots" in said.err
        assert "/secret/x" not in web.asked

        assert lycosa("shell", f"{web.url}/", "--delay", "0", given="css('h1')").out == "Pumps\n"  # code from a pipe


@pytest.mark.slow
def test_shell_on_a_collection_opens_its_pages_and_writes_nothing(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with site() as web:
        fill(web)
        lycosa("crawl", f"{web.url}/", "--into", into, "--delay", "0", "-q", "--field", "price=.price")
        web.asked.clear()
        before = {path: path.stat().st_mtime_ns for path in into.rglob("*") if path.is_file()}
        said = shell(into, f"print(page.title, fields()); print(open('{web.url}/a').title, css('h1')); why()")
        assert said.code == 0, said.err
        assert said.out.startswith("Shop {'price': '5 coins'}\nAbout ['We']\n" + f"{web.url}/a\n  done")
        assert web.asked == []
    assert {path: path.stat().st_mtime_ns for path in into.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_shell_says_what_is_wrong_in_a_sentence(tmp_path: Path) -> None:
    with site() as web:
        fill(web)
        for code, number, words in (
            ("css('p[')", 2, "CSS selector cannot be read"),
            ("fields()", 2, "no field is named"),
            ("x = 1\nnonsense", 1, "line 2: NameError"),
            ("1 +", 1, "SyntaxError"),
            ("fetch('ftp://x')", 2, "is no http or https URL"),
        ):
            said = shell(f"{web.url}/", code, "--delay", "0")
            assert (said.code, words in said.err, "Traceback" in said.err) == (number, True, False), said.err
    said = shell(tmp_path, "1")
    assert (said.code, "is no collection" in said.err) == (2, True)
    assert shell("http://127.0.0.1:9/", "css('h1')").code == 2
    said = lycosa("shell")
    assert (said.code, said.err) == (2, "lycosa: Missing argument 'URL|DIR'; see lycosa shell --help\n")
