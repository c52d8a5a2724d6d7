"""Which values the pixels of a picture become, (pixel - mean) / std, and who says so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import Model, Op, Operator, SubGraph, Tensor, TensorType
from tflite_ort.schema.file.model import stored_data
from tflite_ort.schema.file.model_metadata import NormalizationOptions, TensorMetadata

Array = npt.NDArray[Any]

METADATA = "as the metadata say"
ASSUMED = "assumed, since the model does not say"

PIXELS = ((0.0,), (1.0,))
FROM_ZERO = ((0.0,), (255.0,))
FROM_MINUS_ONE = ((127.5,), (127.5,))
# Of pictures as torchvision's networks take them.
IMAGENET = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))

# The least and greatest value of pixels, by what they become.
_RANGES = ((0.0, 255.0, PIXELS), (0.0, 1.0, FROM_ZERO), (-1.0, 1.0, FROM_MINUS_ONE))
# How wide what a network computes with may be: about that of numbers with a deviation of 1, or that
# of pixels, less a mean.
_UNITS, _WHOLE = (0.5, 10.0), (200.0, 300.0)
# The least mean that is one of pixels.
_LEAST_MEAN = 16.0
# What leaves values as they are, and how many operators are looked at.
_PASSING = frozenset(
    {Op.CAST, Op.DEQUANTIZE, Op.PAD, Op.PADV2, Op.RESHAPE, Op.RESIZE_BILINEAR, Op.TRANSPOSE}
)
_MOST = 12


@dataclass(frozen=True, slots=True)
class PixelRange:
    """What pixels become.

    Args:
        mean, std: one, or one per channel.
        source: who says so.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    source: str


def pixel_range(
    model: Model,
    subgraph: int,
    index: int,
    told: TensorMetadata | None = None,
    default: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    known_as: str = "",
) -> PixelRange:
    """What pixels become for the tensor `index`: as the metadata say, else as the first operators
    show, else a default.

    Args:
        told: what the metadata say of it.
        default: mean and standard deviation of networks of its kind; None assumes 0 to 1.
        known_as: what networks of its kind are called; empty where the default is a guess.
    """
    channels = model.subgraphs[subgraph].tensors[index].shape[-3:]  # wherever they are
    for unit in () if told is None else told.process_units:
        said = unit.options
        if isinstance(said, NormalizationOptions) and _usable(said, tuple(channels)):
            return PixelRange(said.mean, said.std, METADATA)
    with np.errstate(all="ignore"):  # of numbers that a file makes up
        shown = _shown(model, model.subgraphs[subgraph], index)
    if shown is not None:
        return shown
    source = f"as a {known_as} takes them" if known_as else ASSUMED
    return PixelRange(*(default or FROM_ZERO), source)


def _usable(said: NormalizationOptions, channels: tuple[int, ...]) -> bool:
    numbers = (*said.mean, *said.std)
    fits = all(len(each) in (1, *channels) for each in (said.mean, said.std))
    return fits and all(map(math.isfinite, numbers)) and all(said.std)


def _shown(model: Model, graph: SubGraph, index: int) -> PixelRange | None:
    """What the operators that read an input first tell of its range; None for nothing."""
    factor, offset, names = np.ones(1), np.zeros(1), list[str]()
    for name, op in _first_operators(model, graph, index):
        if op.builtin is Op.QUANTIZE:
            return _of_codes(graph.tensors[op.operator.outputs[0]], factor, offset, names)
        if op.affine is None:
            break
        factor, offset = factor * op.affine[0], offset * op.affine[0] + op.affine[1]
        names += [name] * (op.builtin not in _PASSING)
    return _of_affine(factor, offset, names) if names else None


@dataclass(frozen=True, slots=True)
class _First:
    """One of the first operators.

    Args:
        affine: what its input is multiplied by, and what is added then; None where it does more.
    """

    builtin: Op
    operator: Operator
    affine: tuple[Array, Array] | None


