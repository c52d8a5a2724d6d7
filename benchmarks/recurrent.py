"""LSTM layers, one thread: how many times LiteRT's speed.

    python benchmarks/recurrent.py [--grid] [--rounds N] [--json FILE]

Float, hybrid (8-bit weights) and integer (8x8_16) layers of 128 units, hybrid ones of 512 too, over
100 steps an invoke and over one; "dynamic" are the hybrid ones with activations rounded as LiteRT
rounds them. Both runtimes take turns in one process; a ratio is that of the medians.

With `--grid` one layer of each form and of 16 to 128 units, over one step and over 30, and the
geometric mean of the ratios of each form.
"""

from __future__ import annotations

import argparse
import json
import statistics
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import interleaved, machine
from tflite_ort.schema import (
    ActivationFunctionType,
    ModelBuilder,
    Op,
    QuantizationParameters,
    TensorType,
    UnidirectionalSequenceLSTMOptions,
)

Array = npt.NDArray[Any]

LSTM = Op.UNIDIRECTIONAL_SEQUENCE_LSTM
LAYERS, SMALL, LARGE = 2, 128, 512
FORMS = (
    *(("float", SMALL), ("hybrid", SMALL), ("dynamic", SMALL), ("integer", SMALL)),
    *(("hybrid", LARGE), ("dynamic", LARGE)),
)
GRID_UNITS, GRID_STEPS, GRID_FORMS = (16, 20, 32, 64, 128), (30, 1), ("float", "hybrid", "integer")
# Of the means of the grid, and the microseconds that one step may take more than LiteRT's.
GRID_BAR, STREAMING_MICROSECONDS = 0.9, 25
# Over 100 steps, how many times LiteRT's speed at least.
BARS = {"float": 1.8, "hybrid": 1.3, "dynamic": 1.3, "integer": 1.5}
STREAMING_BAR = 0.8
ACTIVATION_SCALE, CELL_SCALE = 1 / 127, 2.0**-12
CELL_CLIP = 10.0  # what TensorFlow's converter writes for Keras layers


class Network:
    """Layers of one form and width; tensors are their names."""

    def __init__(
        self,
        form: str,
        units: int,
        rng: np.random.Generator,
        cell_clip: float = CELL_CLIP,
        mean_bias: float = 0.0,
    ) -> None:
        self.form, self.units, self.rng, self.cell_clip = form, units, rng, cell_clip
        self.mean_bias = mean_bias
        self.builder = ModelBuilder()
        self.graph = self.builder.subgraph("main")
        self._names = (f"tensor{number}" for number in count())

    def tensor(
        self,
        shape: tuple[int, ...],
        type: TensorType = TensorType.FLOAT32,
        scale: float | None = None,
        is_variable: bool = False,
    ) -> str:
        name = next(self._names)
        quantization = None if scale is None else QuantizationParameters.affine(scale)
        self.graph.tensor(name, shape, type, quantization, is_variable=is_variable)
        return name

    def constant(self, values: Array, scale: float | None = None) -> str:
        name = next(self._names)
        quantization = None if scale is None else QuantizationParameters.affine(scale)
        self.graph.constant(name, values, quantization=quantization)
        return name

    def activation(self, shape: tuple[int, ...], is_variable: bool = False) -> str:
        if self.form == "integer":
            return self.tensor(shape, TensorType.INT8, ACTIVATION_SCALE, is_variable)
        return self.tensor(shape, is_variable=is_variable)

    def weights(self) -> tuple[str, float]:
        """The tensor and its scale."""
        values = self.rng.normal(0, 0.1, (self.units, self.units)).astype(np.float32)
        if self.form == "float":
            return self.constant(values), 1.0
        scale = float(np.abs(values).max() / 127)
        return self.constant(np.rint(values / scale).astype(np.int8), scale), scale

    def bias(self, weight_scale: float) -> str:
        values = self.rng.normal(self.mean_bias, 0.1, self.units).astype(np.float32)
        if self.form != "integer":
            return self.constant(values)
        scale = ACTIVATION_SCALE * weight_scale
        return self.constant(np.rint(values / scale).astype(np.int32), scale)

    def layer(self, source: str, steps: int) -> str:
        """UNIDIRECTIONAL_SEQUENCE_LSTM; its output."""
        weights = [self.weights() for _ in range(8)]
        biases = [self.bias(scale) for _, scale in weights[:4]]
        shape, integer = (1, self.units), self.form == "integer"
        cells = (TensorType.INT16, CELL_SCALE) if integer else (TensorType.FLOAT32, None)
        states = [self.activation(shape, True), self.tensor(shape, *cells, is_variable=True)]
        output = self.activation((1, steps, self.units))
        scales = []
        if integer:
            scales = [self.tensor((), TensorType.INT16, 2.0**-12) for _ in range(4)]
            scales.append(self.tensor((), TensorType.INT8, ACTIVATION_SCALE))
        options = UnidirectionalSequenceLSTMOptions(
            fused_activation_function=ActivationFunctionType.TANH, cell_clip=self.cell_clip
        )
        names, absent = [name for name, _ in weights], [None] * 4
        inputs = [source, *names, *absent[:3], *biases, *absent[:2], *states, *absent]
        self.graph.operator(LSTM, inputs, [output], options, version=3, intermediates=scales)
        return output

    def model(self, steps: int, layers: int = LAYERS) -> bytes:
        source = output = self.activation((1, steps, self.units))
        for _ in range(layers):
            output = self.layer(output, steps)
        self.graph.inputs(source).outputs(output)
        return self.builder.write()


