"""The bundles of MediaPipe's tasks, made of the models that its wheel ships.

The wheel has the models of the older solutions, without bundles and mostly without metadata. They
get the metadata that the tasks ask for, and are put together as the published bundles are.
"""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.mediapipe_mesh import joined
from tflite_ort.base.files import write_bytes
from tflite_ort.schema import Buffer, Model, read_model, write_model
from tflite_ort.schema.file.model import Metadata
from tflite_ort.schema.file.model_metadata import (
    NAME,
    ColorSpaceType,
    Content,
    FeatureProperties,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    Stats,
    SubGraphMetadata,
    TensorMetadata,
    write_metadata,
)

# Lets MediaPipe compute in float16, of which nothing can be told here.
_HALF = "reduced_precision_support"

ZERO_TO_ONE, MINUS_ONE_TO_ONE = (0.0, 255.0), (127.5, 127.5)

_ATTENTION = "face_landmark/face_landmark_with_attention"
# Whose networks give all points as one output.
_JOINED = {("face_landmarker.task", _ATTENTION), ("holistic_landmarker.task", _ATTENTION)}

# By the file of a task, its models: in the bundle, in the wheel, and mean and std of the input.
BUNDLES = {
    "hand_landmarker.task": (
        ("hand_detector", "palm_detection/palm_detection_full", ZERO_TO_ONE),
        ("hand_landmarks_detector", "hand_landmark/hand_landmark_full", ZERO_TO_ONE),
    ),
    "pose_landmarker.task": (
        ("pose_detector", "pose_detection/pose_detection", MINUS_ONE_TO_ONE),
        ("pose_landmarks_detector", "pose_landmark/pose_landmark_full", ZERO_TO_ONE),
    ),
    "face_landmarker.task": (
        ("face_detector", "face_detection/face_detection_short_range", MINUS_ONE_TO_ONE),
        ("face_landmarks_detector", _ATTENTION, ZERO_TO_ONE),
    ),
    "holistic_landmarker.task": (
        ("face_detector", "face_detection/face_detection_short_range", MINUS_ONE_TO_ONE),
        ("face_landmarks_detector", _ATTENTION, ZERO_TO_ONE),
        ("hand_landmarks_detector", "hand_landmark/hand_landmark_full", ZERO_TO_ONE),
        ("hand_roi_refinement", "holistic_landmark/hand_recrop", ZERO_TO_ONE),
        ("pose_detector", "pose_detection/pose_detection", MINUS_ONE_TO_ONE),
        ("pose_landmarks_detector", "pose_landmark/pose_landmark_full", ZERO_TO_ONE),
    ),
    # For the older solution.
    "face_mesh.task": (
        ("face_detector", "face_detection/face_detection_short_range", MINUS_ONE_TO_ONE),
        ("face_landmarks_detector", _ATTENTION, ZERO_TO_ONE),
    ),
}
SINGLE = {
    "face_detector.tflite": ("face_detection/face_detection_short_range", MINUS_ONE_TO_ONE),
    "selfie_segmenter.tflite": ("selfie_segmentation/selfie_segmentation", ZERO_TO_ONE),
}


def make_bundles(modules: Path, folder: Path) -> None:
    """Write all of them.

    Args:
        modules: the folder ``mediapipe/modules`` of an installed wheel.
    """
    for name, models in BUNDLES.items():
        with zipfile.ZipFile(folder / name, "w") as archive:
            for inner, path, scale in models:
                model = read_model(modules / f"{path}.tflite")
                if (name, path) in _JOINED:
                    model = joined(model)
                content = described(model, *scale)
                archive.writestr(f"{inner}.tflite", content)
    for name, (path, scale) in SINGLE.items():
        write_bytes(folder / name, described(read_model(modules / f"{path}.tflite"), *scale))


def described(model: Model, mean: float, std: float) -> bytes:
    """A model with metadata that says how its picture is normalised."""
    unit = ProcessUnit(NormalizationOptions((mean,), (std,)))
    picture = TensorMetadata(
        name="image",
        content=Content(ImageProperties(ColorSpaceType.RGB)),
        process_units=(unit,),
        stats=Stats((1.0,), (0.0,)),
    )
    outputs = tuple(
        TensorMetadata(name=f"output_{number}", content=Content(FeatureProperties()))
        for number in range(len(model.subgraphs[0].outputs))
    )
    graph = SubGraphMetadata(input_tensor_metadata=(picture,), output_tensor_metadata=outputs)
    table = ModelMetadata(subgraph_metadata=(graph,), min_parser_version="1.0.0")
    others = tuple(each for each in model.metadata if each.name not in (NAME, _HALF))
    buffers = (*model.buffers, Buffer(np.frombuffer(write_metadata(table), np.uint8)))
    metadata = (*others, Metadata(NAME, len(model.buffers)))
    return write_model(replace(model, buffers=buffers, metadata=metadata))
