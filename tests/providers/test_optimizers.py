"""The optimisers of ONNX Runtime that sessions leave out find nothing in the graphs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import model_path
from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_graphs, optimised_nodes
from tflite_ort.providers import optimizers
from tflite_ort.schema import AddOptions, BatchMatMulOptions, Op

NETWORKS = (
    "coral__keras_lstm_mnist_ptq.tflite",
    "litert__odml_sdpa_composite_gqa.tflite",
    "litert__qwen_fc_blockwise_quantized.tflite",
    "litert__simple_group_norm_op.tflite",
    "litert__torchaudio_conformer.tflite",
    "mlperf-tiny__kws_ref_model.tflite",
    "mlperf-tiny__vww_96_float.tflite",
    "pypi-mediapipe__face_detection_short_range.tflite",
    "tf__gru_f32.tflite",
    "tf__lstm_seq_dr.tflite",
    "tflite-support__movie_review.tflite",
    "tflm__dtln_noise_suppression.tflite",
)
# Of one node each.
ALONE = (
    "litert__add_with_const_input.tflite",
    "litert__argmax.tflite",
    "litert__qwen_fc_blockwise_quantized.tflite",
    "litert__simple_mirror_pad_reflect_op.tflite",
    "litert__single_softmax_min_minus_5_max_plus_5.tflite",
    "tflite2onnx__prelu.float32.tflite",
    "tflite2onnx__transpose.float32.tflite",
    "tflm__strided_slice5.tflite",
)


def every_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave none out from now on."""
    monkeypatch.setattr(optimizers, "left_out", lambda operators: frozenset())
    monkeypatch.setattr(optimizers, "needs_more", lambda operators: True)
    monkeypatch.setattr(optimizers, "keep_alone", lambda operators: False)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_becomes_what_all_optimisers_make_of_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_path(name)
    nodes = optimised_nodes(path)
    every_one(monkeypatch)
    assert nodes == optimised_nodes(path)


@pytest.mark.parametrize("activation", [Op.RELU, Op.TANH], ids=lambda op: op.name)
def test_a_product_and_a_sum_become_one_node_with_their_activation(
    activation: Op, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (4, 8), "w": (8, 16), "b": (16,), **dict.fromkeys("yzr", (4, 16))}
    tensors = {name: T(shape) for name, shape in shapes.items()}
    for name in "wb":
        tensors[name] = T.constant(rng.normal(0, 1, shapes[name]).astype(np.float32))
    nodes = [
        Node(Op.BATCH_MATMUL, ["x", "w"], ["y"], BatchMatMulOptions()),
        Node(Op.ADD, ["y", "b"], ["z"], AddOptions()),
        Node(activation, ["z"], ["r"]),
    ]
    model = graph_model(tensors, nodes, ["r"])
    made = optimised_nodes(model)
    assert made == {"FusedGemm": 1}
    every_one(monkeypatch)
    assert made == optimised_nodes(model)


def test_a_plain_graph_is_left_to_the_basic_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = {name: T([1, 4, 4, 3]) for name in "xyz"}
    nodes = [Node(Op.ABS, ["x"], ["y"]), Node(Op.RELU, ["y"], ["z"])]
    model = graph_model(tensors, nodes, ["z"])
    made = optimised_nodes(model)
    assert not optimizers.needs_more(made.keys())
    assert {"NchwcTransformer", "MatMulAddFusion"} <= optimizers.left_out(frozenset({"Conv"})) | {
        *optimizers.left_out(frozenset({"MatMul"}))
    }
    every_one(monkeypatch)
    assert made == optimised_nodes(model)


def test_what_looks_for_an_operator_stays_where_it_is() -> None:
    assert "NchwcTransformer" not in optimizers.left_out(frozenset({"Conv", "Relu"}))
    assert "MatMulAddFusion" not in optimizers.left_out(frozenset({"MatMul", "Add"}))
    assert "QDQSelectorActionTransformer" not in optimizers.left_out(
        frozenset({"DequantizeLinear"})
    )
    for operator in ("Conv", "MatMul", "DequantizeLinear", "Transpose", "Gemm", "Softmax"):
        assert optimizers.needs_more({operator, "Add"})


@pytest.mark.parametrize("name", ALONE)
def test_one_node_is_left_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model_path(name)
    with monkeypatch.context() as patched:
        patched.setattr(optimizers, "left_out", refused)  # nobody asks which are left out
        (graph,) = optimised_graphs(path)
    every_one(monkeypatch)
    (other,) = optimised_graphs(path)
    assert graph.graph.node == other.graph.node
    assert len(graph.graph.node) == 1


def refused(operators: frozenset[str]) -> frozenset[str]:
    raise AssertionError(operators)


def test_a_layer_is_optimised_also_if_it_is_alone() -> None:
    for operator in ("Conv", "QLinearConv", "MaxPool", "DequantizeLinear", "Attention"):
        assert not optimizers.keep_alone({operator})
    assert optimizers.keep_alone({"Softmax"})
