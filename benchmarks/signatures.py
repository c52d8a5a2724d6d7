"""How near every signature of today's networks is to LiteRT, interpreter and export.

    python -m benchmarks.signatures [--models FOLDER] [--steps 20] [--markdown] [NAME...]

Models: $TFLITE_ORT_MODELS2, else ../shared/models2; its index.json says how inputs are drawn. A
language model reads a prompt and decodes so many tokens, each runtime with its own caches, all with
the tokens that LiteRT chooses. Other networks are called with three inputs.

A figure is the largest difference from LiteRT, as a part of LiteRT's largest value: from the
nearest of its kernel sets (default, without delegates, reference), since its default is wrong on
one of these networks. `spread` is the largest difference between these sets. A signature is right
if it is as near as that, or within 1e-5. Networks whose activations LiteRT rounds to 8 bits are run
as LiteRT does by default (hybrid="xnnpack"); `auto` is how far the default of this library is,
which rounds where that is faster.

Times are medians of calls of default runners, in turns, on one thread. A language model has
its caches half full, and ours keeps them inside.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from benchmarks.kept_caches import FOLDER, timed
from tflite_ort import BridgeError, Interpreter, export_onnx
from tflite_ort.schema import Model, read_model

Array = npt.NDArray[Any]
Call = Callable[[Mapping[str, Array]], Mapping[str, Array]]

KERNELS = {
    "default": OpResolverType.AUTO,
    "own": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}
# Of floats; all integers of the networks here are codes of 8 or 16 bits.
NEAR = 1e-5
# A quantum of 8 bits, as a part of the largest code.
QUANTUM = 1 / 127
_HIDDEN = -0.7
ROUNDS = 40
_LAST = ("", "LiteRT ms", "ours ms", "ratio")
_WIDTHS = (34, 17, 6, 9, 9, 9, 9, 13, 10, 9, 0)


@dataclass(frozen=True)
class Row:
    """What is known of one signature.

    Args:
        ours, auto, exported: figures; a text where a runtime refuses.
        times: by runtime, in microseconds.
    """

    model: str
    signature: str
    calls: int
    spread: float
    ours: float | str
    auto: float | str
    exported: float | str
    times: Mapping[str, float]

    def right(self, figure: float | str) -> bool:
        """Whether a figure is as near as LiteRT's kernel sets are to each other."""
        return isinstance(figure, float) and figure <= max(self.spread, NEAR)

    @property
    def verdict(self) -> str:
        """In a word or two."""
        wrong = [
            name
            for name, figure in (
                ("interpreter", self.ours),
                ("auto", self.auto),
                ("export", self.exported),
            )
            if not self.right(figure)
        ]
        return "right" if not wrong else " and ".join(wrong)


def litert(path: Path, kernels: OpResolverType) -> Callable[[str], Call]:
    """LiteRT's signatures."""
    interpreter = LiteRT(str(path), experimental_op_resolver_type=kernels, num_threads=1)
    return lambda key: _called(interpreter.get_signature_runner(key))


def ours(path: Path, hybrid: str) -> Callable[[str], Call]:
    """Those of this library."""
    interpreter = Interpreter(path, hybrid=hybrid)
    return lambda key: _called(interpreter.get_signature_runner(key))


