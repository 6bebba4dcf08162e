"""The value of an image (Y11), in exact integers, and the digest of its pixels, which decides.

The image is scaled to n × n in two tones, n = 16, 32 or 64; 16 pixels of a row make a 16-bit number, and the 16 rows of
a block are combined into one number, so that any single pixel counts. The determinant of the (n/16) × (n/16) matrix of
blocks is the image's value. It is blind to a block whose cofactor is zero (blank neighbours), as it is to what happens
in the white around a logo; two images are the same when the digests of their n × n pixels are.
Decoding is bounded: nothing is decoded whose header names more than `MOST_PIXELS`, and nothing raises.
Needs Pillow (`pip install lycosa[images]`); without it an image is known by its bytes alone.
"""

import io
import warnings

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

SIDES = (16, 32, 64)
BLOCK = 16
MOST_PIXELS = 40_000_000
MOST_BYTES = 32 << 20
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "ICO", "TIFF")
TwoTone = NDArray[np.bool_]


class ImageValue(msgspec.Struct, frozen=True):
    """`value` is the determinant, `digest` that of the two-tone pixels."""

    value: int
    digest: bytes


def image_value(data: bytes, side: int = 64) -> ImageValue | None:
    """The value of an encoded image; None when it cannot be decoded, or not within bounds."""
    pixels = two_tone(data, side)
    return None if pixels is None else ImageValue(determinant(blocks_of(pixels)), pixel_digest(pixels))


def two_tone(data: bytes, side: int = 64) -> TwoTone | None:
    """The image scaled to `side` × `side`, True where it is light."""
    if side not in SIDES:
        raise ValueError(f"the side is {side}, it must be one of {SIDES}")
    if len(data) > MOST_BYTES:
        return None
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                if image.width * image.height > MOST_PIXELS or not image.width or not image.height:
                    return None
                image.draft("L", (side * 2, side * 2))  # a JPEG is decoded at the size that is needed
                flat = image.convert("RGBA")
                white = Image.new("RGBA", flat.size, "white")
                grey = Image.alpha_composite(white, flat).convert("L").resize((side, side), Image.Resampling.BOX)
    except Exception:  # a decoder of foreign bytes: whatever it raises, this is no image that can be read
        return None
    return np.asarray(grey) >= BLOCK * 8


def blocks_of(pixels: TwoTone) -> list[list[int]]:
    """Each block of 16 × 16 pixels as one number of 256 bits: its rows, 16 bits each, side by side."""
    side = len(pixels)
    per_row = side // BLOCK
    packed = np.packbits(pixels, axis=1)  # two bytes a row of a block
    return [
        [
            int.from_bytes(packed[BLOCK * row : BLOCK * (row + 1), 2 * column : 2 * (column + 1)].tobytes())
            for column in range(per_row)
        ]
        for row in range(per_row)
    ]


def determinant(matrix: list[list[int]]) -> int:
    """The determinant in exact integers, by Bareiss' elimination: every division has no rest."""
    rows = [list(row) for row in matrix]
    size, sign, before = len(rows), 1, 1
    for step in range(size - 1):
        pivot = next((row for row in range(step, size) if rows[row][step]), None)
        if pivot is None:
            return 0
        if pivot != step:
            rows[step], rows[pivot] = rows[pivot], rows[step]
            sign = -sign
        for row in range(step + 1, size):
            for column in range(step + 1, size):
                rows[row][column] = (
                    rows[row][column] * rows[step][step] - rows[row][step] * rows[step][column]
                ) // before
        before = rows[step][step]
    return sign * rows[-1][-1]


def pixel_digest(pixels: TwoTone) -> bytes:
    return bytes(xxhash.xxh3_128_digest(np.packbits(pixels).tobytes()))
