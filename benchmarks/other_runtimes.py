"""Exports of twenty networks in other runtimes, compared with this library's interpreter.

    python -m benchmarks.other_runtimes --python openvino=ENV/bin/python \\
        --python onnxruntime=ENV/bin/python --node FOLDER --json FILE

FOLDER has onnxruntime-node and onnxruntime-web in its node_modules. Models: $TFLITE_ORT_MODELS,
else ../shared/models. Floats are compared by the largest difference over the largest value, codes
in quanta. The command fails if a file does not load, or differs by more than 1e-4 or one quantum
without being listed in KNOWN. `--page docs/exporting.md` writes the table into the page.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.how_close import MODELS
from tflite_ort import Interpreter, export_onnx
from tflite_ort.base.files import write_text, writing
from tflite_ort.command.benchmark import machine
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.opmap.onnx_graph.opsets import OPSET
from tflite_ort.schema import read_model

Array = npt.NDArray[Any]

# Of every kind: convolutions, recurrent cells, attention, tables, detection, streams, sounds.
NETWORKS = [
    "tflite-support__mobilenet_v2_1.0_224_quant",
    "tflite-support__mobilenet_v1_0.25_224_1_default_1",
    "coral__tf2_mobilenet_v2_1.0_224_ptq",
    "coral__movenet_single_pose_lightning_ptq",
    "coral__keras_lstm_mnist_ptq",
    "tflite-support__deeplabv3",
    "tflite-support__movie_review",
    "tflite-support__yamnet_wavin_quantized_mel_relu6",
    "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29",
    "litert__torchaudio_conformer",
    "mlperf-tiny__vww_96_int8",
    "mlperf-tiny__kws_ref_model_float32",
    "mlperf-tiny__pretrainedResnet_quant",
    "pypi-mediapipe__face_detection_short_range",
    "pypi-mediapipe__hand_landmark_lite",
    "pypi-mediapipe__selfie_segmentation",
    "pypi-pymicro-wakeword__hey_jarvis",
    "pypi-basic-pitch__nmp",
    "tflm__dtln_noise_suppression",
    "tf__gru_f32",
]
# By runtime and network, what the runtime computes otherwise.
_ROUNDS = (
    "makes FakeQuantize of QuantizeLinear and DequantizeLinear: it works with real limits in "
    "place of scale and zero point, so values next to a half are rounded the other way, and "
    "random inputs magnify single codes"
)
KNOWN: dict[tuple[str, str], str] = {
    ("openvino", "tflite-support__mobilenet_v2_1.0_224_quant"): _ROUNDS,
    ("openvino", "coral__tf2_mobilenet_v2_1.0_224_ptq"): _ROUNDS,
    ("openvino", "coral__movenet_single_pose_lightning_ptq"): _ROUNDS,
    ("openvino", "tflm__dtln_noise_suppression"): (
        "rounds the activations of fully connected layers with unsigned weights to 8 bits again"
    ),
    ("openvino", "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29"): _ROUNDS
    + "; boxes of random pictures then come in another order",
}
MARK = "<!-- table of other_runtimes -->"
# By runtime and network, the opset of the file where the runtime cannot read that of an export by
# default: OpenVINO takes no axis from the operator DFT of opset 20.
OPSETS = {("openvino", "tflite-support__yamnet_wavin_quantized_mel_relu6"): 19}
FLOAT, QUANTA = 1e-4, 1


def prepare(folder: Path, networks: list[str], runtime: str) -> list[dict[str, Any]]:
    """Exports, inputs and expected outputs, and the list of them."""
    cases = []
    for name in networks:
        model = MODELS / f"{name}.tflite"
        opset = OPSETS.get((runtime, name), OPSET)
        export_onnx(model, folder / f"{name}.onnx", opset=opset, state_defaults=True)
        interpreter = Interpreter(model)
        interpreter.allocate_tensors()
        given = _fed(interpreter, model, folder)
        interpreter.invoke()
        outputs = []
        for at, each in enumerate(interpreter.get_output_details()):
            array = interpreter.get_tensor(each["index"])
            with writing(folder / f"{name}.want{at}.npy") as (stream,):
                np.save(stream, array)
            outputs.append({"name": each["name"], "file": f"{name}.out{at}"})
        cases.append({"name": name, "model": f"{name}.onnx", "inputs": given, "outputs": outputs})
    write_text(folder / "cases.json", json.dumps(cases))
    return cases


def _fed(interpreter: Interpreter, model: Path, folder: Path) -> list[dict[str, Any]]:
    """Random inputs, which the interpreter has got."""
    given = []
    details = interpreter.get_input_details()
    drawn = random_inputs(details, seed=0, limits=index_limits(read_model(model)))
    for at, each in enumerate(details):
        array = drawn[each["index"]]
        interpreter.set_tensor(each["index"], array)
        array.tofile(folder / f"{model.stem}.in{at}")
        given.append(
            {
                "name": each["name"],
                "type": str(array.dtype),
                "shape": list(array.shape),
                "file": f"{model.stem}.in{at}",
            }
        )
    return given


def difference(want: Array, file: Path) -> tuple[float, str]:
    """How far a result is, and the unit."""
    got = np.fromfile(file, want.dtype)
    if got.size != want.size:
        return np.inf, f"elements: {got.size} for {want.size}"
    apart = np.abs(got.reshape(want.shape).astype(np.float64) - want.astype(np.float64))
    if want.dtype.kind != "f":
        return float(apart.max(initial=0)), "quanta"
    return float(apart.max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)), ""


def compared(runtime: str, folder: Path, cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for case in cases:
        name = case["name"]
        error = folder / f"{name}.error"
        if error.exists():
            rows[name] = {"error": error.read_text(encoding="utf-8")[:400], "right": False}
            continue
        parts = [
            difference(np.load(folder / f"{name}.want{at}.npy"), folder / each["file"])
            for at, each in enumerate(case["outputs"])
        ]
        floats = max((apart for apart, unit in parts if unit != "quanta"), default=None)
        quanta = max((apart for apart, unit in parts if unit == "quanta"), default=None)
        right = (floats or 0) <= FLOAT and (quanta or 0) <= QUANTA
        rows[name] = {"floats": floats, "quanta": quanta, "right": right}
    return rows


def cleared(folder: Path) -> None:
    for pattern in ("*.out*", "*.error", "*.begun", "*.done"):
        for path in folder.glob(pattern):
            path.unlink()


def commands(given: argparse.Namespace) -> dict[str, tuple[list[str], Path | None]]:
    """By runtime, its command without the folder, and the directory that it runs in."""
    here = Path(__file__).parent
    found: dict[str, tuple[list[str], Path | None]] = {}
    for each in given.python:
        label, _, python = each.partition("=")
        kind = "openvino" if label.startswith("openvino") else "onnxruntime"
        found[label] = ([python, str(here / "runtime_worker.py"), kind], None)
    if given.node:
        for kind in ("onnxruntime-node", "onnxruntime-web"):
            found[kind] = (["node", str(here / "runtime_worker.mjs"), kind], given.node)
    return found


def table(results: dict[str, dict[str, dict[str, Any]]], networks: list[str]) -> str:
    """As the page on exports has it."""
    lines = [f"| network | {' | '.join(results)} |", "|---|" + "---|" * len(results)]
    for name in networks:
        cells = [_cell(rows[name]) for rows in results.values()]
        lines.append(f"| {name.partition('__')[2]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    if "error" in row:
        return "does not run"
    parts = []
    if row["floats"] is not None:
        parts.append("exact" if not row["floats"] else f"{row['floats']:.0e}")
    if row["quanta"] is not None:
        parts.append("exact" if not row["quanta"] else f"{row['quanta']:.0f} q")
    return ", ".join(dict.fromkeys(parts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="RUNTIME=PYTHON")
    parser.add_argument("--node", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", help="part of the networks' names")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    networks = [name for name in NETWORKS if given.only in name]
    results: dict[str, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for runtime, (command, directory) in commands(given).items():
            cleared(folder)
            cases = prepare(folder, networks, runtime.split()[0])
            subprocess.run([*command, str(folder)], cwd=directory, check=True)
            results[runtime] = compared(runtime, folder, cases)
    print(table(results, networks))
    if given.page:
        begin, _, rest = given.page.read_text(encoding="utf-8").partition(MARK)
        after = rest.partition(MARK)[2]
        write_text(given.page, f"{begin}{MARK}\n{table(results, networks)}\n{MARK}{after}")
    wrong = [
        f"{runtime}, {name}: {row}"
        for runtime, rows in results.items()
        for name, row in rows.items()
        if not row["right"] and (runtime.split()[0], name) not in KNOWN
    ]
    print("\n".join(wrong), file=sys.stderr)
    if given.json:
        write_text(given.json, json.dumps({**machine(), "results": results}, indent=1) + "\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
