"""Channels of codes in another order: read by convolutions where they stood, the codes the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort.opmap.rules.operators import picked_channels
from tflite_ort.schema import (
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    GatherOptions,
    Op,
    Padding,
    PadOptions,
    QuantizeOptions,
    ReshapeOptions,
    StridedSliceOptions,
    TensorType,
    TransposeOptions,
)

Codes = npt.NDArray[np.integer[Any]]
CELLS = (2, 3, 4)
ONE_CELL = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)


def half_units(
    channels: int = 16,
    type: TensorType = TensorType.INT8,
    *,
    groups: int = 2,
    scales: tuple[float, float] = (0.1, 0.083),
    zeros: tuple[int, int] = (3, 9),
    planes: bool = False,
    strided: bool = False,
    window: int = 1,
    seen: bool = False,
    read_as: float | None = None,
) -> bytes:
    """Channels are shuffled; one half is quantised anew, the other convolved, both are joined.

    Args:
        planes: the shuffle is on [N, C, H, W].
        strided: STRIDED_SLICE in place of SLICE.
        seen: the shuffled channels are an output too.
        read_as: another scale of the shuffled channels.
    """
    half = channels // 2
    code: dict[str, Any] = {"type": type, "scale": scales[0], "zero_point": zeros[0]}
    joined = {**code, "scale": scales[1], "zero_point": zeros[1]}
    tensors, nodes = shuffle(channels, groups, code, planes=planes)
    if read_as is not None:
        code["scale"] = read_as
        tensors["shuffled"] = T((*CELLS, channels), **code)
    tensors |= layer(half, window, type)
    tensors |= {name: T((*CELLS, half), **code) for name in ("first", "second")}
    tensors |= {name: T((*CELLS, half), **joined) for name in ("kept", "made")}
    tensors["y"] = T((*CELLS, channels), **joined)
    ends = {"size": (*CELLS, half), "ones": (1, 1, 1, 1)}
    for part, start in (("first", 0), ("second", half)):
        ends |= {f"begin_{part}": (0, 0, 0, start), f"end_{part}": (*CELLS, start + half)}
        given = ["shuffled", f"begin_{part}"]
        if strided:
            bounds, options = [f"end_{part}", "ones"], StridedSliceOptions()
            nodes.append(Node(Op.STRIDED_SLICE, [*given, *bounds], [part], options))
        else:
            nodes.append(Node(Op.SLICE, [*given, "size"], [part]))
    tensors |= {name: T.constant(np.int32(numbers)) for name, numbers in ends.items()}
    nodes += [
        Node(Op.QUANTIZE, ["first"], ["kept"], QuantizeOptions()),
        Node(Op.CONV_2D, ["second", "filter", "bias"], ["made"], ONE_CELL),
        Node(Op.CONCATENATION, ["kept", "made"], ["y"], ConcatenationOptions(axis=3)),
    ]
    read = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    tensors = {name: tensor for name, tensor in tensors.items() if name in read}
    return graph_model(tensors, nodes, ["y", "shuffled"] if seen else ["y"])


def shuffle(
    channels: int, groups: int, code: dict[str, Any], *, planes: bool
) -> tuple[dict[str, T], list[Node]]:
    """From "x" to "shuffled"."""
    shape, axis = (*CELLS, channels), 3
    if planes:
        shape, axis = (CELLS[0], channels, *CELLS[1:]), 1
    split = (*shape[:axis], groups, channels // groups, *shape[axis + 1 :])
    order = [axis + 1 if i == axis else axis if i == axis + 1 else i for i in range(5)]
    tensors = {name: T((*CELLS, channels), **code) for name in ("x", "shuffled")}
    tensors |= {name: T(shape, **code) for name in ("planes", "back")}
    tensors |= {"split": T(split, **code), "moved": T(tuple(split[i] for i in order), **code)}
    lists = {"to_planes": (0, 3, 1, 2), "to_cells": (0, 2, 3, 1)}
    lists |= {"to_split": split, "order": tuple(order), "to_back": shape}
    tensors |= {name: T.constant(np.int32(numbers)) for name, numbers in lists.items()}
    first, last = ("planes", "back") if planes else ("x", "shuffled")
    nodes = [
        Node(Op.RESHAPE, [first, "to_split"], ["split"], ReshapeOptions(new_shape=split)),
        Node(Op.TRANSPOSE, ["split", "order"], ["moved"], TransposeOptions()),
        Node(Op.RESHAPE, ["moved", "to_back"], [last], ReshapeOptions(new_shape=shape)),
    ]
    if planes:
        nodes.insert(0, Node(Op.TRANSPOSE, ["x", "to_planes"], ["planes"], TransposeOptions()))
        nodes.append(Node(Op.TRANSPOSE, ["back", "to_cells"], ["shuffled"], TransposeOptions()))
    return tensors, nodes


def layer(channels: int, window: int, type: TensorType) -> dict[str, T]:
    """The constants of a convolution."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (channels, window, window, channels))
    filter = T.constant(
        weights.astype(np.int8), scale=rng.uniform(0.001, 0.004, channels), zero_point=0
    )
    if type is TensorType.UINT8:
        filter = T.constant((weights + 127).astype(np.uint8), scale=0.002, zero_point=127)
    bias = T.constant(rng.integers(-900, 900, channels).astype(np.int32))
    return {"filter": filter, "bias": bias}


