"""The shared arithmetic against its definitions, spelt out the slow way."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import T, one_op_model
from tflite_ort.schema import (
    ActivationFunctionType,
    DimensionMetadata,
    DimensionType,
    Int32Vector,
    MalformedModel,
    ModelError,
    Op,
    Padding,
    SparsityParameters,
    StridedSliceOptions,
    TensorType,
    read_model,
)
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.schema.values.semantics import (
    activation_bounds,
    conv_output_size,
    densify,
    explicit_padding,
    normalized_axes,
    normalized_axis,
    quantized_activation_bounds,
    quantized_range,
    strided_slice,
    unpack,
)
from tflite_ort.schema.values.view import Packed

Array = npt.NDArray[Any]
DENSE, CSR = DimensionType.DENSE, DimensionType.SPARSE_CSR


@pytest.mark.parametrize(
    ("padding", "size", "kernel", "stride", "dilation", "windows", "pads"),
    [
        (Padding.SAME, 224, 3, 2, 1, 112, (0, 1)),
        (Padding.SAME, 7, 3, 1, 1, 7, (1, 1)),
        (Padding.SAME, 7, 3, 1, 2, 7, (2, 2)),
        (Padding.SAME, 5, 2, 1, 1, 5, (0, 1)),
        (Padding.SAME, 6, 1, 4, 1, 2, (0, 0)),
        (Padding.VALID, 224, 3, 2, 1, 111, (0, 0)),
        (Padding.VALID, 7, 3, 1, 3, 1, (0, 0)),
    ],
)
def test_windows_and_their_padding(
    padding: Padding,
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    windows: int,
    pads: tuple[int, int],
) -> None:
    assert conv_output_size(padding, size, kernel, stride, dilation) == windows
    assert explicit_padding(padding, size, kernel, stride, dilation) == pads


@pytest.mark.parametrize(("stride", "dilation"), [(0, 1), (1, 0), (-1, 1)])
def test_a_window_that_does_not_move_is_refused(stride: int, dilation: int) -> None:
    with pytest.raises(ModelError, match="have to be positive"):
        explicit_padding(Padding.SAME, 8, 3, stride, dilation)


def test_axes_count_from_either_end() -> None:
    assert [normalized_axis(axis, 3) for axis in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    assert normalized_axes(np.array([-1, 0, 2, 2]), 3) == (0, 2)
    assert normalized_axes((5,), 0) == ()
    with pytest.raises(ModelError, match="Invalid axis index"):
        normalized_axis(3, 3)


@pytest.mark.parametrize(
    ("function", "real", "codes"),
    [
        (ActivationFunctionType.NONE, (None, None), (-128, 127)),
        (ActivationFunctionType.TANH, (None, None), (-128, 127)),
        (ActivationFunctionType.RELU, (0.0, None), (-10, 127)),
        (ActivationFunctionType.RELU6, (0.0, 6.0), (-10, 50)),
        (ActivationFunctionType.RELU_N1_TO_1, (-1.0, 1.0), (-20, 0)),
    ],
)
def test_fused_activations(
    function: ActivationFunctionType,
    real: tuple[float | None, float | None],
    codes: tuple[int, int],
) -> None:
    assert activation_bounds(function) == real
    assert quantized_activation_bounds(function, TensorType.INT8, 0.1, -10) == codes


def test_activation_codes_are_rounded_half_away_and_clamped() -> None:
    low, high = quantized_activation_bounds(
        ActivationFunctionType.RELU_N1_TO_1, TensorType.UINT8, 0.4, 1
    )
    assert (low, high) == (0, 4)  # 1 - 3 is clamped; 1 + round(2.5) is 4
    assert quantized_range(TensorType.INT4) == (-8, 7)
    with pytest.raises(ModelError, match="FLOAT32 is not a quantized type"):
        quantized_range(TensorType.FLOAT32)


def test_packed_values_come_low_bits_first() -> None:
    packed = np.array([0x21, 0xF8, 0x07], np.uint8)
    assert unpack(packed, 5, 4).tolist() == [1, 2, -8, -1, 7]
    assert unpack(packed, 5, 4, signed=False).tolist() == [1, 2, 8, 15, 7]
    assert unpack(np.array([0b11100100, 0b01], np.uint8), 5, 2).tolist() == [0, 1, -2, -1, 1]
    with pytest.raises(MalformedModel, match="hold 6 of 7 4-bit values"):
        unpack(packed, 7, 4)


@given(st.lists(st.integers(-8, 7), max_size=9))
def test_int4_round_trip(values: list[int]) -> None:
    nibbles = np.array([*values, 0][: len(values) + len(values) % 2], np.int8).view(np.uint8) & 15
    packed = nibbles[0::2] | nibbles[1::2] << 4
    assert unpack(packed, len(values), 4).tolist() == values


def sparse(
    array: Array, order: tuple[int, ...], blocks: dict[int, int], formats: tuple[DimensionType, ...]
) -> tuple[Array, SparsityParameters]:
    """`array` encoded level by level: the slow inverse of densify."""
    inner = [axis for axis in range(array.ndim) if axis in blocks]
    split = array.reshape([n for a, s in enumerate(array.shape) for n in _split(s, blocks.get(a))])
    places = np.cumsum([0, *(1 + (axis in blocks) for axis in range(array.ndim))])
    expanded = [places[a] for a in range(array.ndim)] + [places[a] + 1 for a in inner]
    levels = np.transpose(split, [expanded[dim] for dim in order])
    nodes, metadata = [levels], []
    for format, size in zip(formats, levels.shape, strict=True):
        if format == DENSE:
            nodes = [node[i] for node in nodes for i in range(size)]
            metadata.append(DimensionMetadata(format=DENSE, dense_size=size))
            continue
        kept = [[i for i in range(size) if np.any(node[i])] for node in nodes]
        segments = np.cumsum([0, *map(len, kept)])
        metadata.append(
            DimensionMetadata(
                format=CSR,
                array_segments=Int32Vector(values=segments.astype(np.int32)),
                array_indices=Int32Vector(values=np.array([*itertools.chain(*kept)], np.int32)),
            )
        )
        nodes = [node[i] for node, picks in zip(nodes, kept, strict=True) for i in picks]
    parameters = SparsityParameters(
        traversal_order=order, block_map=tuple(inner), dim_metadata=tuple(metadata)
    )
    return np.array(nodes, array.dtype), parameters


def _split(size: int, block: int | None) -> tuple[int, ...]:
    return (size,) if block is None else (size // block, block)


@pytest.mark.parametrize(
    ("shape", "order", "blocks", "formats"),
    [
        ((4, 6), (0, 1), {}, (DENSE, CSR)),
        ((4, 6), (1, 0), {}, (CSR, CSR)),
        ((4, 8), (0, 1, 2), {1: 4}, (DENSE, CSR, DENSE)),
        ((4, 8), (0, 1, 2, 3), {0: 2, 1: 4}, (DENSE, CSR, DENSE, DENSE)),
        ((4, 8), (1, 0, 3, 2), {0: 2, 1: 4}, (DENSE, CSR, DENSE, DENSE)),
        ((3, 2, 2, 5), (0, 3, 1, 2), {}, (DENSE, CSR, DENSE, CSR)),
        ((3, 1, 1, 4), (0, 1, 2, 3), {}, (DENSE, DENSE, DENSE, CSR)),
    ],
)
def test_densify(
    shape: tuple[int, ...],
    order: tuple[int, ...],
    blocks: dict[int, int],
    formats: tuple[DimensionType, ...],
) -> None:
    rng = np.random.default_rng(0)
    array = rng.integers(1, 9, shape).astype(np.float32) * (rng.random(shape) < 0.4)
    values, parameters = sparse(array, order, blocks, formats)
    assert np.array_equal(densify(values, shape, parameters), array)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"traversal_order": (0, 0)}, "traversal order"),
        ({"traversal_order": None}, "traversal order"),
        ({"dim_metadata": ()}, "0 levels"),
        ({"segments": [0, 3]}, "malformed segments"),
        ({"segments": [0, 2, 1, 3, 3]}, "malformed segments"),
        ({"segments": [0, 1, 2, 3, 9]}, "indices outside"),
        ({"indices": [0, 1, 6, 5]}, "indices outside"),
        ({"indices": [0, -1, 2, 5]}, "indices outside"),
    ],
)
def test_malformed_sparsity_is_refused(change: dict[str, Any], message: str) -> None:
    vectors = {"segments": [0, 1, 2, 3, 4], "indices": [0, 1, 2, 5]} | change
    csr = DimensionMetadata(
        format=CSR,
        array_segments=Int32Vector(values=np.array(vectors.pop("segments"), np.int32)),
        array_indices=Int32Vector(values=np.array(vectors.pop("indices"), np.int32)),
    )
    fields = {
        "traversal_order": (0, 1),
        "dim_metadata": (DimensionMetadata(format=DENSE, dense_size=4), csr),
    }
    with pytest.raises(MalformedModel, match=message):
        densify(np.ones(4, np.float32), (4, 6), SparsityParameters(**fields | vectors))


def test_too_few_sparse_values_are_refused() -> None:
    values, parameters = sparse(np.eye(3, dtype=np.float32), (0, 1), {}, (DENSE, CSR))
    with pytest.raises(MalformedModel, match="2 values for 3 places"):
        densify(values[:2], (3, 3), parameters)


@given(st.data())
def test_strided_slice_is_numpy_indexing(data: st.DataObject) -> None:
    """The resolved slices, squeezes and new axes against numpy's own reading of the index."""
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    array = np.arange(np.prod(shape)).reshape(shape)
    count = data.draw(st.integers(0, len(shape)))
    kinds = [data.draw(st.sampled_from(["range", "single", "mask"])) for _ in range(count)]
    if data.draw(st.booleans()):
        kinds.insert(data.draw(st.integers(0, len(kinds))), "ellipsis")
    for _ in range(data.draw(st.integers(0, 2))):
        kinds.insert(data.draw(st.integers(0, len(kinds))), "new")
    index, entries, masks = _index(data, shape, kinds)
    bounds = [np.array(values, np.int32) for values in zip(*entries, strict=True)]
    if "ellipsis" in kinds and count == len(shape):
        return  # an ellipsis for no axis at all
    region = strided_slice(shape, *(bounds or [np.zeros(0, np.int32)] * 3), masks)
    assert np.array_equal(array[region.slices].reshape(region.shape), array[index])
    assert array[index].shape == region.shape


