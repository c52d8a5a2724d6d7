"""Runs what `benchmarks.consumers` has prepared: ``consumer_worker.py CONSUMER FOLDER``.

The environment needs the consumer and numpy alone. FOLDER/cases.json lists files, and their inputs
and outputs as raw files. Results are written beside them, and what went wrong to `NAME.error`. A
case that has begun has a file `NAME.begun`: one that ends the process has nothing else.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SECONDS = 120  # for each case


def onnxruntime_runner():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    options.add_session_config_entry("session.x64quantprecision", "1")

    def run(file, inputs, outputs):
        return onnxruntime.InferenceSession(file, options).run(outputs, inputs)

    return run


def mobile_runner():
    from onnxruntime.tools.convert_onnx_models_to_ort import (
        OptimizationStyle,
        convert_onnx_models_to_ort,
    )

    run_session = onnxruntime_runner()

    def run(file, inputs, outputs):
        with tempfile.TemporaryDirectory() as name:
            shutil.copyfile(file, f"{name}/m.onnx")
            styles = [OptimizationStyle.Runtime]
            convert_onnx_models_to_ort(Path(name), optimization_styles=styles)
            return run_session(f"{name}/m.with_runtime_opt.ort", inputs, outputs)

    return run


def openvino_runner():
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}

    def run(file, inputs, outputs):
        made = core.compile_model(core.read_model(file), "CPU", settings)(inputs)
        return [made[name] for name in outputs]

    return run


def opencv_runner():
    import cv2

    def run(file, inputs, outputs):
        net = cv2.dnn.readNetFromONNX(file)
        for name, array in inputs.items():
            net.setInput(array, name)
        return list(net.forward(outputs))

    return run


def tract_runner():
    import tract

    def run(file, inputs, outputs):
        model = tract.onnx().load(file).into_model().into_runnable()
        return [each.to_numpy() for each in model.run(list(inputs.values()))]

    return run


def torch_runner():
    import onnx2torch
    import torch

    def run(file, inputs, outputs):
        module = onnx2torch.convert(file).eval()
        with torch.no_grad():
            made = module(*(torch.from_numpy(each) for each in inputs.values()))
        return [each.numpy() for each in (made if isinstance(made, (list, tuple)) else [made])]

    return run


def coreml_runner():
    """Conversion alone: only Apple's systems run the result."""
    import coremltools
    import onnx2torch
    import torch

    def run(file, inputs, outputs):
        tensors = tuple(torch.from_numpy(each) for each in inputs.values())
        traced = torch.jit.trace(onnx2torch.convert(file).eval(), tensors, check_trace=False)
        types = [coremltools.TensorType(shape=each.shape) for each in inputs.values()]
        coremltools.convert(traced, inputs=types, convert_to="mlprogram", skip_model_load=True)
        return None

    return run


def tvm_runner():
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    def run(file, inputs, outputs):
        module = relax.transform.DecomposeOpsForInference()(from_onnx(onnx.load(file)))
        built = tvm.compile(module, target="llvm")
        machine = relax.VirtualMachine(built, tvm.cpu())
        made = machine["main"](*(tvm.runtime.tensor(each) for each in inputs.values()))
        several = hasattr(made, "__len__") and not hasattr(made, "numpy")
        return [each.numpy() for each in (made if several else [made])]

    return run


def iree_runner():
    import iree.compiler
    import iree.runtime

    def run(file, inputs, outputs):
        with tempfile.TemporaryDirectory() as name:
            text = f"{name}/m.mlir"
            command(Path(sys.executable).with_name("iree-import-onnx"), file, "-o", text)
            code = iree.compiler.compile_file(
                text, input_type="onnx", target_backends=["llvm-cpu"], extra_args=[
                    "--iree-llvmcpu-target-cpu=generic"
                ],
            )  # fmt: skip
        module = iree.runtime.load_vm_flatbuffer(code, driver="local-sync")
        (entry,) = (n for n in module.vm_module.function_names if "$" not in n and n[:2] != "__")
        made = module[entry](*inputs.values())
        several = isinstance(made, (list, tuple))
        return [each.to_host() for each in (made if several else [made])]

    return run


