"""A program that uses all that a frozen one could lack: it prints what comes out.

    python program.py FOLDER [MODEL ...]

FOLDER has `model.litertlm` and gets what is written. The output is the same from a folder, a zip
archive and a program of PyInstaller.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import tflite_ort
from tflite_ort.base.own_process import own_process
from tflite_ort.command.demo import digits_content, held_out
from tflite_ort.command.operator_status import read_record
from tflite_ort.opmap.graph.costs import table
from tflite_ort.schema import read_model


def told(value: Any) -> str:
    """A short text of an array, or of what JSON has."""
    content = value.tobytes() if isinstance(value, np.ndarray) else json.dumps(value).encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def outputs(content: bytes, **options: Any) -> list[str]:
    """Of an invoke on zeros."""
    with tflite_ort.Interpreter(
        model_content=content, resolver=tflite_ort.WellKnownOpResolver(), **options
    ) as interpreter:
        interpreter.allocate_tensors()
        interpreter.invoke()
        details = interpreter.get_output_details()
        return [told(np.asarray(interpreter.get_tensor(each["index"]))) for each in details]


def main() -> None:
    folder = Path(sys.argv[1])
    digits = digits_content("int8")
    print("digits", outputs(digits), len(held_out()[0]))
    print("numpy", outputs(digits, providers=[]))
    for _ in range(2):  # what is stored, then what was
        print("cache", outputs(digits, cache=folder / "cache"))
    print("data", told(read_record()), told(table()))  # type: ignore[arg-type]
    tflite_ort.export_onnx(read_model(digits), folder / "digits.onnx")
    print("export", (folder / "digits.onnx").stat().st_size)
    report = tflite_ort.verify(digits, inputs=tflite_ort.verification.Random(1))
    print("verify", report.reference, report.verdict, len(report.to_html()) > 10_000)
    model = tflite_ort.LanguageModel(folder / "model.litertlm")
    print("generate", model.generate("bcd", max_tokens=4).text)
    with tflite_ort.install_as("tflite_runtime"):
        print("install_as", sys.modules["tflite_runtime.interpreter"].Interpreter.__module__)
    print("version", tflite_ort.__version__)
    print("process", *own_process("tflite_ort.interpreter.device_trial")[1:3], file=sys.stderr)
    for path in sys.argv[2:]:
        try:
            print(Path(path).name, outputs(Path(path).read_bytes()))
        except tflite_ort.BridgeError as error:
            print(Path(path).name, type(error).__name__)


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