def strided_unit(channels: int = 16, *, pad: bool = True, then: str = "convolution") -> bytes:
    """Channels are shuffled, one layer of 3x3 cells convolves each of them, another reads them.

    Args:
        pad: zeros stand around the image.
        then: what reads them.
    """
    rng = np.random.default_rng(0)
    code: dict[str, Any] = {"type": TensorType.INT8, "scale": 0.1, "zero_point": 3}
    tensors, nodes = shuffle(channels, 2, code, planes=False)
    batch, height, width = CELLS
    edges = ((0, 0), (1, 1), (1, 1), (0, 0))
    rows, columns = (height + 1) // 2, (width + 1) // 2
    weights = rng.integers(-127, 128, (1, 3, 3, channels)).astype(np.int8)
    scales = rng.uniform(0.001, 0.004, channels)
    bias = rng.integers(-900, 900, channels).astype(np.int32)
    apart = {**code, "scale": 0.07}
    tensors |= layer(channels, 1, TensorType.INT8)
    tensors |= {
        "edges": T.constant(np.int32(edges)),
        "padded": T((batch, height + 2, width + 2, channels), **code),
        "each": T.constant(weights, scale=scales, zero_point=0, axis=3),
        "added": T.constant(bias, scale=scales * 0.1, zero_point=0, axis=0),
        "apart": T((batch, rows, columns, channels), **apart),
        "y": T((batch, rows, columns, channels), **apart),
    }
    window = {"stride_h": 2, "stride_w": 2, "depth_multiplier": 1}
    same = DepthwiseConv2DOptions(padding=Padding.SAME, **window)
    within = DepthwiseConv2DOptions(padding=Padding.VALID, **window)
    if pad:
        nodes.append(Node(Op.PAD, ["shuffled", "edges"], ["padded"], PadOptions()))
    image = "padded" if pad else "shuffled"
    last = "y" if then == "output" else "apart"
    depthwise = [image, "each", "added"], [last], within if pad else same
    nodes.append(Node(Op.DEPTHWISE_CONV_2D, *depthwise))
    if then == "convolution":
        nodes.append(Node(Op.CONV_2D, ["apart", "filter", "bias"], ["y"], ONE_CELL))
    elif then == "both":
        nodes.append(Node(Op.CONV_2D, ["apart", "filter", "bias"], ["y"], ONE_CELL))
        tensors["z"] = T((batch, rows, columns, channels), **code)
        nodes.append(Node(Op.QUANTIZE, ["apart"], ["z"], QuantizeOptions()))
    read = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    tensors = {name: tensor for name, tensor in tensors.items() if name in read}
    return graph_model(tensors, nodes, ["y", "z"] if then == "both" else ["y"])


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("cells", [(1, 24, 32), (1, 3, 5)])
def test_floats(
    monkeypatch: pytest.MonkeyPatch, cells: tuple[int, ...], window: int, *, seen: bool
) -> None:
    """A convolution reads shuffled floats by weights in another order; what else reads them gets
    planes from one Gather."""
    rng = np.random.default_rng(6)
    print("seed 6")
    split, turned = (*cells, 2, 6), (*cells, 6, 2)
    weights = rng.standard_normal((16, window, window, 12)).astype(np.float32)
    tensors = {name: T((*cells, 12)) for name in ("x", "shuffled", "z")}
    tensors |= {"split": T(split), "moved": T(turned), "y": T((*cells, 16))}
    tensors |= {
        "to_split": T.constant(np.int32(split)),
        "order": T.constant(np.int32((0, 1, 2, 4, 3))),
        "to_back": T.constant(np.int32((*cells, 12))),
        "filter": T.constant(weights),
        "bias": T.constant(rng.standard_normal(16).astype(np.float32)),
    }
    nodes = [
        Node(Op.RESHAPE, ["x", "to_split"], ["split"], ReshapeOptions(new_shape=split)),
        Node(Op.TRANSPOSE, ["split", "order"], ["moved"], TransposeOptions()),
        Node(Op.RESHAPE, ["moved", "to_back"], ["shuffled"], ReshapeOptions((*cells, 12))),
        Node(Op.CONV_2D, ["shuffled", "filter", "bias"], ["y"], ONE_CELL),
        Node(Op.NEG, ["shuffled"], ["z"]),
    ]
    if not seen:
        tensors.pop("z")
        nodes.pop()
    model = graph_model(tensors, nodes, ["y", "z"] if seen else ["y"])
    image = rng.standard_normal((*cells, 12)).astype(np.float32)
    assert optimised_nodes(model)["Gather"] == seen
    got, _ = ours(model, [image])
    with moved(monkeypatch):
        assert optimised_nodes(model)["Gather"] == 0
        by_moving, _ = ours(model, [image])
    for a, b, c in zip(got, by_moving, litert(model, [image]), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=4e-5)  # 1e-6 of the largest: order of sums
        np.testing.assert_allclose(a, c, rtol=0, atol=4e-5)