def _index(
    data: st.DataObject, shape: tuple[int, ...], kinds: list[str]
) -> tuple[tuple[Any, ...], list[tuple[int, int, int]], StridedSliceOptions]:
    index: list[Any] = []
    entries = []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask"), 0)
    masks |= {"new_axis_mask": 0, "shrink_axis_mask": 0}
    axes = [kind for kind in kinds if kind in ("range", "single", "mask")]
    after = itertools.count()
    for bit, kind in enumerate(kinds):
        bound, stride = st.integers(-6, 6), data.draw(st.sampled_from([-2, -1, 1, 2]))
        begin, end = data.draw(bound), data.draw(bound)
        if kind == "ellipsis":
            masks["ellipsis_mask"] |= 1 << bit
            index.append(...)
        elif kind == "new":
            masks["new_axis_mask"] |= 1 << bit
            index.append(None)
        else:
            passed = next(after)
            behind = "ellipsis" in kinds[:bit]
            size = shape[passed - len(axes)] if behind else shape[passed]
            if kind == "single":
                masks["shrink_axis_mask"] |= 1 << bit
                begin, stride = data.draw(st.integers(-size, size - 1)), 1
                index.append(begin)
            elif kind == "mask":
                masks["begin_mask"] |= 1 << bit
                masks["end_mask"] |= 1 << bit
                index.append(slice(None, None, stride))
            else:
                index.append(slice(begin, end, stride))
        entries.append((begin, end, stride))
    return tuple(index), entries, StridedSliceOptions(**masks)


