"""How many networks tf2onnx, tflite2onnx and this library export, and whether the files are right.

    python -m venv T && T/bin/pip install tf2onnx tensorflow-cpu
    python -m venv U && U/bin/pip install tflite2onnx 'numpy<2'
    python -m benchmarks.other_converters --tf2onnx T/bin/python --tflite2onnx U/bin/python \\
        --json benchmarks/results/other_converters.json

Models: $TFLITE_ORT_MODELS, else ../shared/models; those with at least five operators that LiteRT
runs. A file is right if `verify` does not find its outputs off.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime

from benchmarks.how_close import MODELS
from tflite_ort import BridgeError, export_onnx
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.schema import read_model
from tflite_ort.verification import Random, Verdict, verify

# Run in the other tool's environment: pairs of paths come on standard input.
WORKERS = {
    "tf2onnx": "import tf2onnx.convert as c\n"
    "def convert(model, out): c.from_tflite(model, opset=18, output_path=out)\n",
    "tflite2onnx": "import tflite2onnx as c\ndef convert(model, out): c.convert(model, out)\n",
}
LOOP = """
import os, sys
for line in sys.stdin:
    model, out = line.rstrip().split("\\t")
    child = os.fork()  # some models end the process
    if not child:
        try:
            convert(model, out)
        except BaseException as error:
            text = f"{type(error).__name__}: {error}".replace("\\n", " ")
            open(out + ".error", "w").write(text)  # has no tflite_ort
        os._exit(0)
    os.waitpid(child, 0)
"""
Convert = Callable[[Path, Path], None]


def networks(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.glob("*.tflite")):
        try:
            subgraphs = read_model(path).subgraphs
        except BridgeError:
            continue
        if subgraphs and len(subgraphs[0].operators) >= 5:
            found.append(path)
    return found


def converted_elsewhere(tool: str, python: str, paths: list[Path], folder: Path) -> None:
    """Files of another tool, or their errors, in `folder`."""
    lines = "".join(f"{path}\t{folder / path.stem}.onnx\n" for path in paths)
    program = WORKERS[tool] + LOOP
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([python, "-c", program], input=lines, text=True, check=False, **options)


def converted_here(paths: list[Path], folder: Path) -> None:
    for path in paths:
        out = folder / f"{path.stem}.onnx"
        try:
            export_onnx(path, out, state_defaults=True)
        except BridgeError as error:
            write_text(f"{out}.error", str(error))


def outcome(model: Path, file: Path) -> tuple[str, str]:
    """What became of a model: refused, does not load, off or right; and why."""
    error = Path(f"{file}.error")
    if not file.exists():
        why = error.read_text(encoding="utf-8") if error.exists() else "the process ended"
        return "refused", why[:300]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(file, options)
    except Exception as failed:  # whatever ONNX Runtime says of a file
        return "does not load", str(failed)[:300]
    try:
        report = verify(model, onnx_file=file, inputs=Random(samples=2))
    except BridgeError as failed:
        return "off", str(failed)[:300]
    (result,) = report.runtimes
    return ("off", result.reason[:300]) if result.verdict is Verdict.OFF else ("right", "")


def litert_runs(path: Path) -> bool:
    """Whether LiteRT makes a model ready, in a process of its own."""
    program = "import sys; from ai_edge_litert.interpreter import Interpreter as I; "
    program += "i = I(sys.argv[1]); i.allocate_tensors(); i.invoke()"
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def measured(tools: dict[str, str], paths: list[Path]) -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = {}
    for tool in ("tflite-ort", *tools):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if tool in tools:
                converted_elsewhere(tool, tools[tool], paths, folder)
            else:
                converted_here(paths, folder)
            rows = {path.stem: outcome(path, folder / f"{path.stem}.onnx") for path in paths}
        counts = Counter(what for what, _ in rows.values())
        print(tool, dict(counts), file=sys.stderr, flush=True)
        reasons = {stem: f"{what}: {why}" for stem, (what, why) in rows.items() if what != "right"}
        results[tool] = {"networks": len(paths), **counts, "not right": reasons}
    return results


def table(results: dict[str, dict[str, Any]]) -> str:
    lines = ["| | networks | refused | does not load | off | right |", "|---|---|---|---|---|---|"]
    for tool, row in results.items():
        parts = ("refused", "does not load", "off", "right")
        lines.append(
            f"| {tool} | {row['networks']} | {' | '.join(str(row.get(k, 0)) for k in parts)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for tool in WORKERS:
        parser.add_argument(f"--{tool}", metavar="PYTHON", help="an environment that has it")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--only", default="", help="part of the file names")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tools = {tool: python for tool in WORKERS if (python := getattr(given, tool))}
    paths = [path for path in networks(given.models) if given.only in path.stem]
    results = measured(tools, [path for path in paths if litert_runs(path)])
    print(table(results))
    if given.json:
        write_text(given.json, json.dumps({**machine(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
