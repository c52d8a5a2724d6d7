"""TFLite_Detection_PostProcess against LiteRT: numpy, ONNX Runtime, and the exported file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models import model_path
from tests.one_op import T
from tests.ops.custom_op import by_exported, by_numpy, by_ort, custom_model, interpreter_of, invoked
from tests.oracle import litert
from tflite_ort import ExportError, ExportWarning, Interpreter, KernelError, ModelError, export_onnx
from tflite_ort.schema import TensorType

Array = npt.NDArray[Any]
Options = dict[str, Any]

NAME = "TFLite_Detection_PostProcess"
SCALES = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
PLAIN: Options = {
    "max_detections": 10,
    "max_classes_per_detection": 1,
    "nms_score_threshold": 0.25,
    "nms_iou_threshold": 0.5,
    "num_classes": 3,
    **SCALES,
}
SSD = "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite"


def model_and_feeds(
    options: Options, rng: np.random.Generator, boxes: int, background: int, quantized: bool
) -> tuple[bytes, list[Array]]:
    """Few different scores, so that many are equal and some are at a threshold."""
    columns = options["num_classes"] + background
    if quantized:
        encodings = T((1, boxes, 4), TensorType.UINT8, scale=0.1, zero_point=120)
        scores = T((1, boxes, columns), TensorType.UINT8, scale=1 / 64, zero_point=3)
        places = rng.integers(121, 256, (boxes, 4)).astype(np.uint8)
        anchors = T.constant(places, scale=0.01, zero_point=120)
        feeds = [encodings.random(rng), (rng.integers(0, 9, scores.shape) * 8).astype(np.uint8)]
    else:
        encodings, scores = T((1, boxes, 4)), T((1, boxes, columns))
        anchors = T.constant(rng.uniform(0.1, 1, (boxes, 4)).astype(np.float32))
        eighths = rng.integers(0, 9, scores.shape).astype(np.float32) / 8
        feeds = [rng.normal(0, 3, encodings.shape).astype(np.float32), eighths]
    count = options["max_detections"] * options["max_classes_per_detection"]
    outputs = [T((1, count, 4)), T((1, count)), T((1, count)), T((1,))]
    return custom_model(NAME, [encodings, scores, anchors], outputs, options), feeds


def detected(outputs: list[Array], options: Options) -> list[Array]:
    """What is defined of the outputs: after the last detection TFLite leaves what there was."""
    count, regular = int(outputs[3][0]), options.get("use_regular_nms", False)
    stride = 1 if regular else options["max_classes_per_detection"]
    classes = min(stride, options["num_classes"])
    lists = (array[0].reshape(-1, stride, *array.shape[2:]) for array in outputs[:3])
    return [*(array[:count, :classes] for array in lists), outputs[3]]


def check(options: Options, model: bytes, feeds: list[Array], folder: Path) -> None:
    want = detected(litert(model, feeds), options)
    found = {"numpy": by_numpy(model, feeds)}
    found |= {"ort": by_ort(model, feeds), "exported": by_exported(model, feeds, folder)}
    for where, outputs in found.items():
        for got, expected in zip(detected(outputs, options), want, strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=where)
    for got, other in zip(found["ort"], found["numpy"], strict=True):
        np.testing.assert_array_equal(got, other)  # zeros after the last


FILE_FIXTURE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@FILE_FIXTURE
@given(
    seed=st.integers(0, 2**32 - 1),
    boxes=st.integers(1, 50),
    background=st.integers(0, 1),
    quantized=st.booleans(),
    options=st.fixed_dictionaries(
        {
            "max_detections": st.integers(1, 20),
            "use_regular_nms": st.booleans(),
            "nms_score_threshold": st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]),
            "nms_iou_threshold": st.sampled_from([0.1, 0.5, 0.6, 1.0]),
            "num_classes": st.integers(1, 6),
        },
        optional={"detections_per_class": st.integers(1, 10)},
    ),
)
def test_random(
    seed: int, boxes: int, background: int, quantized: bool, options: Options, tmp_path: Path
) -> None:
    options = {**SCALES, "max_classes_per_detection": 1, **options}
    rng = np.random.default_rng(seed)
    model, feeds = model_and_feeds(options, rng, boxes, background, quantized)
    check(options, model, feeds, tmp_path)


@FILE_FIXTURE
@given(
    seed=st.integers(0, 2**32 - 1),
    quantized=st.booleans(),
    classes=st.integers(2, 9),
    num_classes=st.integers(1, 9),
)
def test_several_classes_for_each_box(
    seed: int, quantized: bool, classes: int, num_classes: int, tmp_path: Path
) -> None:
    """Many of their scores are equal: which class comes first is what TFLite's heap makes of it."""
    options = {**PLAIN, "max_classes_per_detection": classes, "num_classes": num_classes}
    rng = np.random.default_rng(seed)
    model, feeds = model_and_feeds(options, rng, 20, 1, quantized)
    check(options, model, feeds, tmp_path)


