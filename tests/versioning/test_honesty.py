"""Files whose versions do not say what they need: warned of, run as LiteRT runs them, put right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tests.models import MODELS_DIR, model_paths
from tests.one_op import Case, T, check, one_op_model
from tests.versioning.reference import reference
from tflite_ort.schema import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    LSTMOptions,
    Op,
    OperatorCode,
    Padding,
    ResizeBilinearOptions,
    TensorType,
    read_model,
    write_model,
)
from tflite_ort.schema.file.metadata import metadata_text, with_metadata_text
from tflite_ort.schema.file.model import Model
from tflite_ort.versioning import (
    declared_runtime,
    is_known,
    minimum_runtime,
    required_versions,
    update_versions,
    version_warnings,
)
from tflite_ort.versioning.runtime import release

MODELS = sorted(MODELS_DIR.glob("*.tflite"))

# Model -> operator -> its version in the file and the one it requires, where that is higher.
RAISED = {
    # Written by a quantiser that works on a finished file and leaves the versions alone.
    "coral__traffic_model": {Op.MUL: (1, 3)},
    "litert__add_quantized_int8": {Op.ADD: (1, 2)},
    "litert__blockwise_quantized": {Op.ADD: (1, 2)},
    "litert__mul_quant": {Op.MUL: (1, 4)},
    "litert__single_add_default_a8w8_recipe_quantized": {Op.ADD: (1, 2)},
    "litert__single_mul_default_a16w8_recipe_quantized": {Op.MUL: (1, 4)},
    "litert__single_rsqrt_default_a16w8_recipe_quantized": {Op.RSQRT: (1, 3)},
    # Converters before float16 and int8 weights had versions of their own.
    "npm-mediapipe-holistic__pose_landmark_lite": {Op.DEQUANTIZE: (2, 3)},
    "pypi-mediapipe__face_detection_short_range": {Op.DEQUANTIZE: (2, 3)},
    "pypi-mediapipe__face_landmark": {Op.DEQUANTIZE: (2, 3)},
    "pypi-mediapipe__face_landmark_with_attention": {Op.DEQUANTIZE: (2, 3)},
    "pypi-mediapipe__hand_landmark_lite": {Op.DEQUANTIZE: (2, 3)},
    "tflm__person_detect": {Op.CONV_2D: (2, 3)},
    # As these, and the resizing was written by hand into the converted file.
    "pypi-mediapipe__selfie_segmentation": {Op.DEQUANTIZE: (2, 3), Op.RESIZE_BILINEAR: (1, 3)},
    # Converted before there was a version 8 for int16 data by int8 weights.
    "tflm__conv4": {Op.CONV_2D: (3, 8)},
}


def litert_error(model: bytes) -> str:
    """Why LiteRT does not load a model; empty when it does."""
    try:
        LiteRT(model_content=model)
    except ValueError as error:
        return str(error)
    return ""


def test_every_exception_is_a_model_that_is_there() -> None:
    assert set(RAISED) <= {path.stem for path in model_paths()}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_updated_versions_are_those_of_the_file_or_lower(path: Path) -> None:
    model = read_model(path)
    updated = update_versions(model)
    raised = {
        after.builtin_code: (before.version, after.version)
        for before, after in zip(model.operator_codes, updated.operator_codes, strict=True)
        if after.version > before.version
    }
    assert raised == RAISED.get(path.stem, {})
    assert bool(raised) == any(" and needs " in text for text in version_warnings(model))
    for code in updated.operator_codes:
        assert code.builtin_code is Op.CUSTOM or is_known(code.builtin_code, code.version)
    assert declared_runtime(updated) == minimum_runtime(updated)
    assert version_warnings(updated) == []
    assert update_versions(updated) == updated


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_litert_loads_an_updated_file_as_it_loads_the_original(path: Path) -> None:
    updated = write_model(update_versions(read_model(path)))
    assert litert_error(updated) == litert_error(path.read_bytes())


IMAGE = T((1, 7, 7, 2))
WEIGHTS = T.constant(np.linspace(-1, 1, 18, dtype=np.float32).reshape(1, 3, 3, 2))
GROUPED = T.constant(np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 3, 3, 2))
BIAS = T.constant(np.array([0.5, -0.5], np.float32))
CODES = T((1, 7, 7, 2), TensorType.INT8, 0.05, 3)
ONES = T.constant(np.ones(5, np.int32))
DILATED = DepthwiseConv2DOptions(Padding.VALID, 1, 1, dilation_w_factor=2, dilation_h_factor=2)
HALF = ResizeBilinearOptions(half_pixel_centers=True)

# Version 1 of operators that need the version given.
DISHONEST = [
    (Case("dilation", Op.DEPTHWISE_CONV_2D, [IMAGE, WEIGHTS, BIAS], [T((1, 3, 3, 2))], DILATED), 2),
    (
        Case(
            "groups",
            Op.CONV_2D,
            [T((1, 7, 7, 4)), GROUPED, BIAS],
            [T((1, 5, 5, 2))],
            Conv2DOptions(Padding.VALID, 1, 1),
        ),
        6,
    ),
    (
        Case(
            "int8",
            Op.ADD,
            [CODES, CODES],
            [T((1, 7, 7, 2), TensorType.INT8, 0.1)],
            AddOptions(),
        ),
        2,
    ),
    (
        Case(
            "half-pixel",
            Op.RESIZE_BILINEAR,
            [IMAGE, T.constant(np.array([14, 14], np.int32))],
            [T((1, 14, 14, 2))],
            HALF,
        ),
        3,
    ),
    (
        Case(
            "no-bias",
            Op.FULLY_CONNECTED,
            [T((2, 3)), T((4, 3))],
            [T((2, 4))],
            FullyConnectedOptions(),
        ),
        6,
    ),
    (Case("rank-5", Op.SLICE, [T((2,) * 5), ONES, ONES], [T((1,) * 5)]), 5),
]


@pytest.mark.parametrize(("case", "required"), DISHONEST, ids=lambda row: getattr(row, "name", ""))
def test_a_version_too_low_is_warned_of_and_runs_as_in_litert(case: Case, required: int) -> None:
    check(case)
    model = read_model(case.model())
    assert required_versions(model) == {0: required}
    (warning,) = version_warnings(model)
    assert warning.startswith(f"{case.op.name} says version 1 and needs {required} (")
    check(replace(case, version=required))
    assert update_versions(model).operator_codes[0].version == required


def lstm_of_int16() -> Model:
    """What the rules give version 5, which no TFLite has."""
    data = T((1, 2), TensorType.INT16)
    model = one_op_model(
        Op.LSTM,
        [data, None, T.constant(np.ones((2, 2), np.int8))],
        [data],
        LSTMOptions(),
        version=1,
    )
    return read_model(model)


def test_a_version_that_is_not_registered_is_required_but_not_written() -> None:
    model = lstm_of_int16()
    assert required_versions(model) == {0: 5}
    updated = update_versions(model)
    assert updated.operator_codes[0].version == 4
    assert version_warnings(updated) == []
    assert "needs 5" in version_warnings(model)[0]


def test_versions_are_lowered_and_unused_codes_kept() -> None:
    model = read_model(one_op_model(Op.ADD, [IMAGE, IMAGE], [IMAGE], AddOptions(), version=6))
    unused = OperatorCode(builtin_code=Op.MUL, version=5)
    custom = OperatorCode(builtin_code=Op.CUSTOM, custom_code="Mine", version=7)
    model = replace(model, operator_codes=(*model.operator_codes, unused, custom))
    updated = update_versions(model)
    assert [code.version for code in updated.operator_codes] == [1, 5, 7]
    assert minimum_runtime(model) == "2.23.0"
    assert minimum_runtime(updated) == declared_runtime(updated) == "1.5.0"


def test_a_code_gets_the_most_that_any_of_its_operators_requires() -> None:
    model = read_model(one_op_model(Op.ADD, [CODES, CODES], [CODES], AddOptions()))
    (graph,) = model.subgraphs
    floats = tuple(replace(tensor, type=TensorType.FLOAT32) for tensor in graph.tensors)
    model = replace(model, subgraphs=(graph, replace(graph, tensors=floats)))
    assert required_versions(model) == {0: 2}


def test_a_promised_runtime_too_old_is_warned_of() -> None:
    model = read_model(one_op_model(Op.ADD, [CODES, CODES], [CODES], AddOptions(), version=2))
    promised = with_metadata_text(model, "min_runtime_version", "1.5.0")
    assert version_warnings(model) == []
    assert version_warnings(promised) == [
        "The file promises to run on TFLite 1.5.0, it needs 1.14.0."
    ]


def test_metadata_is_sixteen_bytes_and_replaced() -> None:
    model = with_metadata_text(lstm_of_int16(), "min_runtime_version", "1.5.0")
    model = with_metadata_text(model, "other", "text")
    model = read_model(write_model(with_metadata_text(model, "min_runtime_version", "2.14.4")))
    assert [entry.name for entry in model.metadata] == ["other", "min_runtime_version"]
    data = model.buffers[model.metadata[1].buffer].data
    assert data is not None
    assert data.tobytes() == b"2.14.4" + bytes(10)
    assert metadata_text(model, "min_runtime_version") == "2.14.4"
    assert metadata_text(model, "missing") is None
    with pytest.raises(ValueError, match="at most 16 fit"):
        with_metadata_text(model, "min_runtime_version", "1" * 17)


def test_releases_compare_as_tflite_compares_them() -> None:
    for left, right, is_older in reference("version_tests.json")["compare_runtime_version"]:
        assert (release(left) < release(right)) == is_older