def _first_operators(model: Model, graph: SubGraph, index: int) -> Iterator[tuple[str, _First]]:
    """The operators one after the other, from the input on, as long as there is one at a time."""
    for _ in range(_MOST):
        readers = [op for op in graph.operators if index in op.inputs]
        if len(readers) != 1 or not len(readers[0].outputs):
            return
        (reader,) = readers
        builtin = Op(model.operator_codes[reader.opcode_index].builtin_code)
        yield builtin.name, _First(builtin, reader, _affine(model, graph, builtin, reader, index))
        index = int(reader.outputs[0])


def _affine(
    model: Model, graph: SubGraph, builtin: Op, op: Operator, index: int
) -> tuple[Array, Array] | None:
    one, zero = np.ones(1), np.zeros(1)
    if builtin in _PASSING:
        return one, zero
    if builtin not in (Op.ADD, Op.SUB, Op.MUL, Op.DIV) or len(op.inputs) != 2:
        return None
    first = op.inputs[0] == index
    other = op.inputs[1 if first else 0]
    constant = None if other is None else _numbers(model, graph.tensors[other])
    if constant is None:
        return None
    if builtin is Op.ADD:
        return one, constant
    if builtin is Op.SUB:
        return (one, -constant) if first else (-one, constant)
    if builtin is Op.MUL:
        return constant, zero
    return (1 / constant, zero) if first and constant.all() else None


def _numbers(model: Model, tensor: Tensor) -> Array | None:
    """A float constant: one number, or one for each channel."""
    data, count = stored_data(model, tensor), math.prod(tensor.shape)
    if data is None or tensor.type is not TensorType.FLOAT32 or not 1 <= count <= 4:
        return None
    if data.nbytes < 4 * count or count != (tensor.shape[-1] if len(tensor.shape) else 1):
        return None
    found = data[: 4 * count].view("<f4").astype(np.float64)
    return found if np.isfinite(found).all() else None


def _of_codes(tensor: Tensor, factor: Array, offset: Array, names: list[str]) -> PixelRange | None:
    """What the range of the tensor that the input is quantized into tells."""
    stored = tensor.quantization
    if stored is None or stored.scale is None or len(stored.scale) != 1 or factor.size > 1:
        return None
    if tensor.type not in (TensorType.UINT8, TensorType.INT8) or not factor[0]:
        return None
    points = stored.zero_point
    point = float(points[0]) if points is not None and len(points) else 0.0
    least = -128 if tensor.type is TensorType.INT8 else 0
    ends = (np.array([least, least + 255]) - point) * float(stored.scale[0])
    low, high = np.sort((ends - offset) / factor)
    source = f"as the range of {' and '.join([*names, 'QUANTIZE'])} at its start shows"
    if low > -1 and high > 150:
        return PixelRange(*PIXELS, source)
    if low > -0.1 and 0.85 < high < 1.2:
        return PixelRange(*FROM_ZERO, source)
    if -1.2 < low < -0.85 and 0.85 < high < 1.2:
        return PixelRange(*FROM_MINUS_ONE, source)
    if -3 < low < -1.5 and 1.5 < high < 4:
        return PixelRange(*IMAGENET, source)
    return None


def _of_affine(factor: Array, offset: Array, names: list[str]) -> PixelRange | None:
    """The range of pixels of which factor * value + offset has the range that networks have."""
    source = f"as {' and '.join(names)} at its start show{'s' * (len(names) == 1)}"
    for low, high, (mean, std) in _RANGES:
        width = np.abs(factor).mean() * (high - low)
        if _UNITS[0] <= width <= _UNITS[1]:
            return PixelRange(mean, std, source)
        middle = (factor * (low + high) / 2 + offset).mean()
        means = high <= 1 or np.abs(offset).mean() >= _LEAST_MEAN
        if _WHOLE[0] <= width <= _WHOLE[1] and means and np.abs(middle) < width:
            return PixelRange(mean, std, source)
    return None