@pytest.mark.parametrize("regular", [False, True])
def test_one_class_for_each_box_takes_no_body(regular: bool) -> None:
    options = {**PLAIN, "use_regular_nms": regular}
    model, _ = model_and_feeds(options, np.random.default_rng(0), 20, 1, True)
    kinds = {node.op_type for node in export_onnx(model).graph.node}
    assert not kinds & {"Scan", "Loop", "If"}
    assert "NonMaxSuppression" in kinds


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    boxes=st.integers(1, 30),
    quantized=st.booleans(),
    options=st.fixed_dictionaries(
        {
            "max_detections": st.integers(1, 9),
            "max_classes_per_detection": st.integers(1, 3),
            "use_regular_nms": st.booleans(),
            "nms_score_threshold": st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]),
            "nms_iou_threshold": st.sampled_from([0.1, 0.5, 1.0]),
            "num_classes": st.integers(1, 4),
        },
        optional={"detections_per_class": st.integers(1, 4)},
    ),
)
def test_steps_for_runtimes_whose_sizes_do_not_depend_on_data(
    seed: int, boxes: int, quantized: bool, options: Options
) -> None:
    """Bit for bit what LiteRT gives, and zeros behind the last box."""
    options = {**SCALES, **options}
    if options["use_regular_nms"]:
        options["max_classes_per_detection"] = 1
    model, feeds = model_and_feeds(options, np.random.default_rng(seed), boxes, 1, quantized)
    proto = export_onnx(model, for_="iree", dequantize=False, float_io=False, opset=21)
    kinds = {node.op_type for node in proto.graph.node}
    assert not kinds & {"NonMaxSuppression", "Compress", "NonZero", "Loop", "If"}
    sizes = [d for each in proto.graph.value_info for d in each.type.tensor_type.shape.dim]
    assert all(size.HasField("dim_value") for size in sizes)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    if quantized:  # the destination reads floats
        scales = {names[0]: (0.1, 120), names[1]: (1 / 64, 3)}
        reals = [
            ((feed.astype(np.float32) - zero) * np.float32(scale))
            for feed, (scale, zero) in zip(feeds, scales.values(), strict=True)
        ]
    else:
        reals = feeds
    got = session.run(None, dict(zip(names, reals, strict=True)))
    want = litert(model, feeds)
    for one, other in zip(detected(got, options), detected(want, options), strict=True):
        np.testing.assert_array_equal(one, other)
    size = options["max_detections"] * options["max_classes_per_detection"]
    each = 1 if options["use_regular_nms"] else options["max_classes_per_detection"]
    assert not any(array[0][int(got[3][0]) * each :].any() for array in got[:3])
    assert [array.shape[1] for array in got[:3]] == [size] * 3


def test_too_many_steps_are_refused() -> None:
    options = {**PLAIN, "max_detections": 201}
    model, _ = model_and_feeds(options, np.random.default_rng(0), 20, 1, True)
    with pytest.raises(ExportError, match="201 boxes, one after the other; at most 200"):
        export_onnx(model, for_="tvm")


def test_opencv_picks_boxes_in_steps() -> None:
    """Its NonMaxSuppression fails below 0, and scores equal to a threshold of 0 are above such a
    number alone."""
    options = {**PLAIN, "nms_score_threshold": 0.0}
    model, _ = model_and_feeds(options, np.random.default_rng(0), 20, 1, False)
    with pytest.warns(ExportWarning, match="64-bit"):
        proto = export_onnx(model, for_="opencv", check=True)
    found = {node.op_type for node in proto.graph.node}
    assert "ArgMax" in found
    assert "NonMaxSuppression" not in found


