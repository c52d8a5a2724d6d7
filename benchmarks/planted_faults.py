"""Faults planted in exported models, and how many of them a verification names.

    python -m benchmarks.planted_faults [--count N] [--seed N] [--onnx FOLDER] [NAME...]

Each fault changes one constant, attribute or scale of one random operator of one random network,
such that an output changes. It counts as named if the report's first operator is the one. Every
network is verified without a fault too: nothing must be named there. Models: $TFLITE_ORT_MODELS,
else ../shared/models.

With --onnx faults are planted in the files NAME.onnx of a folder, which another tool made of the
networks. A node there counts as of the operators whose tensors are nearest to it by name.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx

from benchmarks.how_close import MODELS
from tests.verification.faults import operators, owners, plant
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


@dataclass(frozen=True, eq=False)
class Bench:
    """Networks, and where the ONNX files of them are; None: exported here."""

    paths: Sequence[Path]
    folder: Path | None
    rng: np.random.Generator
    _files: dict[Path, onnx.ModelProto] = field(default_factory=dict)
    _reports: dict[Path, Report] = field(default_factory=dict)

    def file(self, path: Path) -> onnx.ModelProto:
        """The ONNX model of a network without a fault."""
        if path not in self._files:
            made = self.folder and onnx.load(self.folder / f"{path.stem}.onnx")
            self._files[path] = made or export_onnx(path)
        return self._files[path]

    def unchanged(self, path: Path) -> Report:
        """Of the file without a fault."""
        if path not in self._reports:
            file = self.file(path)
            self._reports[path] = verify(path, onnx_file=file, inputs=Random(samples=1))
        return self._reports[path]

    def place(self, path: Path) -> tuple[set[str], list[int]]:
        """Random nodes of one operator, and the labels of operators that they may be of."""
        model = self.file(path)
        if self.folder is None:
            labels = operators(model)
            label = list(labels)[self.rng.integers(len(labels))]
            return {label}, labels[label]
        tensors = {each.index: each.name for each in self.unchanged(path).runtimes[0].tensors}
        ops = self.unchanged(path).runtimes[0].operators
        makers = {tensors[i]: op.label for op in ops for i in op.outputs if i in tensors}
        found = {at: labels for at, labels in owners(model, makers).items() if labels}
        at = list(found)[self.rng.integers(len(found))]
        return found[at], [at]

    def attempt(self, path: Path) -> bool | None:
        """Whether a fault in one operator is named; None where none could be planted."""
        model = self.file(path)
        details = Interpreter(path).get_input_details()
        arrays = list(random_inputs(details, 0).values())
        names = [each.name for each in model.graph.input[: len(arrays)]]
        labels, nodes = self.place(path)
        fault = plant(model, nodes, dict(zip(names, arrays, strict=True)), self.rng)
        if fault is None:
            return None
        (result,) = verify(path, onnx_file=fault.model, inputs=Random(samples=1)).runtimes
        named = "nothing" if result.named is None else result.named.label
        right = named in labels
        if result.named is not None and self.folder is not None:
            together = {result.operators[at].label for at in result.named.together}
            right = right or bool(together & labels)
        mark = "named" if right else f"{named} NAMED INSTEAD of {sorted(labels)}"
        print(f"{path.stem}: {fault.what}: {mark}; {result.verdict}: {result.reason}", flush=True)
        return right

    def is_alarm(self, path: Path) -> bool:
        """Whether something is named where nothing is wrong."""
        report = self.unchanged(path)
        return report.verdict is Verdict.OFF or report.runtimes[0].named is not None


def counted(bench: Bench, count: int) -> list[bool]:
    """Whether each of `count` faults is named."""
    found: list[bool] = []
    while len(found) < count:
        path = bench.paths[bench.rng.integers(len(bench.paths))]
        try:
            result = bench.attempt(path)
        except BridgeError as error:
            print(f"{path.stem}: {error}")
            result = False
        if result is not None:
            found.append(result)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NETWORKS, metavar="NAME")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--onnx", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    started, folder = time.perf_counter(), arguments.onnx
    names = [n for n in arguments.names if folder is None or (folder / f"{n}.onnx").exists()]
    paths = [MODELS / f"{name}.tflite" for name in names]
    bench = Bench(tuple(paths), folder, np.random.default_rng(arguments.seed))
    for path in list(paths):
        if error := bench.unchanged(path).runtimes[0].error:
            print(f"{path.stem} does not run: {error.splitlines()[0]}")
            paths.remove(path)
    bench = replace(bench, paths=tuple(paths))
    found = counted(bench, arguments.count)
    alarms = [path.stem for path in paths if bench.is_alarm(path)]
    print(f"seed {arguments.seed}: {sum(found)} of {len(found)} faults named")
    print(f"unchanged: {len(paths)} networks, false alarms: {', '.join(alarms) or 'none'}")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