@contextmanager
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, channels are moved by nodes."""
    with monkeypatch.context() as patched:
        patched.setattr(picked_channels, "_picked", lambda *_: None)
        yield


def every_code(channels: int, type: TensorType) -> Codes:
    low = -128 * (type is TensorType.INT8)
    codes = np.random.default_rng(1).permutation(np.arange(24 * channels) % 256)
    return (codes + low).astype(type.name.lower()).reshape(*CELLS, channels)


VARIANTS: dict[str, dict[str, Any]] = {
    "cells": {},
    "planes": {"planes": True},
    "strided slices": {"strided": True},
    "unsigned": {"type": TensorType.UINT8, "zeros": (120, 131)},
    "four groups": {"groups": 4},
    "odd number of groups": {"groups": 3, "channels": 24},
    "seen": {"seen": True},
    "halves": {"scales": (0.1, 0.2)},
    "larger scale": {"scales": (0.1, 0.2003)},
    "smaller scale": {"scales": (0.1, 0.05)},
    "other scale": {"scales": (0.0271, 0.0643), "zeros": (-128, 127)},
    "moved zero point": {"scales": (0.1, 0.1)},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_same_codes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    more = VARIANTS[name]
    model = half_units(**more)
    codes = every_code(more.get("channels", 16), more.get("type", TensorType.INT8))
    for image in (codes, np.full_like(codes, codes.min()), np.full_like(codes, codes.max())):
        got, _ = ours(model, [image])
        with moved(monkeypatch):
            by_moving, _ = ours(model, [image])
        for a, b, c in zip(got, by_moving, litert(model, [image]), strict=True):
            np.testing.assert_array_equal(a, b)
            assert np.abs(a.astype(int) - c).max() <= 1


# "larger scale" and "other scale" are rounded twice, which no convolution does.
MOVED = ("seen", "unsigned", "halves", "larger scale", "other scale")


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in MOVED])
def test_nothing_is_moved(name: str) -> None:
    nodes = optimised_nodes(half_units(**VARIANTS[name]))
    assert nodes == {"QLinearConv": 2, "Concat": 1}


@pytest.mark.parametrize(
    "more",
    [{"channels": 240}, {"groups": 1}, {"read_as": 0.07}],
    ids=["many channels", "in order", "another scale"],
)
def test_channels_that_are_moved(monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    model, codes = half_units(**more), every_code(more.get("channels", 16), TensorType.INT8)
    nodes = optimised_nodes(model)
    assert nodes["Slice"] or nodes["Split"]  # which ONNX Runtime makes of two Slices
    got, _ = ours(model, [codes])
    with moved(monkeypatch):
        np.testing.assert_array_equal(got[0], ours(model, [codes])[0][0])


def test_windows_read_channels_by_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    model, codes = half_units(window=3), every_code(16, TensorType.INT8)
    assert optimised_nodes(model) == {"QLinearConv": 3, "Concat": 1}
    got, _ = ours(model, [codes])
    with moved(monkeypatch):
        np.testing.assert_array_equal(got[0], ours(model, [codes])[0][0])


UNITS: dict[str, dict[str, Any]] = {
    "padded": {},
    "same": {"pad": False},
    "24 channels": {"channels": 24},
    "output": {"then": "output"},
    "two readers": {"then": "both"},
}


@pytest.mark.parametrize("name", UNITS)
def test_same_codes_of_each_channel(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model = strided_unit(**UNITS[name])
    codes = every_code(UNITS[name].get("channels", 16), TensorType.INT8)
    got, _ = ours(model, [codes])
    kept, _ = ours(model, [codes], experimental_preserve_all_tensors=True)
    with moved(monkeypatch):
        by_moving, _ = ours(model, [codes])
    for a, b, c, d in zip(got, by_moving, kept, litert(model, [codes]), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
        assert np.abs(a.astype(int) - d).max() <= 1


@pytest.mark.parametrize("name", UNITS)
def test_no_channel_is_moved(name: str) -> None:
    nodes = optimised_nodes(strided_unit(**UNITS[name]))
    assert nodes["Transpose"] + nodes["Gather"] == 0


def halves(place: int, *, plain: bool = False) -> bytes:
    """Channels are shuffled as PyTorch does it: two GATHERs take a half each. One is joined, the
    other one is convolved.

    Args:
        place: of the half that is joined.
        plain: nothing is shuffled.
    """
    batch, height, width = CELLS
    code: dict[str, Any] = {"type": TensorType.INT8, "scale": 0.1, "zero_point": 3}
    rows = (batch, 16, height, width)
    split, moved = (batch, 8, 2, height * width), (2, batch, 8, height * width)
    order = (2, 0, 1, 3)
    if plain:
        split, order = (batch, 2, 8, height * width), (1, 0, 2, 3)
    apart = (2, batch, 8, height, width)
    shapes = {"x": (*CELLS, 16), "rows": rows, "split": split, "moved": moved, "apart": apart}
    for half in ("first", "second"):
        shapes |= {f"{half}_rows": (batch, 8, height, width), half: (*CELLS, 8)}
    shapes |= {"made": (*CELLS, 8), "y": (*CELLS, 16)}
    lists = {"to_rows": (0, 3, 1, 2), "to_split": split, "order": order, "to_apart": apart}
    lists |= {"to_cells": (0, 2, 3, 1)}
    tensors = {name: T(shape, **code) for name, shape in shapes.items()}
    tensors |= {name: T.constant(np.int32(numbers)) for name, numbers in lists.items()}
    tensors |= layer(8, 1, TensorType.INT8)
    nodes = [
        Node(Op.TRANSPOSE, ["x", "to_rows"], ["rows"], TransposeOptions()),
        Node(Op.RESHAPE, ["rows", "to_split"], ["split"], ReshapeOptions(new_shape=split)),
        Node(Op.TRANSPOSE, ["split", "order"], ["moved"], TransposeOptions()),
        Node(Op.RESHAPE, ["moved", "to_apart"], ["apart"], ReshapeOptions(new_shape=apart)),
    ]
    for half, at in (("first", place), ("second", 1 - place)):
        tensors[f"at_{half}"] = T.constant(np.int32(at))
        nodes += [
            Node(Op.GATHER, ["apart", f"at_{half}"], [f"{half}_rows"], GatherOptions(axis=0)),
            Node(Op.TRANSPOSE, [f"{half}_rows", "to_cells"], [half], TransposeOptions()),
        ]
    nodes += [
        Node(Op.CONV_2D, ["second", "filter", "bias"], ["made"], ONE_CELL),
        Node(Op.CONCATENATION, ["first", "made"], ["y"], ConcatenationOptions(axis=3)),
    ]
    return graph_model(tensors, nodes, ["y"])


@pytest.mark.parametrize("place", [0, 1])
def test_gathered_halves(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    model, codes = halves(place), every_code(16, TensorType.INT8)
    assert optimised_nodes(model) == {"QLinearConv": 2, "Concat": 1}
    got, _ = ours(model, [codes])
    with moved(monkeypatch):
        assert optimised_nodes(model)["Gather"] == 2
        by_moving, _ = ours(model, [codes])
    np.testing.assert_array_equal(got[0], by_moving[0])
    assert np.abs(got[0].astype(int) - litert(model, [codes])[0]).max() <= 1


def test_gathered_halves_in_order() -> None:
    """What is no other order is moved."""
    model, codes = halves(0, plain=True), every_code(16, TensorType.INT8)
    assert optimised_nodes(model)["QLinearConv"] <= 2
    got, _ = ours(model, [codes])
    assert np.abs(got[0].astype(int) - litert(model, [codes])[0]).max() <= 1


def test_every_tensor_is_kept() -> None:
    model, codes = half_units(), every_code(16, TensorType.INT8)
    kept, _ = ours(model, [codes], experimental_preserve_all_tensors=True)
    np.testing.assert_array_equal(kept[0], ours(model, [codes])[0][0])