def test_too_many_classes_for_each_box_to_sort_in_onnx() -> None:
    options = {**PLAIN, "max_classes_per_detection": 17, "num_classes": 30}
    model, feeds = model_and_feeds(options, np.random.default_rng(0), 20, 1, True)
    assert [row.runs_on for row in interpreter_of(model).delegation()] == ["numpy"]
    want, got = litert(model, feeds), by_numpy(model, feeds)
    for one, other in zip(detected(got, options), detected(want, options), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("classes", [1, 2])
def test_no_box_is_good_enough(classes: int, tmp_path: Path) -> None:
    options = {**PLAIN, "nms_score_threshold": 2.0, "max_classes_per_detection": classes}
    model, feeds = model_and_feeds(options, np.random.default_rng(0), 9, 1, False)
    check(options, model, feeds, tmp_path)
    assert all(not output.any() for output in by_ort(model, feeds))


def test_it_runs_without_being_registered() -> None:
    model, feeds = model_and_feeds(PLAIN, np.random.default_rng(1), 9, 1, False)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for got, want in zip(invoked(interpreter, feeds), by_numpy(model, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"num_classes": 5}, "4 scores a box for 5 classes"),
        ({"num_classes": 2}, "4 scores a box for 2 classes"),
        ({"max_detections": -1}, r"are \(-1, 1\)"),
        ({"max_detections": 2**31 - 1}, r"are \(2147483647, 1\)"),
        ({"max_classes_per_detection": 0}, r"are \(10, 0\)"),
        ({"max_detections": 0, "use_regular_nms": True}, r"are \(0, 1\)"),
        ({"detections_per_class": 0, "use_regular_nms": True}, "detections_per_class is 0"),
        ({"nms_iou_threshold": 0.0}, r"nms_iou_threshold is 0.0, expected in \(0, 1\]"),
        ({"nms_iou_threshold": math.nan}, "nms_iou_threshold is nan"),
        ({"max_detections": "many"}, "option 'max_detections' is 'many'"),
        ({"num_classes": 2**40}, "not an integer of 32 bits"),
    ],
)
def test_options_that_do_not_fit_are_refused(changed: Options, reason: str) -> None:
    inputs = [T((1, 9, 4)), T((1, 9, 4)), T.constant(np.ones((9, 4), np.float32))]
    outputs = [T((1, 10, 4)), T((1, 10)), T((1, 10)), T((1,))]
    with pytest.raises(ModelError, match=reason):
        interpreter_of(custom_model(NAME, inputs, outputs, {**PLAIN, **changed}))


def test_options_have_to_be_a_map() -> None:
    inputs = [T((1, 9, 4)), T((1, 9, 4)), T.constant(np.ones((9, 4), np.float32))]
    outputs = [T((1, 10, 4)), T((1, 10)), T((1, 10)), T((1,))]
    with pytest.raises(ModelError, match="not a flexbuffer map"):
        interpreter_of(custom_model(NAME, inputs, outputs, b"\x01\x02\x03"))


def test_a_box_of_negative_size_fails_in_numpy_as_in_tflite() -> None:
    anchors = T.constant(np.full((9, 4), -1, np.float32))
    outputs = [T((1, 10, 4)), T((1, 10)), T((1, 10)), T((1,))]
    model = custom_model(NAME, [T((1, 9, 4)), T((1, 9, 4)), anchors], outputs, PLAIN)
    feeds = [np.zeros((1, 9, 4), np.float32), np.ones((1, 9, 4), np.float32)]
    with pytest.raises(RuntimeError):
        litert(model, feeds)
    with pytest.raises(KernelError, match="negative height or width"):
        by_numpy(model, feeds)


def test_no_boxes_and_no_detections(tmp_path: Path) -> None:
    for boxes, most in ((0, 10), (3, 0)):
        options = {**PLAIN, "max_detections": most}
        model, feeds = model_and_feeds(options, np.random.default_rng(0), boxes, 1, False)
        check(options, model, feeds, tmp_path)


def extremes(shape: tuple[int, ...]) -> dict[str, Array]:
    rows = np.indices(shape)[1]
    return {
        "black": np.zeros(shape, np.uint8),
        "white": np.full(shape, 255, np.uint8),
        "stripes": (rows // 30 % 2 * 255).astype(np.uint8),
        "random": np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8),
    }


def test_ssd_mobilenet_equals_litert_and_its_export_runs_alone(tmp_path: Path) -> None:
    content, path = model_path(SSD).read_bytes(), tmp_path / "ssd.onnx"
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    export_onnx(content, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for name, image in extremes((1, 300, 300, 3)).items():
        want = litert(content, [image])
        alone = session.run(None, {session.get_inputs()[0].name: image})
        for outputs in (invoked(interpreter, [image]), alone):
            for got, expected in zip(outputs, want, strict=True):
                np.testing.assert_array_equal(got, expected, err_msg=name)
