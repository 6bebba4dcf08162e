"""Where rendering pays, by host and family of paths."""

import pytest

from lycosa.errors import SettingsError
from lycosa.render.families import (
    AGAIN_EVERY,
    EMPTY_SAMPLES,
    HOST_SAMPLES,
    IN_VAIN,
    SAMPLES,
    RenderFamilies,
    adds_something,
    looks_empty,
)
from lycosa.settings import CrawlSettings, read_render_step
from lycosa.web import analyse_page

NAME = b"host", "/item/N"


def is_empty(markup: str) -> bool:
    return looks_empty(analyse_page(markup.encode(), url="http://h.test/", content_type="text/html"), markup.encode())


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<div id=root></div><script src=x.js></script>", True),
        (f"<p>{'words ' * 100}</p><div id='app'></div><script>1</script>", True),
        (f"<p>{'words ' * 100}</p><app-root></app-root><script>1</script>", True),
        (f"<p>{'words ' * 100}</p><noscript>Please enable JavaScript.</noscript><script>1</script>", True),
        ("<p>few words</p><script>1</script>", True),
        ("<p>few words</p>", False),  # nothing could fill it
        (f"<p>{'words ' * 100}</p><script>1</script><div id=root>{'words ' * 10}</div>", False),
        (f"<p>{'words ' * 100}</p><noscript><img src=pixel.gif></noscript><script>1</script>", False),
    ],
)
def test_pages_look_empty_without_their_scripts(markup: str, expected: bool) -> None:
    assert is_empty(markup) is expected


def test_links_or_a_good_deal_of_text_are_a_gain() -> None:
    assert adds_something({"a"}, 1_000, {"a", "b"}, 1_000)
    assert adds_something({"a"}, 100, {"a"}, 400)
    assert not adds_something({"a", "b"}, 100, {"a"}, 200)  # less, and a little more
    assert not adds_something(set(), 10_000, set(), 11_000)


def test_family_that_gains_is_rendered_until_it_does_not_any_more() -> None:
    families = RenderFamilies()
    assert families.wants(NAME, is_empty=True)
    families.learn(NAME, has_gained=True)
    for _ in range(IN_VAIN):
        assert families.wants(NAME, is_empty=False)
        families.learn(NAME, has_gained=False)
    assert not families.wants(NAME, is_empty=False)
    families.learn(NAME, has_gained=True)
    assert families.wants(NAME, is_empty=False)


def test_few_pages_that_do_not_look_empty_are_tried_and_one_in_a_while_again() -> None:
    families = RenderFamilies()
    wanted = []
    for _ in range(AGAIN_EVERY):
        wanted.append(families.wants(NAME, is_empty=False))
        if wanted[-1]:
            families.learn(NAME, has_gained=False)
    assert [number for number, is_wanted in enumerate(wanted, 1) if is_wanted] == [*range(1, SAMPLES + 1), AGAIN_EVERY]
    others = sum(families.wants((b"host", f"/{number}"), is_empty=False) for number in range(100))
    assert others == HOST_SAMPLES - SAMPLES


def test_pages_that_look_empty_and_stay_so_are_left_alone() -> None:
    families = RenderFamilies()
    for _ in range(EMPTY_SAMPLES):
        assert families.wants(NAME, is_empty=True)
        families.learn(NAME, has_gained=False)
    assert not families.wants(NAME, is_empty=True)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("wait .list  li", ("wait", ".list li", 0)),
        ("wait 1.5s", ("wait", "", 1_500)),
        ("click #more", ("click", "#more", 0)),
        ("scroll 5", ("scroll", "", 5)),
        ("scroll", ("scroll", "", 1)),
    ],
)
def test_steps_are_read(text: str, step: tuple[str, str, int]) -> None:
    assert read_render_step(text) == step
    assert CrawlSettings(render_steps=(text,)).render_steps == (" ".join(text.split()),)


@pytest.mark.parametrize(
    "text", ["", "jump", "click", "wait", "scroll 0", "scroll x", "scroll 1000", "wait 99h", "wait 5"]
)
def test_other_steps_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="render_steps"):
        CrawlSettings(render_steps=(text,))
