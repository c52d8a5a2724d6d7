"""LayerNormalization and RMS norm as single nodes, against the unfused graph and LiteRT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node as Operator
from tests.one_op import T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import TreeModel, answers, unfused
from tflite_ort import export_onnx
from tflite_ort.opmap.rules.operators.matching import Leaf, Node
from tflite_ort.opmap.rules.operators.normalization import Norm, layer_norms, rms_norms
from tflite_ort.schema import Op, ReducerOptions

Array = npt.NDArray[Any]

SHAPE = (2, 5, 8)
# Both are sums of eight floats: they differ by their rounding.
RTOL = 2e-6

LAYER_NORMS, RMS_NORMS = list(layer_norms()), list(rms_norms())


def leaves(norm: Norm, seed: int = 0, **other: Any) -> Mapping[Leaf, Any]:
    rng = np.random.default_rng(seed)
    vectors = (rng.uniform(0.5, 2, SHAPE[-1:]).astype(np.float32) for _ in range(2))
    scale, bias = vectors
    values = {"x": SHAPE, "epsilon": np.float32([1e-5]), "scale": scale, "bias": bias}
    values |= {"offset": np.float32([0]), "power": np.float32([2])} | other
    return {
        part: values[name] for name in values if (part := getattr(norm, name, None)) is not None
    }


def model_of(norm: Norm, **other: Any) -> TreeModel:
    return TreeModel(norm.root, leaves(norm, **other), (2,))


def inputs(seed: int = 1, shape: tuple[int, ...] = SHAPE, offset: float = 3) -> list[Array]:
    print(f"seed {seed}")
    return [np.random.default_rng(seed).normal(offset, 2, shape).astype(np.float32)]


def check(model: bytes, x: list[Array], node: str) -> None:
    """One node, and numbers as those of the unfused graph and of LiteRT."""
    counts = optimised_nodes(model)
    assert counts[node] == 1, counts
    (got,), (want,), (theirs,) = answers(model, x), unfused(model, x), litert(model, x)
    limit = RTOL * np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=limit)
    np.testing.assert_allclose(got, theirs, rtol=0, atol=limit)


@pytest.mark.parametrize("number", range(len(LAYER_NORMS)))
def test_layer_normalization_is_one_node(number: int) -> None:
    check(model_of(LAYER_NORMS[number]).content(), inputs(), "LayerNormalization")


@pytest.mark.parametrize("number", range(len(RMS_NORMS)))
def test_rms_norm_is_one_node(number: int) -> None:
    check(model_of(RMS_NORMS[number]).content(), inputs(), "SimplifiedLayerNormalization")


def test_exports_have_the_standard_nodes() -> None:
    types = [node.op_type for node in export_onnx(model_of(LAYER_NORMS[0]).content()).graph.node]
    assert types == ["LayerNormalization"]
    nodes = export_onnx(model_of(RMS_NORMS[0]).content()).graph.node
    assert all(not node.domain and node.op_type != "SimplifiedLayerNormalization" for node in nodes)


def test_a_mean_without_its_dimension_and_reshapes_in_between() -> None:
    """As litert-torch writes it: means as [5], and a list of axes with those of size 1."""
    names = [("mean", (5,)), ("mean3", (1, 5, 1)), ("squares", (1, 5, 8)), ("var", (5,))]
    names += [("padded", (5,)), ("inverse", (5,)), ("shift", (5,)), ("offset", (5,))]
    names += [("inverse3", (1, 5, 1)), ("offset3", (1, 5, 1)), ("scaled", (1, 5, 8))]
    tensors = {"x": T((1, 5, 8)), **{name: T(shape) for name, shape in names}, "y": T((1, 5, 8))}
    tensors |= {"axes": T.constant(np.int32([0, 2])), "three": T.constant(np.int32([1, 5, 1]))}
    tensors |= {"epsilon": T.constant(np.float32(1e-5)), "zero": T.constant(np.float32(0))}
    nodes = [
        Operator(Op.MEAN, ["x", "axes"], ["mean"], ReducerOptions()),
        Operator(Op.RESHAPE, ["mean", "three"], ["mean3"]),
        Operator(Op.SQUARED_DIFFERENCE, ["x", "mean3"], ["squares"]),
        Operator(Op.MEAN, ["squares", "axes"], ["var"], ReducerOptions()),
        Operator(Op.ADD, ["var", "epsilon"], ["padded"]),
        Operator(Op.RSQRT, ["padded"], ["inverse"]),
        Operator(Op.MUL, ["inverse", "mean"], ["shift"]),
        Operator(Op.SUB, ["zero", "shift"], ["offset"]),
        Operator(Op.RESHAPE, ["inverse", "three"], ["inverse3"]),
        Operator(Op.MUL, ["x", "inverse3"], ["scaled"]),
        Operator(Op.RESHAPE, ["offset", "three"], ["offset3"]),
        Operator(Op.ADD, ["scaled", "offset3"], ["y"]),
    ]
    model = graph_model(tensors, nodes, ["y"])
    check(model, inputs(shape=(1, 5, 8)), "LayerNormalization")


def _is_of_flax(norm: Norm) -> bool:
    """Whether its variance is a difference of two numbers, cut at 0."""
    waiting = [norm.root]
    for part in waiting:
        waiting += [each for each in part.operands if isinstance(each, Node)]
    return any(part.activations for part in waiting)


@pytest.mark.parametrize("of_flax", [False, True])
@pytest.mark.parametrize("offset", [0.0, 100.0, 1e4])
def test_it_is_as_close_to_the_true_value_as_the_unfused_graph(
    offset: float, of_flax: bool
) -> None:
    norms = [each for each in reversed(LAYER_NORMS) if _is_of_flax(each) is of_flax]
    norm = next(each for each in norms if each.scale and each.bias)
    x, model, parts = inputs(offset=offset), model_of(norm).content(), leaves(norm)
    scale, bias = (np.float64(parts[part]) for part in (norm.scale, norm.bias) if part)
    wide = np.float64(x[0])
    centred = wide - wide.mean(-1, keepdims=True)
    true = centred / np.sqrt(wide.var(-1, keepdims=True) + np.float32(1e-5)) * scale + bias
    fused, plain = answers(model, x)[0], unfused(model, x)[0]
    assert np.abs(fused - true).max() <= 2 * np.abs(plain - true).max() + 1e-6


def off(counts: Any) -> bool:
    return not counts["LayerNormalization"] and not counts["SimplifiedLayerNormalization"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("epsilon", np.float32([0])),
        ("epsilon", np.full(8, 1e-5, np.float32)),
        ("offset", np.float32([1])),
        ("scale", np.ones((5, 1), np.float32)),
        ("bias", np.ones((2, 1, 8), np.float32)),
    ],
)
def test_what_is_no_norm_stays(part: str, value: Array) -> None:
    norm = next(n for n in LAYER_NORMS if getattr(n, part) is not None and n.bias is not None)
    model = model_of(norm, **{part: value})
    # An offset is the bias of a norm without factors.
    assert off(optimised_nodes(model.content())) or part in ("scale", "bias", "offset")
    x = inputs()
    for got, want in zip(answers(model.content(), x), litert(model.content(), x), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * max(1.0, np.abs(want).max()))


def test_a_power_other_than_two_stays() -> None:
    norm = next(norm for norm in RMS_NORMS if norm.power is not None)
    assert off(optimised_nodes(model_of(norm, power=np.float32([4])).content()))


def test_a_mean_that_is_read_elsewhere_is_made() -> None:
    model = model_of(LAYER_NORMS[0])
    mean = next(op.outputs[0] for op in model.operators if op.op is Op.MEAN)
    content, x = model.content(mean), inputs()
    assert off(optimised_nodes(content))
    for got, want in zip(answers(content, x), litert(content, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_means_of_other_axes_stay() -> None:
    model = TreeModel(LAYER_NORMS[0].root, leaves(LAYER_NORMS[0]), (1,)).content()
    assert off(optimised_nodes(model))
    (got,), (want,) = answers(model, inputs()), litert(model, inputs())
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_a_mean_that_broadcasts_along_other_rows_is_no_norm() -> None:
    """x [4, 4] minus its means [4]: TFLite takes mean j off column j."""
    tensors = {"x": T((4, 4)), "axes": T.constant(np.int32([1])), "mean": T((4,))}
    tensors |= {"centred": T((4, 4)), "squares": T((4, 4)), "var": T((4, 1)), "padded": T((4, 1))}
    tensors |= {"epsilon": T.constant(np.float32(1e-5)), "inverse": T((4, 1)), "y": T((4, 4))}
    nodes = [
        Operator(Op.MEAN, ["x", "axes"], ["mean"], ReducerOptions()),
        Operator(Op.SUB, ["x", "mean"], ["centred"]),
        Operator(Op.MUL, ["centred", "centred"], ["squares"]),
        Operator(Op.MEAN, ["squares", "axes"], ["var"], ReducerOptions(keep_dims=True)),
        Operator(Op.ADD, ["var", "epsilon"], ["padded"]),
        Operator(Op.RSQRT, ["padded"], ["inverse"]),
        Operator(Op.MUL, ["centred", "inverse"], ["y"]),
    ]
    model, x = graph_model(tensors, nodes, ["y"]), inputs(shape=(4, 4))
    assert not optimised_nodes(model)["LayerNormalization"]  # but the RMS norm of what is centred
    np.testing.assert_allclose(answers(model, x)[0], litert(model, x)[0], rtol=0, atol=1e-5)
