"""Decoded exports of every kind in plain ONNX Runtime give what the tasks' networks give."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_networks import network
from tests.models import model_path
from tests.test_audio_tasks import sound_model
from tests.test_blendshapes import blendshapes
from tests.test_gestures import CANNED, classifier, embedder
from tests.test_scored_detector import detector as scored_detector
from tests.test_tasks import detector
from tflite_ort import WellKnownOpResolver, export_onnx, tasks
from tflite_ort.schema import Op
from tflite_ort.tasks.network import Network

Array = npt.NDArray[Any]
Named = dict[str, Array]

RNG = np.random.default_rng(8)
SMOOTH = np.kron(RNG.uniform(0, 255, (15, 20, 3)), np.ones((8, 8, 1)))
IMAGE = SMOOTH.astype(np.uint8)
ROI = np.array([0.45, 0.55, 0.5, 0.7, 0.3], np.float32)

# So that the detectors find something in this picture.
_LEAST = 0.01

# Runs every model of a folder in a process that cannot import this library.
ALONE = """
import json, sys
sys.modules["tflite_ort"] = None
import numpy, onnxruntime
folder = sys.argv[1]
for name in json.load(open(folder + "/names.json")):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    path = f"{folder}/{name}"
    session = onnxruntime.InferenceSession(path + ".onnx", options, ["CPUExecutionProvider"])
    found = session.run(None, dict(numpy.load(path + ".npz")))
    names = [each.name for each in session.get_outputs()]
    numpy.savez(path + ".out.npz", **dict(zip(names, found)))
"""


def shared(name: str, source: str = "pypi-mediapipe") -> Callable[[], bytes]:
    return lambda: Path(model_path(f"{source}__{name}.tflite")).read_bytes()


def iris() -> bytes:
    return network(64, [RNG.uniform(0, 64, (1, 213)), RNG.uniform(0, 64, (1, 15))], weight=3.0)


def hand_inputs() -> Named:
    return {
        "landmarks": RNG.uniform(size=(21, 3)).astype(np.float32),
        "handedness": np.array(0.75, np.float32),
        "world_landmarks": RNG.normal(size=(21, 3)).astype(np.float32),
        "size": np.array([160, 120], np.float32),
        "rotation": np.array(0.5, np.float32),
    }


def floats(*shape: int) -> Array:
    return RNG.uniform(size=shape).astype(np.float32)


PALM_POINTS = RNG.uniform(-0.1, 0.1, (7, 2))
# By what it is: the kind, how the model is made, and the inputs of one without a picture.
KINDS: Mapping[str, tuple[str, Callable[[], bytes], Callable[[], Named] | None]] = {
    "short range": (
        "face detector",
        shared("face_detection_short_range"),
        None,
    ),
    "full range": (
        "face detector",
        shared("face_detection_full_range_sparse"),
        None,
    ),
    "palms": ("palm detector", lambda: detector(192, 2016, 7, 600, PALM_POINTS), None),
    "bodies": ("pose detector", lambda: detector(224, 2254, 4, 700), None),
    "ssd": (
        "object detector",
        shared("coco_ssd_mobilenet_v1_1.0_quant_2018_06_29", "tflite-support"),
        None,
    ),
    "raw": ("object detector", scored_detector, None),
    "mesh": ("face landmarks", shared("face_landmark"), None),
    "attention": (
        "face landmarks",
        shared("face_landmark_with_attention"),
        None,
    ),
    "hand": ("hand landmarks", shared("hand_landmark_lite"), None),
    "pose": ("pose landmarks", shared("pose_landmark_lite", "npm-mediapipe-holistic"), None),
    "iris": ("iris landmarks", iris, None),
    "selfie": ("segmentation", shared("selfie_segmentation"), None),
    "deeplab": ("segmentation", shared("deeplabv3", "tflite-support"), None),
    "classes": (
        "classifier",
        lambda: network(16, [np.array([[0.0, 3, 1]])], weight=0.1, last=Op.SOFTMAX),
        None,
    ),
    "vector": ("embedding", lambda: network(16, [floats(1, 40)], weight=1.0), None),
    "gestures": (
        "classifier",
        lambda: classifier([0.1, 0.2, 0.6, 0.1], CANNED),
        lambda: {"": floats(1, 127)},
    ),
    "sound": ("audio classifier", sound_model, lambda: {"": floats(1000)}),
    "expressions": ("face blendshapes", blendshapes, lambda: {"": floats(1, 146, 2)}),
    "gesture": ("gesture embedder", embedder, hand_inputs),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Named, Named]]:
    """By name, what the exported model gives in a process of its own, and what a task's network
    does."""
    folder = tmp_path_factory.mktemp("kinds")
    mine: dict[str, Named] = {}
    for name, (kind, content, inputs) in KINDS.items():
        mine[name] = _exported(folder / name, content(), kind, None if inputs is None else inputs())
    (folder / "names.json").write_text(json.dumps(list(KINDS)))
    subprocess.run([sys.executable, "-c", ALONE, str(folder)], check=True)
    return {name: (dict(np.load(f"{folder / name}.out.npz")), mine[name]) for name in KINDS}


def _exported(path: Path, content: bytes, kind: str, inputs: Named | None) -> Named:
    """Write the model and its inputs; what the network of a task gives."""
    decode: bool | str = "image" if inputs is None else True
    resolver = WellKnownOpResolver()
    form = {"decode": decode, "decode_inputs": True, "resolver": resolver}
    exported = export_onnx(content, f"{path}.onnx", **form)
    given = {"image": IMAGE, "roi": ROI} if inputs is None else inputs
    first = exported.graph.input[0].name
    feeds = {name or first: array for name, array in given.items()}
    if kind.endswith("detector"):
        feeds["min_score"] = np.array(_LEAST, np.float32)
    np.savez(f"{path}.npz", **feeds)  # type: ignore[arg-type]
    run = Network(memoryview(content), tasks.BaseOptions(num_threads=1), kind)
    array = feeds.pop(run.input)
    made = run(array, **feeds)
    masks = made.get("confidence_masks")
    if masks is not None and masks.max() > 1:
        # Of an activation the metadata say nothing: a task gives logits then, as MediaPipe's does.
        powers = np.exp(masks - masks.max(axis=0))
        made["confidence_masks"] = powers / powers.sum(axis=0)
    return made


@pytest.mark.parametrize("name", KINDS)
def test_plain_onnx_runtime(name: str, found: Mapping[str, tuple[Named, Named]]) -> None:
    alone, mine = found[name]
    assert alone.keys() == mine.keys()
    for output, array in mine.items():
        assert alone[output].shape == array.shape
        assert alone[output].dtype == array.dtype
        assert array.size
        # Sums of floats are in another order, and sigmoids of them; classes are the same.
        reach = float(np.abs(array).max()) if array.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(alone[output], array, rtol=0, atol=5e-4 * reach + 1e-6)


@pytest.mark.parametrize("last", [Op.LOGISTIC, None])
def test_the_mask_of_one_class(last: Op | None) -> None:
    """Its corners are those of the picture. By the places of a confidence mask it would begin in
    row 22."""
    rows = np.arange(32).reshape(1, 32, 1, 1) - np.full((1, 32, 32, 1), 5.3)
    options = tasks.vision.ImageSegmenterOptions(
        tasks.BaseOptions(model_asset_buffer=network(32, [rows], last=last)),
        output_category_mask=True,
    )
    result = tasks.vision.ImageSegmenter.create_from_options(options).segment(IMAGE)
    assert result.category_mask is not None
    category = result.category_mask.numpy_view()
    assert (category[:21] == 255).all()
    assert (category[21:] == 0).all()
