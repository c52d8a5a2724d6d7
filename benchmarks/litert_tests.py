"""LiteRT's own tests of its Python interpreter, on LiteRT and on this library.

    python -m benchmarks.litert_tests FOLDER

FOLDER is a checkout of LiteRT's repository, of which `tflite/python/interpreter_test.py` and its
test data are read; nothing is copied or downloaded. What Bazel makes there is made here: small
models, and modules that stand for TensorFlow's test tools. Both runtimes run every test; the table
shows where they differ. The command fails if LiteRT passes a test that this library does not. A
test that needs TensorFlow's converter, or libraries of C++ that Bazel builds, fails on both.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tflite_ort import install_as
from tflite_ort.base.files import write_bytes
from tflite_ort.schema import (
    AddOptions,
    FullyConnectedOptions,
    GatherOptions,
    ModelBuilder,
    MulOptions,
    Op,
    QuantizationParameters,
    TensorType,
)

TEST = "tflite/python/interpreter_test.py"
BACKWARDS = np.eye(4)[::-1]


def permuted(type_: TensorType) -> bytes:
    """FULLY_CONNECTED that turns four numbers round."""
    builder, exact = ModelBuilder(), type_ is TensorType.FLOAT32
    quantization = None if exact else QuantizationParameters.affine([1.0], [0])
    main = builder.subgraph("main").tensor("input", (1, 4), type_, quantization)
    dtype = np.float32 if exact else np.uint8
    main.constant("weights", np.ascontiguousarray(BACKWARDS, dtype), type_, quantization)
    main.tensor("output", (1, 4), type_, quantization)
    options = FullyConnectedOptions()
    main.operator(Op.FULLY_CONNECTED, ["input", "weights", None], ["output"], options)
    main.inputs("input").outputs("output")
    return builder.write()


def gathered(shape: tuple[int, ...]) -> bytes:
    """GATHER of strings: of the input, or of a constant where that has no dimensions."""
    builder, source = ModelBuilder(), "input" if shape else "constant"
    main = builder.subgraph("main").tensor("input", shape, TensorType.STRING)
    main.tensor("indices", (3,), TensorType.INT64)
    main.tensor("output", (3,), TensorType.STRING)
    if not shape:
        main.constant("constant", np.array(["abcd"], object), TensorType.STRING)
    main.operator(Op.GATHER, [source, "indices"], ["output"], GatherOptions(axis=0), version=2)
    main.inputs("input", "indices").outputs("output")
    return builder.write()


def two_signatures() -> bytes:
    """x + 2 and x * 2."""
    builder = ModelBuilder()
    for name, op, options in (("add", Op.ADD, AddOptions()), ("multiply", Op.MUL, MulOptions())):
        graph = builder.subgraph(name).tensor(f"{name}_x:0", (1,))
        graph.constant(f"{name}/y", np.array([2], np.float32)).tensor(f"{name}/out", (1,))
        graph.operator(op, [f"{name}_x:0", f"{name}/y"], [f"{name}/out"], options)
        graph.inputs(f"{name}_x:0").outputs(f"{name}/out")
        graph.signature(name, {"x": f"{name}_x:0"}, {"output": f"{name}/out"})
    return builder.write()


MADE = {
    "permute_float.tflite": lambda: permuted(TensorType.FLOAT32),
    "permute_uint8.tflite": lambda: permuted(TensorType.UINT8),
    "gather_string.tflite": lambda: gathered((10,)),
    "gather_string_0d.tflite": lambda: gathered(()),
    "two_signatures.tflite": two_signatures,
}


class TestCase(unittest.TestCase):
    """Stands for TensorFlow's: what the tests call of it."""

    def assertAllEqual(self, one: Any, other: Any) -> None:  # noqa: N802
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))

    def assertLen(self, many: Any, count: int) -> None:  # noqa: N802
        self.assertEqual(len(many), count)


def stand_ins(interpreter: ModuleType, checkout: Path, made: Path) -> None:
    """The modules that the tests import."""

    def data(name: str) -> str:
        path = made / Path(name).name
        return str(path if path.exists() else checkout / "tflite" / "python" / name)

    def module(name: str, **attributes: Any) -> ModuleType:
        each = sys.modules[name] = ModuleType(name)
        vars(each).update(attributes)
        return each

    for package in ("tensorflow", "tensorflow.python", "tflite", "tflite.python"):
        module(package, __path__=[])
    test_util = module("tensorflow.python.framework.test_util", TensorFlowTestCase=TestCase)
    loader = module("tensorflow.python.platform.resource_loader", get_path_to_datafile=data)
    runner = module("tensorflow.python.platform.test", main=unittest.main)
    module("tensorflow.python.framework", test_util=test_util)
    module("tensorflow.python.platform", resource_loader=loader, test=runner)
    counter = type("TFLiteMetrics", (), {"increase_counter_interpreter_creation": lambda _: None})
    metrics = module("tflite.python.metrics.metrics", TFLiteMetrics=counter)
    module("tflite.python.metrics", metrics=metrics)
    registerer = module("tflite.python.testdata._pywrap_test_registerer")
    module("tflite.python.testdata", _pywrap_test_registerer=registerer)
    lite = module("tflite.python.lite", Interpreter=vars(interpreter)["Interpreter"])
    vars(sys.modules["tflite.python"]).update(interpreter=interpreter, lite=lite)
    sys.modules["tflite.python.interpreter"] = interpreter


def outcomes(runtime: str, checkout: Path) -> dict[str, str]:
    """By test: passed, skipped, or the last line of what it says."""
    if runtime == "tflite-ort":
        install_as("ai_edge_litert")
    interpreter = importlib.import_module("ai_edge_litert.interpreter")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MADE.items():
            write_bytes(Path(folder) / name, make())
        stand_ins(interpreter, checkout, Path(folder))
        spec = importlib.util.spec_from_file_location("interpreter_test", checkout / TEST)
        assert spec is not None and spec.loader is not None
        tests = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tests)
        suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
        names = [test.id() for group in suite for test in group]
        result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    told = {name.partition(".")[2]: "passed" for name in names}
    for test, text in (*result.failures, *result.errors):
        told[test.id().partition(".")[2]] = text.strip().splitlines()[-1]
    for test, _ in result.skipped:
        told[test.id().partition(".")[2]] = "skipped"
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runtime", choices=["litert", "tflite-ort"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.runtime:
        print("\n" + json.dumps(outcomes(given.runtime, given.folder)))
        return 0
    words = [sys.executable, "-m", "benchmarks.litert_tests", str(given.folder), "--runtime"]
    theirs, ours = (
        json.loads(
            subprocess.run([*words, runtime], stdout=subprocess.PIPE, check=True)
            .stdout.decode()
            .splitlines()[-1]
        )
        for runtime in ("litert", "tflite-ort")
    )
    for name in theirs:
        if theirs[name] != "passed" or ours[name] != "passed":
            print(f"{name}\n  LiteRT: {theirs[name][:150]}\n  tflite-ort: {ours[name][:150]}")
    passed = {name for name in theirs if theirs[name] == "passed"}
    kept = {name for name in passed if ours[name] == "passed"}
    print(f"{len(theirs)} tests, LiteRT passes {len(passed)}, tflite-ort {len(kept)} of these")
    return len(passed) - len(kept)


if __name__ == "__main__":
    sys.exit(main())
