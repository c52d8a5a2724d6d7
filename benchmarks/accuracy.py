"""How far whole networks are from LiteRT, on random inputs.

    python benchmarks/accuracy.py [--inputs N] [--seed N] [--json FILE] [NAME...]

Float outputs: the largest difference over the largest magnitude. Quantised ones: the mean
difference in quanta from LiteRT's default kernels, beside what LiteRT's own reference kernels
differ from those, and the share of values that are the same. Models: $TFLITE_ORT_MODELS, else
../shared/models.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort import BridgeError, Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.arrays import AnyInterpreter, set_inputs
from tflite_ort.command.benchmark import Difference, difference, litert_interpreter, machine
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.prediction.tensors import unique_names

Array = npt.NDArray[Any]

MODELS = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)
NETWORKS = (
    "tflite-support__mobilenet_v2_1.0_224_quant",
    "coral__tf2_mobilenet_v2_1.0_224_ptq",
    "tflite-support__mobilenet_v1_0.25_224_1_default_1",
    "tflite-support__deeplabv3",
    "mlperf-tiny__vww_96_float",
    "mlperf-tiny__vww_96_int8",
    "mlperf-tiny__kws_ref_model",
    "mlperf-tiny__pretrainedResnet_quant",
    "coral__movenet_single_pose_lightning_ptq",
    "pypi-mediapipe__face_detection_short_range",
    "pypi-mediapipe__face_detection_full_range_sparse",
    "pypi-mediapipe__face_landmark",
    "pypi-mediapipe__hand_landmark_lite",
    "npm-mediapipe-holistic__pose_landmark_lite",
    "litert__torchaudio_conformer",
    "tflite-support__movie_review",
)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One output over all inputs; `reference` is LiteRT's reference against default kernels."""

    network: str
    ours: Difference
    reference: Difference


def measure(network: str, inputs: int, seed: int) -> list[Accuracy]:
    """Every output of a network against LiteRT on `inputs` random inputs."""
    path = MODELS / f"{network}.tflite"
    ours = Interpreter(path, num_threads=2)
    default, reference = litert_interpreter(path, 2), litert_interpreter(path, 2, reference=True)
    if default is None or reference is None:
        raise SystemExit("LiteRT is needed to compare with: pip install ai-edge-litert")
    names = unique_names(ours.get_output_details())
    rows: list[list[Accuracy]] = [[] for _ in names]
    for number in range(inputs):
        arrays = random_inputs(default.get_input_details(), seed + number)
        found = [_outputs(interpreter, arrays) for interpreter in (ours, default, reference)]
        for row, name, mine, theirs, exact in zip(rows, names, *found, strict=True):
            against = difference(name, mine, theirs), difference(name, exact, theirs)
            row.append(Accuracy(network, *against))
    return [_combined(row) for row in rows]


def _outputs(interpreter: AnyInterpreter, arrays: dict[int, Array]) -> list[Array]:
    set_inputs(interpreter, arrays)
    interpreter.invoke()
    return [
        np.array(interpreter.get_tensor(out["index"])) for out in interpreter.get_output_details()
    ]


def _combined(rows: Sequence[Accuracy]) -> Accuracy:
    ours = _over_inputs([row.ours for row in rows])
    return Accuracy(rows[0].network, ours, _over_inputs([row.reference for row in rows]))


def _over_inputs(rows: Sequence[Difference]) -> Difference:
    """The largest of the largest differences, the mean of the means."""
    relative = [row.relative for row in rows if row.relative is not None]
    largest = [row.max_steps for row in rows if row.max_steps is not None]
    means = [row.mean_steps for row in rows if row.mean_steps is not None]
    return Difference(
        rows[0].name,
        max(relative, default=None),
        max(largest, default=None),
        float(np.mean(means)) if means else None,
        float(np.mean([row.exact for row in rows])),
    )


def line(row: Accuracy) -> str:
    ours, reference = row.ours, row.reference
    head = f"{row.network[:48]:48} {ours.name[-24:]:24}"
    if ours.relative is not None:
        return f"{head} {ours.relative:12.2e} {reference.relative:12.2e} {ours.exact:8.1%}"
    return f"{head} {ours.mean_steps:12.5f} {reference.mean_steps:12.5f} {ours.exact:8.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NAME", default=NETWORKS)
    parser.add_argument("--inputs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"{'network':48} {'output':24} {'ours':>12} {'reference':>12} {'exact':>8}")
    rows = []
    for network in arguments.networks:
        try:
            found = measure(network, arguments.inputs, arguments.seed)
        except BridgeError as error:
            print(f"{network[:48]:48} {str(error).splitlines()[0]}")
            continue
        rows += found
        print("\n".join(map(line, found)), flush=True)
    if arguments.json:
        record = {**machine(), "inputs": arguments.inputs, "seed": arguments.seed}
        record["results"] = [asdict(row) for row in rows]
        write_text(arguments.json, json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
