"""Shape rules of TensorFlow's images, and where the pixels of a bicubic resizing come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import LONGEST_SIDE, Shapes, flex_rule, listed, of_rank
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]
Floats = npt.NDArray[np.float32]

_STEPS = 1024  # of the table that weights are taken from
_MOST_WEIGHTS = 1 << 26


@flex_rule("AdjustContrastv2")
def contrast(op: View) -> Shapes:
    """As the images [..., rows, columns, channels]."""
    shape = op["images"].shape
    if len(shape) < 3:
        raise ModelError(f"{op.label}: images {shape}, expected rows, columns and channels")
    return (shape,)


@flex_rule("AdjustHue", "AdjustSaturation", "RGBToHSV", "HSVToRGB")
def of_three(op: View) -> Shapes:
    """As the images, which have three channels."""
    shape = op["images"].shape
    if not shape or differ(shape[-1:], (3,)):
        raise ModelError(f"{op.label}: images {shape}, expected 3 channels")
    return (shape,)


@flex_rule("CropAndResize")
def crops(op: View) -> Shapes:
    """[boxes, rows, columns, channels]."""
    *_, channels = of_rank(op, "image", 4)
    count, four = of_rank(op, "boxes", 2)
    if differ((four,), (4,)) or differ(op["box_ind"].shape, (count,)):
        raise ModelError(f"{op.label}: boxes {op['boxes'].shape} of {op['box_ind'].shape} images")
    return ((count, *sizes_of(op, "crop_size"), channels),)


@flex_rule("ResizeBicubic")
def bicubic(op: View) -> Shapes:
    """[N, rows, columns, channels]."""
    batch, *_, channels = of_rank(op, "images", 4)
    if node_of(op)["align_corners"] and node_of(op)["half_pixel_centers"]:
        raise ModelError(f"{op.label}: align_corners and half_pixel_centers exclude each other")
    return ((batch, *sizes_of(op, "size"), channels),)


@flex_rule("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective(op: View) -> Shapes:
    """[N, rows, columns, channels]."""
    batch, *_, channels = of_rank(op, "images", 4)
    count, eight = of_rank(op, "transforms", 2)
    misfit = is_known(count, batch) and count not in (1, batch)
    if differ((eight,), (8,)) or misfit:
        raise ModelError(f"{op.label}: transforms {op['transforms'].shape} of {batch} images")
    return ((batch, *sizes_of(op, "output_shape"), channels),)


def sizes_of(op: View, name: str) -> tuple[int, ...]:
    """Rows and columns as an input tells them."""
    sizes = listed(op[name])
    if sizes is None:
        return unknown_shape(2)
    if len(sizes) != 2 or any(is_known(n) and not 0 < n <= LONGEST_SIDE for n in sizes):
        raise ModelError(f"{op.label}: an image cannot have size {sizes}")
    return sizes


def check_weights(old: int, new: int) -> None:
    """Refuse a matrix of too many weights."""
    if old * new > _MOST_WEIGHTS:
        raise ModelError(f"{old} rows to {new} by weights")


def bicubic_weights(old: int, new: int, aligned: bool, half: bool) -> Floats:
    """[new, old]: how much of each old row is in each new one."""
    check_weights(old, new)
    several = aligned and new > 1
    scale = np.float32(old - several) / np.float32(new - several)
    places = np.arange(new, dtype=np.float32)
    source = (places + np.float32(0.5)) * scale - np.float32(0.5) if half else places * scale
    whole = np.floor(source)
    step = np.rint((source - whole) * np.float32(_STEPS)).astype(np.int64)
    near, far = _table(np.float32(-0.5 if half else -0.75))
    weights = np.stack([far[step], near[step], near[_STEPS - step], far[_STEPS - step]], axis=1)
    at = whole.astype(np.int64)[:, None] + np.arange(-1, 3)
    if half:
        weights = np.where((at < 0) | (at >= old), np.float32(0), weights)
        total = weights.sum(axis=1, keepdims=True)
        weights = np.where(np.abs(total) > 0, weights / np.where(total == 0, 1, total), weights)
    matrix = np.zeros((new, old), np.float32)
    np.add.at(matrix, (np.arange(new)[:, None], at.clip(0, old - 1)), weights)
    return matrix


def _table(a: np.float32) -> tuple[Floats, Floats]:
    x = np.arange(_STEPS + 1, dtype=np.float32) / np.float32(_STEPS)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    y = x + 1
    return near.astype(np.float32), (((a * y - 5 * a) * y + 8 * a) * y - 4 * a).astype(np.float32)
