"""Text codes I and II, and the cascade: what they see, and what they are blind to."""

import pytest

from lycosa.recrawl.change.verdict import ChangeKind, PageParameters, compare_parameters, text_differs
from lycosa.web.document import TextCodes
from lycosa.web.text import codes_of

JOCK = (
    'March 26, 2007 issue - The stereotype of the "dumb jock" has never sounded right to Charles Hillman. A jock '
    "himself, {play} hockey {times} times a week, but when he isn't body-checking his opponents on the ice, he's "
    "giving his mind a comparable workout in his neuroscience and kinesiology lab at the University of {place}."
)


def codes(text: str) -> TextCodes:
    return codes_of(text.encode())


def test_code_one_of_the_papers_two_texts_differs_by_461_in_its_sum() -> None:
    old = codes(JOCK.format(play="he plays", times="four", place="Illinois"))
    new = codes(JOCK.format(play="he used to play", times="five", place="Florida"))
    assert new.total - old.total == 57_113 - 56_652
    assert new.length - old.length == 625 - 619
    assert text_differs(old, new) == 1


@pytest.mark.parametrize(
    ("total", "code"), [(56_652, 1317.488403), (57_113, 1328.209351)], ids=["as it was", "as it became"]
)
def test_code_one_of_the_papers_sums_is_the_papers_code(total: int, code: float) -> None:
    assert TextCodes(total=total, distinct=43).mean_per_symbol == pytest.approx(code, rel=1e-6)


@pytest.mark.parametrize(("squares", "length", "code"), [(2_830_106, 296, 5.683418), (2_876_660, 300, 5.653573)])
def test_code_two_of_the_papers_sums_is_the_papers_code(squares: int, length: int, code: float) -> None:
    assert TextCodes(squares=squares, length=length).root_of_squares == pytest.approx(code, abs=1e-6)


def test_codes_of_words_that_changed_places_are_alike() -> None:
    assert text_differs(codes("the dog bites the man"), codes("the man bites the dog")) is None


def test_cascade_stops_at_the_first_difference() -> None:
    page = PageParameters(("hb", "ly"), codes("some words"), (7,))
    others = PageParameters(("hbp", "lyp"), codes("other words"), (8,))
    assert compare_parameters(page, page) is ChangeKind.NONE
    assert compare_parameters(page, others) is ChangeKind.STRUCTURE
    assert compare_parameters(page, PageParameters(page.structure, others.codes, others.images)) is ChangeKind.TEXT
    assert compare_parameters(page, PageParameters(page.structure, page.codes, others.images)) is ChangeKind.IMAGE