@pytest.mark.parametrize(
    ("begin", "end", "stride", "masks", "message"),
    [
        ([0], [1], [0], {}, "stride value has to be non-zero"),
        ([4], [5], [1], {"shrink_axis_mask": 1}, "outside an axis of 4"),
        ([0], [1], [-1], {"shrink_axis_mask": 1}, "stride -1"),
        ([0, 0], [1, 1], [1, 1], {}, "2 slice entries"),
        ([0, 0], [1, 1], [1, 1], {"ellipsis_mask": 3}, "2 ellipses"),
    ],
)
def test_malformed_slices_are_refused(
    begin: list[int], end: list[int], stride: list[int], masks: dict[str, int], message: str
) -> None:
    bounds = (np.array(values, np.int32) for values in (begin, end, stride))
    with pytest.raises(ModelError, match=message):
        strided_slice((4,), *bounds, StridedSliceOptions(**masks))


def test_small_constants_are_unpacked_at_each_use() -> None:
    """A view of 4-bit weights takes no more than the file."""
    octets = np.arange(256, dtype=np.uint8)
    weights = T((4, 128), TensorType.INT4, scale=0.1, raw=octets.tobytes())
    model = read_model(one_op_model(Op.DEQUANTIZE, [weights], [T((4, 128))]))
    view = tensor_views(model, 0)[0]
    assert isinstance(view.constant, Packed)
    assert view.constant.octets.nbytes == 256
    assert view.data is not None
    assert view.data is not view.data
    assert (view.data.shape, view.data.dtype) == ((4, 128), np.int8)
    assert not view.data.flags.writeable
