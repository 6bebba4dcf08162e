"""The value of an image, and the digest of its pixels, by which two images are compared.

The image is scaled to n × n in two tones, n = 16, 32 or 64; 16 pixels of a row make a 16-bit number, and the 16 rows of
a block are combined into one number, so that any single pixel counts. The determinant of the (n/16) × (n/16) matrix of
blocks, in exact integers, is the image's value. It is blind to a block whose cofactor is zero (blank neighbours), and
to colours; so two images are the same only if the digests of all their pixels, at full size, are equal.
Decoding is bounded: no image is decoded whose header names more than `MOST_PIXELS`, and nothing raises. What is not
decoded (larger, animated, SVG, more than 8 bits a channel) is compared by its bytes alone; so is every image if Pillow
is not installed (`pip install lycosa[images]`).
"""

import io
import warnings
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

SIDES = (16, 32, 64)
BLOCK = 16
MOST_PIXELS = 4_000_000  # a fifth of a second, as PNG
MOST_BYTES = 32 << 20
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "ICO", "TIFF")
TwoTone = NDArray[np.bool_]


class ImageValue(msgspec.Struct, frozen=True):
    """`value` is the determinant, `digest` that of all pixels."""

    value: int
    digest: bytes
    width: int
    height: int


def image_value(data: bytes, side: int = 64) -> ImageValue | None:
    """The value of an encoded image; None if it cannot be decoded within the bounds."""
    image = _decoded(data)
    if image is None:
        return None
    return ImageValue(determinant(blocks_of(two_tone(image, side))), _digest(image), image.width, image.height)


def image_digest(data: bytes) -> bytes:
    """The digest of all pixels of an encoded image; empty if it cannot be decoded within the bounds."""
    image = _decoded(data)
    return b"" if image is None else _digest(image)


def can_decode() -> bool:
    """Is Pillow installed?"""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def two_tone(image: "Image", side: int = 64) -> TwoTone:
    """An image in RGBA scaled to `side` × `side`, True where it is light."""
    if side not in SIDES:
        raise ValueError(f"the side is {side}, it must be one of {SIDES}")
    from PIL import Image

    white = Image.new("RGBA", image.size, "white")
    grey = Image.alpha_composite(white, image).convert("L").resize((side, side), Image.Resampling.BOX)
    return np.asarray(grey) >= BLOCK * 8


def _decoded(data: bytes) -> "Image | None":
    """The decoded image as it is shown, in RGBA."""
    if len(data) > MOST_BYTES or not can_decode():
        return None
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                is_empty_or_large = not 0 < image.width * image.height <= MOST_PIXELS
                if is_empty_or_large or image.mode[0] in "IF" or getattr(image, "is_animated", False):
                    return None
                return ImageOps.exif_transpose(image).convert("RGBA")
    except Exception:  # a decoder of foreign bytes: whatever it raises, this is no image that can be read
        return None


def _digest(image: "Image") -> bytes:
    return pixel_digest(np.asarray(image.convert("RGBa")))  # what is transparent has no colour


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
    """The determinant in exact integers, by Bareiss' elimination: no division leaves a remainder."""
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


def pixel_digest(pixels: "NDArray[np.bool_] | NDArray[np.uint8]") -> bytes:
    """A 128-bit digest of the pixels and of the dimensions."""
    return bytes(xxhash.xxh3_128_digest(repr(pixels.shape).encode() + pixels.tobytes()))