def measure(form: str, units: int, steps: int, rounds: int, layers: int = LAYERS) -> dict[str, Any]:
    """Median milliseconds of both, and LiteRT's over ours."""
    rng = np.random.default_rng(0)
    model = Network(form, units, rng).model(steps, layers)
    feed = rng.normal(0, 0.5, (1, steps, units)).astype(np.float32)
    if form == "integer":
        feed = np.clip(np.rint(feed / ACTIVATION_SCALE), -128, 127).astype(np.int8)
    runtimes = [LiteRT(model_content=model, num_threads=1)]
    hybrid = "dynamic" if form == "dynamic" else "auto"
    runtimes.append(Interpreter(model_content=model, num_threads=1, hybrid=hybrid))
    for runtime in runtimes:
        runtime.allocate_tensors()
        runtime.set_tensor(runtime.get_input_details()[0]["index"], feed)
    times = interleaved([runtime.invoke for runtime in runtimes], rounds, min_time=0.02)
    theirs, ours = (statistics.median(seconds) * 1e3 for seconds in times)
    return {
        "form": form,
        "units": units,
        "steps": steps,
        "litert_ms": round(theirs, 4),
        "ours_ms": round(ours, 4),
        "ratio": round(theirs / ours, 2),
    }


def two_layers(rounds: int) -> list[dict[str, Any]]:
    """Two layers of each form, with the bar of each."""
    results = []
    for steps in (100, 1):
        for form, units in FORMS:
            bar = STREAMING_BAR if steps == 1 else BARS[form]
            results.append({**measure(form, units, steps, rounds), "bar": bar})
            show(results[-1])
    return results


def grid(rounds: int) -> list[dict[str, Any]]:
    """One layer of each form and size; of each form the mean, and the worst of the single steps."""
    results = []
    for form in GRID_FORMS:
        many, one = (
            [measure(form, units, steps, rounds, layers=1) for units in GRID_UNITS]
            for steps in GRID_STEPS
        )
        for row in (*many, *one):
            show(row)
        mean = statistics.geometric_mean([row["ratio"] for row in many])
        more = max(row["ours_ms"] - row["litert_ms"] for row in one) * 1e3
        print(
            f"{form:8} {GRID_STEPS[0]} steps: {mean:.2f} times, at least {GRID_BAR}; one step: at "
            f"most {more:.1f} us more, up to {STREAMING_MICROSECONDS}"
        )
        results += [*many, *one]
    return results


def show(row: dict[str, Any]) -> None:
    print(
        f"{row['form']:8} {row['units']} units {row['steps']:4} steps "
        f"{row['litert_ms']:9.4f} ms, ours {row['ours_ms']:9.4f} ms: {row['ratio']:5.2f} times"
        + (f", at least {row['bar']}" if "bar" in row else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = (grid if arguments.grid else two_layers)(arguments.rounds)
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
