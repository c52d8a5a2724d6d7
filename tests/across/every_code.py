"""Operators whose result is a function of one code: every code, against LiteRT.

Of sums, means, norms, pools and the like codes are drawn.

    python -m tests.across.every_code [--only NAME] [--draws 40] [--seed 0]

Scales are drawn up to 2^8 apart: equal ones, powers of two apart, and any. Zero points are the ends
of the type, its middle, and any. A second operand is drawn, and a constant in half of the draws.
The command prints, for each operator and type, how many codes are off where the three kernel sets
of LiteRT agree, and an example.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np

from tests.across.far_scales import (
    BYTES,
    CODES,
    INT8,
    INT16,
    ONE_OPERAND,
    TWO_OPERANDS,
    UINT8,
    Function,
    named,
)
from tests.one_op import Array, T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

# That of functions of one code, of which all are tried.
EACH = (512,)
KERNELS = ("default", "optimized", "reference")
SCALES = (2.0**-7, 0.037, 0.0071, 1.0)
# Codes of one tensor that become those of another.
REQUANTIZED = (
    *((source, target) for source in BYTES for target in CODES),
    *((INT16, target) for target in (INT8, INT16, TensorType.INT32)),
)


@dataclass(frozen=True)
class Swept:
    """An operator and the types of its operands and its result."""

    name: str
    function: Function
    source: TensorType
    target: TensorType


@dataclass
class Count:
    """Codes that differ from all kernel sets of LiteRT, where these agree, of `all`."""

    off: dict[str, int] = field(default_factory=dict)
    all: int = 0
    example: str = ""


def swept() -> Iterator[Swept]:
    """All operators of codes, in each type; layers are another matter."""
    functions = [*ONE_OPERAND, *TWO_OPERANDS]
    for name, function in zip(named(functions), functions, strict=True):
        if function.made_type is None:
            for type in function.types:
                yield Swept(f"{name}-{type.name}", function, type, type)
    quantize = next(function for function in functions if function.op is Op.QUANTIZE)
    for source, target in REQUANTIZED:
        yield Swept(f"QUANTIZE-{source.name}-{target.name}", quantize, source, target)


def drawn(case: Swept, rng: np.random.Generator) -> tuple[str, bytes, list[Array]]:
    """What was drawn, a model, and its inputs: every code, and a second operand."""
    function, codes = case.function, _every_code(case.source)
    if function.shape != EACH:
        codes = rng.choice(codes, function.shape)
    first = float(np.float32(rng.choice([*SCALES, 2.0 ** rng.uniform(-9, 1)])))
    scales = [first, *(_near(first, rng) for _ in range(function.inputs - 1))]
    zeros = [_zero_point(case.source, rng) for _ in scales]
    if function.alike:
        scales, zeros = scales[:1] * len(scales), zeros[:1] * len(zeros)
    if function.positive:
        zeros = [int(codes[0]) if case.source is not INT16 else 0]
        codes = np.maximum(codes, codes.dtype.type(zeros[0] + 1))
    inputs, feeds = [T(codes.shape, case.source, scales[0], zeros[0])], [codes]
    for scale, zero in zip(scales[1:], zeros[1:], strict=True):
        other = rng.permutation(codes.ravel()).reshape(codes.shape)
        operand = T(codes.shape, case.source, scale, zero)
        if rng.random() < 0.5:
            inputs.append(replace(operand, data=other))
        else:
            inputs.append(operand)
            feeds.append(other)
    unit, zero = _near(_usual(function.op, scales), rng), _zero_point(case.target, rng)
    unit, zero = function.units.get(case.source, (unit, zero))
    if function.alike:
        unit, zero = scales[0], zeros[0]
    joined = (2 * len(codes),) if function.op is Op.CONCATENATION else function.made
    made = T(joined or codes.shape, case.target, unit, zero)
    inputs += function.constants
    model = one_op_model(function.op, inputs, [made], function.options, function.version)
    return f"{scales} {zeros} to {unit} {zero}", model, feeds


def _usual(op: Op, scales: Sequence[float]) -> float:
    """A scale of results that are cut little; LiteRT's SQUARED_DIFFERENCE ends the process where
    the result's is less than 2^-12 of the square of the larger one."""
    if op in (Op.MUL, Op.BATCH_MATMUL):
        return float(np.prod(scales)) * 64
    return max(scales) ** 2 * 64 if op is Op.SQUARED_DIFFERENCE else scales[0]


def _every_code(type: TensorType) -> Array:
    low, high = quantized_range(type)
    return np.arange(low, high + 1).astype(NUMPY_DTYPE[type])


def _near(scale: float, rng: np.random.Generator) -> float:
    ratios = (1.0, 2.0 ** rng.integers(-8, 9), 2.0 ** rng.uniform(-8, 8), 2.0 ** rng.uniform(-2, 2))
    return float(np.float32(scale * ratios[rng.integers(len(ratios))]))


def _zero_point(type: TensorType, rng: np.random.Generator) -> int:
    if type not in BYTES:
        return 0
    low, high = quantized_range(type)
    middle = 128 if type is UINT8 else 0
    return int(rng.choice([low, high, middle, rng.integers(low, high + 1)]))


def counted(case: Swept, draws: int, seed: int = 0) -> Count:
    """The codes that are off in so many draws; those that LiteRT refuses count nothing."""
    rng, count = np.random.default_rng([seed, crc32(case.name.encode())]), Count()
    for _ in range(draws):
        text, model, feeds = drawn(case, rng)
        sets = _kernel_sets(model, feeds)
        if not sets:
            continue
        agree = np.logical_and.reduce([each == sets[0] for each in sets])
        count.all += agree.size
        found = {
            "interpreter": ours(model, feeds)[0][0],
            "numpy": ours(model, feeds, [])[0][0],
            "export": exported(model, feeds, exact=True)[0],
        }
        for place, got in found.items():
            off = int(np.count_nonzero((got != sets[0]) & agree))
            count.off[place] = count.off.get(place, 0) + off
            if off:
                count.example = f"{place}, {text}: {off}"
    return count


def _kernel_sets(model: bytes, feeds: Sequence[Array]) -> list[Array]:
    """The results of LiteRT's kernel sets, of those that run the model."""
    found = []
    for kernels in KERNELS:
        with suppress(RuntimeError, ValueError):
            found.append(litert(model, feeds, kernels)[0])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Codes of operators, against LiteRT.")
    parser.add_argument("--only", default="", help="names that have this in them")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    for case in swept():
        if options.only in case.name:
            draws = options.draws if case.source in BYTES else max(options.draws // 8, 1)
            count = counted(case, draws, options.seed)
            print(f"{case.name:32} {count.all:8} {count.off} {count.example}", flush=True)


if __name__ == "__main__":
    main()