def exported(path: Path, hybrid: str) -> Callable[[str], Call]:
    """Those of exported files."""

    def of(key: str) -> Call:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        proto = export_onnx(path, signature=key, hybrid=hybrid, state_defaults=True)
        content = proto.SerializeToString()
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(content, options, providers=providers)
        taken = {each.name for each in session.get_inputs()}
        names = _output_names(read_model(path), key)

        def call(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            feeds = {name: array for name, array in inputs.items() if name in taken}
            return dict(zip(names, session.run(None, feeds), strict=True))

        return call

    return of


def _output_names(model: Model, key: str) -> list[str]:
    """What a signature calls the outputs, in the order of the file."""
    (found,) = (each for each in model.signature_defs if each.signature_key == key)
    names = {entry.tensor_index: entry.name for entry in found.outputs}
    return [names[index] for index in model.subgraphs[found.subgraph_index].outputs]


def _called(runner: Any) -> Call:
    return lambda inputs: runner(**inputs)


def drawn(entry: Mapping[str, Any], key: str, seed: int) -> dict[str, Array]:
    """Inputs of a signature, as the index says."""
    rng, rules = np.random.default_rng(seed), entry.get("random", {})
    inputs = {}
    for name, (shape, dtype) in entry["signatures"][key]["inputs"].items():
        rule = rules.get(name, rules.get("*", ["normal"]))
        inputs[name] = _drawn(rng, rule, shape, np.dtype(dtype))
    return inputs


def _drawn(
    rng: np.random.Generator, rule: Sequence[Any], shape: Sequence[int], dtype: np.dtype[Any]
) -> Array:
    if dtype == np.bool_:
        return np.ones(shape, np.bool_)
    if rule[0] == "int":
        return rng.integers(rule[1], rule[2], shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 2, shape).astype(dtype)
    values = rng.random(shape) if rule[0] == "uniform" else rng.standard_normal(shape)
    return values.astype(dtype)


def prepared(
    entry: Mapping[str, Any], key: str, tokens: Sequence[int], start: int
) -> dict[str, Array]:
    """The inputs of a language model's signature but for its caches."""
    inputs: dict[str, Array] = {}
    for name, (shape, kind) in entry["signatures"][key]["inputs"].items():
        dtype = np.dtype(kind)
        if name in ("tokens", "token_ids"):
            inputs[name] = np.array(tokens, dtype).reshape(shape)
        elif name == "input_pos":
            inputs[name] = (np.arange(len(tokens)) + start).astype(dtype).reshape(shape)
        elif name == "mask":
            seen = np.arange(shape[-1]) <= (np.arange(shape[-2]) + start)[:, np.newaxis]
            if dtype != np.bool_:
                seen = np.where(seen, 0, _HIDDEN * np.finfo(dtype).max).astype(dtype)
            inputs[name] = np.broadcast_to(seen, shape).copy()
        elif name == "param_tensor":
            inputs[name] = np.zeros(shape, dtype)
            inputs[name].reshape(-1)[:3] = start, start + len(tokens), start + len(tokens)
    return inputs


class Runtime:
    """The signatures of a network in one runtime; what it refuses is a text."""

    def __init__(self, make: Callable[[], Callable[[str], Call]]) -> None:
        self._calls: dict[str, Call] = {}
        self.caches: dict[str, Array] = {}
        self.refused = ""
        try:
            self._signatures = make()
        except BridgeError as error:
            self.refused = type(error).__name__

    def call(self, key: str, inputs: Mapping[str, Array]) -> Mapping[str, Array] | str:
        """The outputs; its own caches are read and kept."""
        if self.refused:
            return self.refused
        try:
            if key not in self._calls:
                self._calls[key] = self._signatures(key)
            results = self._calls[key]({**inputs, **self.caches})
        except BridgeError as error:
            self.refused = type(error).__name__
            return self.refused
        self.caches = {name: results[name] for name in self.caches}
        return results


def is_language_model(entry: Mapping[str, Any]) -> bool:
    """Whether tokens are decoded with caches."""
    return "decode" in entry["signatures"] and any(
        name.startswith("kv_cache") for name in entry["signatures"]["decode"]["inputs"]
    )


def calls_of(
    entry: Mapping[str, Any], steps: int, runtimes: Mapping[str, Runtime]
) -> Iterator[tuple[str, dict[str, Mapping[str, Array] | str]]]:
    """By signature, what each runtime makes in each call."""
    if not is_language_model(entry):
        for key in entry["signatures"]:
            for seed in range(3):
                inputs = drawn(entry, key, seed)
                yield key, {name: each.call(key, inputs) for name, each in runtimes.items()}
        return
    for key in entry["signatures"]:
        if key.startswith("prefill"):
            yield from _decoded(entry, key, steps, runtimes)


def _decoded(
    entry: Mapping[str, Any], prefill: str, steps: int, runtimes: Mapping[str, Runtime]
) -> Iterator[tuple[str, dict[str, Mapping[str, Array] | str]]]:
    """A prompt as long as a prefill signature, and so many tokens after it."""
    shapes = entry["signatures"]["decode"]["inputs"]
    caches = {name: each for name, each in shapes.items() if name.startswith("kv_cache")}
    for runtime in runtimes.values():
        runtime.caches = {n: np.zeros(shape, np.dtype(kind)) for n, (shape, kind) in caches.items()}
    low, high = entry["random"]["tokens"][1:]
    length = entry["signatures"][prefill]["inputs"]["input_pos"][0][0]
    prompt = np.random.default_rng(0).integers(low, high, length).tolist()
    inputs = prepared(entry, prefill, prompt, 0)
    yield prefill, {name: each.call(prefill, inputs) for name, each in runtimes.items()}
    token = prompt[0]
    for step in range(steps):
        inputs = prepared(entry, "decode", [token], length + step)
        made = {name: each.call("decode", inputs) for name, each in runtimes.items()}
        first = made["default"]
        assert not isinstance(first, str)
        token = int(np.argmax(first["logits"]))
        yield "decode", made


def difference(one: Mapping[str, Array], other: Mapping[str, Array]) -> float:
    """The largest difference of two results, as a part of the largest value of an output."""
    worst = 0.0
    for name, array in other.items():
        x, y = (np.asarray(each[name], np.float64) for each in (one, other))
        scale = max(float(np.nanmax(np.abs(y), initial=0.0)), 1e-30)
        apart = np.abs(x - y)
        apart[np.isnan(x) & np.isnan(y)] = 0
        largest = float(np.max(apart, initial=0.0)) / scale
        is_code = array.dtype.kind in "iu" and largest <= QUANTUM
        worst = max(worst, 0.0 if is_code else largest)
    return worst


def rows_of(folder: Path, entry: Mapping[str, Any], steps: int) -> list[Row]:
    """A row for every signature."""
    path, hybrid = folder / entry["file"], "xnnpack" if entry.get("hybrid") else "float"
    theirs = {name: Runtime(lambda k=k: litert(path, k)) for name, k in KERNELS.items()}
    mine = {
        "ours": Runtime(lambda: ours(path, hybrid)),
        "auto": Runtime(lambda: ours(path, "auto")),
        "exported": Runtime(lambda: exported(path, hybrid)),
    }
    figures: dict[str, dict[str, float | str]] = {}
    spreads: dict[str, float] = {}
    counts: dict[str, int] = {}
    for key, made in calls_of(entry, steps, {**theirs, **mine}):
        sets = [result for name in KERNELS if not isinstance(result := made[name], str)]
        apart = [difference(one, two) for one in sets for two in sets if one is not two]
        spreads[key] = max(spreads.get(key, 0.0), *apart)
        counts[key] = counts.get(key, 0) + 1
        found = figures.setdefault(key, dict.fromkeys(mine, 0.0))
        for name in mine:
            result, before = made[name], found[name]
            if isinstance(result, str):
                found[name] = result
            elif not isinstance(before, str):
                found[name] = max(before, min(difference(result, each) for each in sets))
    return [
        Row(
            *(entry["name"], key, counts[key], spreads[key], *found.values()),
            times_of(path, entry, key),
        )
        for key, found in figures.items()
    ]


def times_of(path: Path, entry: Mapping[str, Any], key: str) -> dict[str, float]:
    """The times of a signature."""
    given, shapes = drawn(entry, key, 0), entry["signatures"][key]["inputs"]
    keep = {name for name in shapes if name.startswith("kv_cache")}
    if is_language_model(entry):
        length, room = shapes["input_pos"][0][0], max(max(shapes[name][0]) for name in keep)
        given |= prepared(entry, key, [1] * length, min(room // 2, room - length))
    theirs = LiteRT(str(path), num_threads=1).get_signature_runner(key)
    runner = Interpreter(path).get_signature_runner(key, keep=keep)
    mine = {name: array for name, array in given.items() if name not in keep}
    return timed({"LiteRT": partial(theirs, **given), "ours": partial(runner, **mine)}, ROUNDS)


def printed(row: Row, markdown: bool) -> str:
    """A line of the table."""
    cells = [row.model, row.signature, str(row.calls)]
    for figure in (row.spread, row.ours, row.auto, row.exported):
        cells.append(figure if isinstance(figure, str) else f"{figure:.1e}")
    cells += [row.verdict, *(f"{each / 1000:.2f}" for each in row.times.values())]
    cells.append(f"{row.times['LiteRT'] / row.times['ours']:.2f}")
    if markdown:
        return f"| {' | '.join(cells)} |"
    return "".join(f"{cell:{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", type=Path, default=FOLDER)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    index = json.loads((arguments.models / "index.json").read_text())["models"]
    head = ("model", "signature", "calls", "spread", "ours", "auto", "export", *_LAST)
    if arguments.markdown:
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    else:
        print("".join(f"{cell:{width}}" for cell, width in zip(head, _WIDTHS, strict=True)))
    rows = []
    for entry in index:
        if arguments.names and not any(name in entry["name"] for name in arguments.names):
            continue
        for row in rows_of(arguments.models, entry, arguments.steps):
            print(printed(row, arguments.markdown), flush=True)
            rows.append(row)
    right = sum(row.verdict == "right" for row in rows)
    print(f"\n{right} of {len(rows)} signatures are right, interpreter and export", file=sys.stderr)


if __name__ == "__main__":
    main()