def mnn_runner():
    import MNN

    def run(file, inputs, outputs):
        with tempfile.TemporaryDirectory() as name:
            converter = Path(sys.executable).with_name("mnnconvert")
            command(converter, "-f", "ONNX", "--modelFile", file, "--MNNModel", f"{name}/m.mnn",
                    "--bizCode", "x")  # fmt: skip
            module = MNN.nn.load_module_from_file(f"{name}/m.mnn", list(inputs), outputs)
            # It has no truth values but whole numbers.
            arrays = [x.astype(np.int32) if x.dtype == bool else x for x in inputs.values()]
            given = [
                MNN.expr.const(each, list(each.shape), MNN.expr.NCHW, _mnn_type(MNN, each))
                for each in arrays
            ]
            made = module.forward(given)
            return [np.array(MNN.expr.convert(each, MNN.expr.NCHW).read()) for each in made]

    return run


_MNN_TYPES = {"float32": "float", "float64": "double", "int32": "int"}


def _mnn_type(library, array):
    kind = str(array.dtype)
    return getattr(library.expr, _MNN_TYPES.get(kind, kind))


def ncnn_runner():
    import ncnn

    def run(file, inputs, outputs):
        with tempfile.TemporaryDirectory() as name:
            shutil.copyfile(file, f"{name}/m.onnx")
            sizes = (",".join(map(str, each.shape)) for each in inputs.values())
            shapes = ",".join(f"[{each}]f32" for each in sizes)
            pnnx = Path(sys.executable).with_name("pnnx")
            command(pnnx, f"{name}/m.onnx", f"inputshape={shapes}", "fp16=0", folder=name)
            net = ncnn.Net()
            net.load_param(f"{name}/m.ncnn.param")
            net.load_model(f"{name}/m.ncnn.bin")
            with net.create_extractor() as extractor:
                for place, array in enumerate(inputs.values()):
                    inner = array[0] if array.ndim > 1 else array
                    extractor.input(f"in{place}", ncnn.Mat(np.ascontiguousarray(inner)).clone())
                return [np.array(extractor.extract(f"out{i}")[1]) for i in range(len(outputs))]

    return run


def command(*arguments, folder=None):
    done = subprocess.run(
        list(map(str, arguments)), capture_output=True, text=True, timeout=SECONDS, cwd=folder
    )
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout)[-400:])


RUNNERS = {
    "onnxruntime": onnxruntime_runner,
    "mobile": mobile_runner,
    "openvino": openvino_runner,
    "opencv": opencv_runner,
    "opencv4": opencv_runner,
    "tract": tract_runner,
    "torch": torch_runner,
    "coreml": coreml_runner,
    "tvm": tvm_runner,
    "iree": iree_runner,
    "mnn": mnn_runner,
    "ncnn": ncnn_runner,
}


def over(_signal, _frame):
    raise TimeoutError(f"it takes more than {SECONDS} seconds")


def main():
    kind, folder = sys.argv[1], Path(sys.argv[2])
    run = RUNNERS[kind]()
    signal.signal(signal.SIGALRM, over)
    for case in json.loads((folder / "cases.json").read_text()):
        begun = folder / f"{case['name']}.begun"
        if begun.exists():
            continue
        begun.touch()
        inputs = {
            each["name"]: np.fromfile(folder / each["file"], each["type"]).reshape(each["shape"])
            for each in case["inputs"]
        }
        signal.alarm(SECONDS)
        try:
            made = run(str(folder / case["model"]), inputs, [e["name"] for e in case["outputs"]])
        except BaseException as error:  # whatever a consumer says of a model
            words = f"{type(error).__name__}: {error}"
            (folder / f"{case['name']}.error").write_text(words[:2000])  # has no tflite_ort
            continue
        finally:
            signal.alarm(0)
        for each, array in zip(case["outputs"], made or [], strict=made is not None):
            np.ascontiguousarray(array).tofile(folder / each["file"])
        (folder / f"{case['name']}.done").touch()


main()
