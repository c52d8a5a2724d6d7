"""Forms of tensors in the graph under construction: made once, reused, taken back on refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflite_ort.opmap import Domain, Graph, Layout, Target
from tflite_ort.schema import (
    ActivationFunctionType,
    Op,
    OperatorView,
    Quantization,
    TensorType,
    TensorView,
    Untranslatable,
)

IMAGE = (1, 4, 6, 8)


def tensor(index: int, shape: tuple[int, ...] = IMAGE, **more: Any) -> TensorView:
    return TensorView(index, f"t{index}", TensorType.FLOAT32, shape, **more)


def codes(index: int, zero_point: int = -3) -> TensorView:
    """int8 codes for a negative zero point, else uint8."""
    type = TensorType.INT8 if zero_point < 0 else TensorType.UINT8
    quantization = Quantization(np.array([0.5], np.float32), np.array([zero_point], np.int64))
    return TensorView(index, f"t{index}", type, IMAGE, quantization=quantization)


def op_types(g: Graph) -> list[str]:
    return [node.op_type for node in g.nodes]


@pytest.fixture
def g() -> Graph:
    return Graph(Target())


def test_a_form_is_made_once(g: Graph) -> None:
    t = tensor(0)
    g.add_input(t, "x", t.shape)
    first = g.read(t, layout=Layout.FIRST)
    assert g.read(t, layout=Layout.FIRST) is first
    assert g.read(t).name == "x"
    assert op_types(g) == ["Transpose"]


def test_channels_first_and_back_needs_no_second_transpose(g: Graph) -> None:
    t, u = tensor(0), tensor(1)
    g.add_input(t, "x", t.shape)
    g.write(u, g.op("Neg", g.read(t, layout=Layout.FIRST)), layout=Layout.FIRST)
    assert g.layout(u) is Layout.FIRST
    g.op("Neg", g.read(u, layout=Layout.FIRST))
    assert op_types(g) == ["Transpose", "Neg", "Neg"]


@pytest.mark.parametrize("shape", [(2, 1, 1, 8), (2, 4, 6, 1)])
def test_a_layout_that_moves_nothing_is_a_reshape(g: Graph, shape: tuple[int, ...]) -> None:
    t = tensor(0, shape)
    g.add_input(t, "x", t.shape)
    g.read(t, layout=Layout.FIRST)
    assert op_types(g) == ["Reshape"]


def test_layout_is_where_the_least_data_moves(g: Graph) -> None:
    large, small = tensor(0), tensor(1, (1, 1, 1, 8))
    g.add_input(small, "small", small.shape)
    g.write(large, g.op("Neg", g.read(small)), layout=Layout.FIRST)
    assert g.layout(large, small) is Layout.FIRST
    assert g.layout(small) is Layout.LAST


def test_int8_is_carried_as_uint8_and_given_back_as_int8(g: Graph) -> None:
    t, u = codes(0), codes(1)
    g.add_input(t, "x", t.shape)
    g.write(u, g.op("Relu", g.read(t)))
    g.read(u, domain=Domain.FILE)
    assert op_types(g) == [
        "DequantizeLinear",  # int8 as the file has it
        "QuantizeLinear",  # to uint8
        "DequantizeLinear",
        "Relu",
        "QuantizeLinear",
        "DequantizeLinear",
        "QuantizeLinear",  # to int8
    ]
    zero_points = {
        node.op_type + str(i): node.inputs[2].const_value.array  # type: ignore[union-attr]
        for i, node in enumerate(g.nodes)
        if node.op_type != "Relu"
    }
    assert zero_points["QuantizeLinear4"] == np.uint8(125)
    assert zero_points["QuantizeLinear6"] == np.int8(-3)


def test_a_carried_boundary_needs_no_conversion() -> None:
    g = Graph(Target(carried_boundary=True))
    t = codes(0)
    assert g.add_input(t, "x", t.shape).dtype.numpy() == np.uint8
    assert g.read(t, domain=Domain.STORED).name == "x"
    assert op_types(g) == []


@pytest.mark.parametrize(("zero_point", "clamped"), [(0, False), (7, True)])
def test_a_clamp_that_the_range_implies_is_left_out(
    g: Graph, zero_point: int, clamped: bool
) -> None:
    t, u = codes(0, zero_point=125), codes(1, zero_point=zero_point)
    g.add_input(t, "x", t.shape)
    g.write(u, g.read(t), activation=ActivationFunctionType.RELU)
    assert ("Clip" in op_types(g)) is clamped


def test_constants_change_form_without_nodes(g: Graph) -> None:
    data = np.arange(192, dtype=np.float32).reshape(IMAGE)
    value = g.read(tensor(0, constant=data), layout=Layout.FIRST)
    assert value.const_value is not None
    np.testing.assert_array_equal(value.const_value.array, data.transpose(0, 3, 1, 2))
    low_rank = g.read(tensor(1, (8,), constant=data.ravel()[:8]), layout=Layout.FIRST, rank=4)
    assert low_rank.const_value is not None
    assert low_rank.const_value.shape == (1, 8, 1, 1)
    assert op_types(g) == []


@pytest.mark.parametrize(("weights", "dtype"), [("uint8", np.uint8), ("int8", np.int8)])
def test_weights_of_either_sign_are_the_same_numbers(weights: str, dtype: Any) -> None:
    quantization = Quantization(np.array([0.5, 2], np.float32), np.array([0, 0], np.int64), axis=0)
    data = np.array([[-128, 127], [0, 5]], np.int8)
    t = TensorView(0, "w", TensorType.INT8, (2, 2), data, quantization)
    g = Graph(Target(weights))
    node = g.weights(t).producer()
    assert node is not None
    stored, scale, zero = (value.const_value.array for value in node.inputs)  # type: ignore[union-attr]
    assert stored.dtype == zero.dtype == dtype
    real = (stored.astype(int) - zero.astype(int)[:, None]) * scale[:, None]
    np.testing.assert_array_equal(real, data * np.array([[0.5], [2]]))


def test_a_refused_operator_leaves_nothing_behind(g: Graph) -> None:
    t = tensor(0)
    g.add_input(t, "x", t.shape)
    op = OperatorView(Op.NEG, 1, 0, (t,), (tensor(1),), None)
    with pytest.raises(Untranslatable, match="for a reason"), g.at(op):
        g.write(op.output, g.op("Neg", g.read(t, layout=Layout.FIRST)), layout=Layout.FIRST)
        raise Untranslatable("for a reason")
    assert op_types(g) == []
    assert g.layout(t) is Layout.LAST
    u = codes(2)
    g.add_input(u, "u", u.shape)
    with pytest.raises(Untranslatable, match="again"), g.at(op):
        g.read(u, layout=Layout.FIRST, domain=Domain.STORED)
        raise Untranslatable("again")
    assert op_types(g) == []
    assert g.read(u, domain=Domain.FILE).name == "u"
    with pytest.raises(Untranslatable, match="no value"):
        g.read(op.output)


def test_what_a_refused_operator_noted_is_forgotten(g: Graph) -> None:
    t = tensor(0)
    g.add_input(t, "x", t.shape)
    g.note("offered", t, "channels")
    op = OperatorView(Op.NEG, 1, 0, (t,), (tensor(1),), None)
    with pytest.raises(Untranslatable), g.at(op):
        g.note("offered", t, None)
        g.note("wide", t, "made")
        raise Untranslatable("for a reason")
    assert (g.noted("offered", t), g.noted("wide", t)) == ("channels", None)
    assert g.operator_of(op.output) is op and g.operator_of(t) is None
    with g.at(op):
        make = g.later(lambda: g.write(op.output, g.op("Neg", g.read(t))))
    make()
    assert g.nodes[0].name == f"{op.label}/Neg"
    g.forget_notes()
    assert g.noted("offered", t) is None


def test_a_body_captures_forms_and_records_none(g: Graph) -> None:
    t = codes(0)
    g.add_input(t, "x", t.shape)
    stored = g.read(t, domain=Domain.STORED)
    body = g.body((), lambda _: [g.op("Identity", g.read(t, domain=Domain.STORED))])
    assert body.nodes[0].inputs[0] is stored
    u = codes(1)
    g.add_input(u, "y", u.shape)
    with pytest.raises(RuntimeError, match=r"body records tensor 't1' as channels-last, stored"):
        g.body((), lambda _: [g.read(u)])


def test_a_body_writes_no_tensor_of_the_outer_graph(g: Graph) -> None:
    t, u = tensor(0), tensor(1)
    g.add_input(t, "x", t.shape)

    def build(_: Any) -> list[Any]:
        g.write(u, g.op("Neg", g.read(t)))
        return [g.read(u)]

    with pytest.raises(RuntimeError, match="records tensor 't1'"):
        g.body((), build)


def test_a_body_has_a_graph_of_its_own_for_the_tensors_of_a_subgraph(g: Graph) -> None:
    t, u = tensor(0), tensor(1)
    g.add_input(t, "x", t.shape)
    forms = g.forms_as(t, u)

    def build(_: Any) -> list[Any]:
        inner = g.of_subgraph()
        inner.take(u, forms)
        return [g.op("Neg", inner.read(u, layout=Layout.FIRST))]

    body = g.body((), build)
    assert [node.op_type for node in body.nodes] == ["Transpose", "Neg"]
    assert op_types(g) == []
