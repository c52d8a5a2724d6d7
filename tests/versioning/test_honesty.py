"""Files whose versions do not say what they need: warned of, run as LiteRT runs them, put right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tests.models import model_paths
from tests.one_op import T, assert_close, one_op_model, ours
from tests.oracle import litert
from tflite_ort.schema import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    LSTMOptions,
    Op,
    OperatorCode,
    Padding,
    TensorType,
    read_model,
    write_model,
)
from tflite_ort.schema.metadata import metadata_text, with_metadata_text
from tflite_ort.schema.model import Model
from tflite_ort.versioning import (
    declared_runtime,
    is_known,
    minimum_runtime,
    required_versions,
    update_versions,
    version_warnings,
)
from tflite_ort.versioning.runtime import release

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


@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.stem)
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


@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.stem)
def test_litert_loads_an_updated_file_as_it_loads_the_original(path: Path) -> None:
    updated = write_model(update_versions(read_model(path)))
    assert litert_error(updated) == litert_error(path.read_bytes())


IMAGE = T((1, 7, 7, 2))
WEIGHTS = T.constant(np.linspace(-1, 1, 18, dtype=np.float32).reshape(1, 3, 3, 2))
CODES = T((1, 7, 7, 2), TensorType.INT8, 0.05, 3)
DISHONEST = [
    (
        Op.DEPTHWISE_CONV_2D,
        [IMAGE, WEIGHTS],
        T((1, 3, 3, 2)),
        DepthwiseConv2DOptions(Padding.VALID, 1, 1, dilation_w_factor=2, dilation_h_factor=2),
        2,
    ),
    (Op.CONV_2D, [T((1, 7, 7, 4)), WEIGHTS], None, Conv2DOptions(Padding.VALID, 1, 1), 6),
    (Op.ADD, [CODES, CODES], T((1, 7, 7, 2), TensorType.INT8, 0.1), AddOptions(), 2),
    (
        Op.RESIZE_BILINEAR,
        [IMAGE, T.constant(np.array([14, 14], np.int32))],
        T((1, 14, 14, 2)),
        ResizeBilinearOptions(half_pixel_centers=True),
        3,
    ),
    (Op.FULLY_CONNECTED, [T((2, 3)), T((4, 3))], T((2, 4)), FullyConnectedOptions(), 6),
    (Op.SLICE, [T((1, 1, 2, 2, 2)), *[T.constant(np.ones(5, np.int32))] * 2], None, None, 5),
]
