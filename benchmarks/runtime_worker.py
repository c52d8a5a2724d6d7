"""Runs what `benchmarks.other_runtimes` has prepared: ``runtime_worker.py RUNTIME FOLDER``.

RUNTIME is openvino or onnxruntime. The environment needs that and numpy alone. FOLDER/cases.json
lists models, and inputs and outputs as raw files. Results are written beside them, and errors to
`NAME.error`.
"""

import json
import sys
from pathlib import Path

import numpy as np


def openvino_runner():
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}

    def run(file, inputs, outputs):
        compiled = core.compile_model(core.read_model(file), "CPU", settings)
        made = compiled(inputs)
        return [made[name] for name in outputs]

    return run


def onnxruntime_runner():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1

    def run(file, inputs, outputs):
        return onnxruntime.InferenceSession(file, options).run(outputs, inputs)

    return run


def main():
    kind, folder = sys.argv[1], Path(sys.argv[2])
    run = {"openvino": openvino_runner, "onnxruntime": onnxruntime_runner}[kind]()
    for case in json.loads((folder / "cases.json").read_text()):
        inputs = {
            each["name"]: np.fromfile(folder / each["file"], each["type"]).reshape(each["shape"])
            for each in case["inputs"]
        }
        try:
            made = run(str(folder / case["model"]), inputs, [e["name"] for e in case["outputs"]])
        except Exception as error:  # whatever a runtime says of a model
            (folder / f"{case['name']}.error").write_text(str(error))  # has no tflite_ort
            continue
        for each, array in zip(case["outputs"], made, strict=True):
            np.ascontiguousarray(array).tofile(folder / each["file"])


main()
