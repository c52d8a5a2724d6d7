"""Constants in longer runs: the same numbers, with operands of as many axes as the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model, one_op_model
from tests.optimised import optimised_graphs
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort import Interpreter
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes.longer_runs import _longer, _made, _run
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import AddOptions, Conv2DOptions, MulOptions, Op, Padding, TensorType

SEED = 5
RULE = "longer runs"
INT8, INT16 = TensorType.INT8, TensorType.INT16


def operands(content: bytes, *kinds: str) -> list[Sequence[int]]:
    """The shapes of the constants that nodes of these kinds read."""
    return [
        initializer.dims
        for model in optimised_graphs(content)
        for node in model.graph.node
        for initializer in model.graph.initializer
        if node.op_type in kinds and initializer.name in node.input
    ]


def check(content: bytes, *inputs: Any) -> None:
    (got,) = answers(content, inputs)
    with without(RULE):
        (plain,) = answers(content, inputs)
    np.testing.assert_array_equal(got, plain)
    np.testing.assert_array_equal(got, litert(content, inputs)[0])


@pytest.mark.parametrize(
    ("shape", "sizes", "run"),
    [
        ((), (1, 8, 1, 1), 1),
        ((1,), (1, 8, 1, 1), 1),
        ((1, 1), (1, 8, 1, 1), 1),
        ((1, 1, 1), (1, 8, 1, 1), 8),
        ((1, 1, 1, 1), (1, 8, 1, 1), 8),
        ((), (8, 1, 4), 4),
        ((), (1, 1, 1, 8), 8),
        ((), (2, 3, 8), 48),
        ((3, 1), (2, 3, 8), 8),
        ((8,), (2, 3, 8), 8),
        ((3, 8), (2, 3, 8), 24),
        ((1, 3, 1), (2, 3, 1), 3),
    ],
)
def test_runs(shape: tuple[int, ...], sizes: tuple[int, ...], run: int) -> None:
    assert _run(shape, sizes) == run


@pytest.mark.parametrize(
    ("shape", "sizes", "longer"),
    [
        ((), (1, 96, 1, 1), (1, 1, 1, 1)),
        ((), (1, 8, 1, 1), None),  # few runs
        ((), (96, 4, 4), None),  # one run
        ((96, 1, 1), (1, 96, 2, 2), (1, 96, 2, 2)),
        ((96, 1, 1), (1, 96, 24, 24), None),
        ((8,), (1, 64, 64, 8), (1, 1, 64, 8)),
        ((1, 1), (0, 5), None),
        ((7,), (1, 64, 64, 8), None),  # what no file may say
        ((0,), (1, 64, 64, 8), None),
    ],
)
def test_longer_shapes(
    shape: tuple[int, ...], sizes: tuple[int, ...], longer: tuple[int, ...] | None
) -> None:
    assert _longer(shape, sizes) == longer


def test_layer_of_16_bits_over_one_cell() -> None:
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    x, y = T((1, 3, 3, 80), INT16, scale=0.001), T((1, 1, 1, 96), INT16, scale=0.4)
    scales = rng.uniform(0.005, 0.02, 96).tolist()
    weights = rng.integers(-127, 128, (96, 3, 3, 80)).astype(np.int8)
    bias = rng.integers(-(2**20), 2**20, 96, np.int64)
    tensors = [
        x,
        T.constant(weights, INT8, scale=scales, axis=0),
        T.constant(bias, TensorType.INT64, scale=[0.001 * each for each in scales], axis=0),
    ]
    options = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1)
    content = one_op_model(Op.CONV_2D, tensors, [y], options, 4)
    check(content, x.random(rng))
    read = operands(content, "Add")
    assert [1, 1, 1, 1] in read
    with without(RULE):
        assert [1, 1, 1, 1] not in operands(content, "Add")


@pytest.mark.parametrize("type", [TensorType.FLOAT32, INT8])
def test_row_over_a_large_image(type: TensorType) -> None:
    """What is computed is repeated too, as the styles of a style transfer."""
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    quantized: dict[str, Any] = {} if type is TensorType.FLOAT32 else {"scale": 0.05}
    shapes = {"x": (1, 64, 64, 8), "a": (1, 1, 1, 8), "b": (1, 1, 1, 8), "y": (1, 64, 64, 8)}
    tensors = {name: T(shape, type, **quantized) for name, shape in shapes.items()}
    tensors |= {"row": T(shapes["a"], type, **quantized)}
    nodes = [
        Node(Op.ADD, ["a", "b"], ["row"], AddOptions(), 2),
        Node(Op.ADD, ["x", "row"], ["y"], AddOptions(), 2),
    ]
    content = graph_model(tensors, nodes, ["y"])
    check(content, *(tensors[name].random(rng) for name in ("x", "a", "b")))
    (model,) = optimised_graphs(content)
    assert "Expand" in {node.op_type for node in model.graph.node}


def test_number_over_a_column() -> None:
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    x, y = T((1, 40, 50, 1)), T((1, 40, 50, 1))
    tensors = [x, T.constant(np.array([1.7], np.float32))]
    content = one_op_model(Op.MUL, tensors, [y], MulOptions(), 1)
    check(content, x.random(rng))
    assert operands(content, "Mul") == [[1, 1, 1, 1]]


@pytest.mark.parametrize("keeps", [False, True])
def test_row_of_codes_over_floats(keeps: bool) -> None:
    """The codes are repeated, also where every tensor has its type in the graph."""
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    small, large = (1, 1, 1, 8), (1, 64, 64, 8)
    tensors = {name: T(small, INT8, scale=0.05) for name in ("a", "b", "row")}
    tensors |= {"x": T(large, INT8, scale=0.05)}
    tensors |= {"floats": T(small), "image": T(large), "y": T(large)}
    nodes = [
        Node(Op.ADD, ["a", "b"], ["row"], AddOptions(), 2),
        Node(Op.DEQUANTIZE, ["row"], ["floats"], None, 2),
        Node(Op.DEQUANTIZE, ["x"], ["image"], None, 2),
        Node(Op.ADD, ["image", "floats"], ["y"], AddOptions(), 1),
    ]
    content = graph_model(tensors, nodes, ["y"])
    interpreter = Interpreter(model_content=content, experimental_preserve_all_tensors=keeps)
    interpreter.allocate_tensors()
    given = {}
    for detail in interpreter.get_input_details():
        given[detail["name"]] = tensors[detail["name"]].random(rng)
        interpreter.set_tensor(detail["index"], given[detail["name"]])
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    inputs = [given[name] for name in (d["name"] for d in interpreter.get_input_details())]
    np.testing.assert_array_equal(got, litert(content, inputs)[0])


def test_uneven_parts_have_no_size() -> None:
    """Five rows in two parts are three and two."""
    x = ir.Value("x", dtype=ir.DataType.FLOAT, shape=(1, 5, 64, 1))
    parts = [ir.Value(name) for name in "ab"]
    split = ir.Node("Split", [x], parts, attributes={"axis": 1, "num_outputs": 2})
    assert _made(split, [(1, 5, 64, 1)]) is None
    assert _made(split, [(1, 6, 64, 1)]) == (1, 3, 64, 1)
