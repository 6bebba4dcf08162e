"""Image values in exact integers: every pixel counts where nothing is blank; where something is, the digest decides."""

import io
import sys
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image, ImageColor

from lycosa.recrawl.change.image import blocks_of, determinant, image_digest, image_value, two_tone


def encoded(pixels: np.ndarray, form: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8) * 255).save(out, form)
    return out.getvalue()


def by_fractions(matrix: list[list[int]]) -> Fraction:
    """Gauss' elimination, as a second opinion."""
    rows = [[Fraction(value) for value in row] for row in matrix]
    value = Fraction(1)
    for step in range(len(rows)):
        pivot = next((row for row in range(step, len(rows)) if rows[row][step]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != step:
            rows[step], rows[pivot], value = rows[pivot], rows[step], -value
        value *= rows[step][step]
        for row in range(step + 1, len(rows)):
            factor = rows[row][step] / rows[step][step]
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[step], strict=True)]
    return value


@pytest.mark.parametrize("matrix", [[[7]], [[0, 2], [3, 4]], [[1, 2], [2, 4]], [[0, 0, 1], [0, 1, 0], [5, 6, 7]]])
def test_determinant_of_a_small_matrix_is_exact(matrix: list[list[int]]) -> None:
    assert determinant(matrix) == by_fractions(matrix)


def test_value_of_a_thousand_random_images_notices_any_single_pixel() -> None:
    draw = np.random.default_rng(7)
    for _ in range(1_000):
        pixels = draw.random((64, 64)) < 0.5
        flipped = pixels.copy()
        row, column = draw.integers(0, 64, 2)
        flipped[row, column] ^= True
        assert determinant(blocks_of(pixels)) != determinant(blocks_of(flipped))


def test_value_of_a_random_image_agrees_with_a_second_opinion() -> None:
    matrix = blocks_of(np.random.default_rng(1).random((64, 64)) < 0.5)
    assert len(matrix) == 4
    assert matrix[0][0].bit_length() > 200
    assert determinant(matrix) == by_fractions(matrix)


def test_value_of_a_logo_on_black_is_blind_where_its_digest_is_not() -> None:
    logo = np.zeros((64, 64), dtype=bool)
    logo[4:12, 4:12] = True  # one block of sixteen: all cofactors are zero
    other = logo.copy()
    other[6, 6] = False
    assert determinant(blocks_of(logo)) == determinant(blocks_of(other)) == 0
    assert image_digest(encoded(logo)) != image_digest(encoded(other))


@pytest.mark.parametrize("side", [16, 32, 64])
def test_value_of_a_png_does_not_depend_on_its_encoding(side: int) -> None:
    pixels = np.random.default_rng(3).random((64, 64)) < 0.5
    png, bmp = image_value(encoded(pixels), side), image_value(encoded(pixels, "BMP"), side)
    assert png is not None
    assert png == bmp


def test_pixels_of_a_64_by_64_image_are_kept_as_they_are() -> None:
    pixels = np.random.default_rng(3).random((64, 64)) < 0.5
    assert np.array_equal(two_tone(Image.fromarray(pixels.astype(np.uint8) * 255).convert("RGBA")), pixels)


def test_digest_notices_another_colour_and_a_pixel_of_a_large_image_which_two_tones_do_not() -> None:
    def drawn(colour: str, dot: str) -> bytes:
        image, out = Image.new("RGB", (300, 200), colour), io.BytesIO()
        image.putpixel((7, 7), ImageColor.getrgb(dot))
        image.save(out, "PNG")
        return out.getvalue()

    red, blue, dotted = drawn("maroon", "maroon"), drawn("navy", "navy"), drawn("maroon", "black")
    values = [image_value(data) for data in (red, blue, dotted)]
    assert len({found.value for found in values if found}) == 1
    assert len({image_digest(data) for data in (red, blue, dotted)}) == 3


def test_image_without_pillow_is_known_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(np.ones((8, 8), dtype=bool))
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert image_digest(data) == b""


def test_image_with_several_frames_is_known_by_its_bytes() -> None:
    frames, out = [Image.new("L", (4, 4), shade) for shade in (0, 90, 200)], io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    assert image_digest(out.getvalue()) == b""


def test_image_that_cannot_be_decoded_within_bounds_has_no_value() -> None:
    huge = bytearray(encoded(np.ones((2, 2), dtype=bool)))
    huge[16:24] = (60_000).to_bytes(4) * 2  # its header names 3.6 thousand million pixels
    for data in (b"", b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"\0" * 50, bytes(huge), b"%PDF-1.4", b"<svg/>"):
        assert image_value(data) is None
