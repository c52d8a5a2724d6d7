"""FULLY_CONNECTED of each step by itself: one for all steps, with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.one_op import graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort import BuiltinOpResolver, Interpreter, Registration
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    ActivationFunctionType,
    FullyConnectedOptions,
    Op,
    PackOptions,
    StridedSliceOptions,
)

RULE = "joined steps"
SEED = 13
STEPS, ROWS, WIDTH, UNITS = 5, 2, 6, 3


def model(
    order: Sequence[int] = range(STEPS),
    *,
    axis: int = 0,
    weights: int = 1,
    bias: bool = True,
    also: str = "",
) -> bytes:
    """A layer of each step of `x`, packed; weights: how many matrices; also: a further result."""
    b, rng = Builder(), np.random.default_rng(SEED)
    b.input("x", STEPS, ROWS, WIDTH)
    shape = (STEPS, ROWS, WIDTH)
    whole = b.op(Op.ADD, ["x", b.constant(1)], shape)
    matrices = [b.constant(rng.normal(0, 1, (UNITS, WIDTH))) for _ in range(weights)]
    vector = [b.constant(rng.normal(0, 1, UNITS))] if bias else []
    dense = FullyConnectedOptions(fused_activation_function=ActivationFunctionType.RELU)
    cut, made = StridedSliceOptions(begin_mask=6, end_mask=6, shrink_axis_mask=1), list[str]()
    ones, more = b.constant((1, 1, 1), np.int32), dict[str, str]()
    for number, step in enumerate(order):
        bounds = [b.constant((at, 0, 0), np.int32) for at in (step, step + 1)]
        part = b.op(Op.STRIDED_SLICE, [whole, *bounds, ones], (ROWS, WIDTH), cut)
        given = [part, matrices[number % weights], *vector]
        made.append(b.op(Op.FULLY_CONNECTED, given, (ROWS, UNITS), dense))
        more |= {"slice": part, "layer": made[-1], "whole": whole}
    packed = [ROWS, UNITS]
    packed.insert(axis, len(made))
    result = b.op(Op.PACK, made, packed, PackOptions(values_count=len(made), axis=axis))
    return graph_model(b.tensors, b.nodes, [result, *([more[also]] if also else [])])


def check(content: bytes) -> int:
    """How many products there are."""
    print(f"seed {SEED}")
    x = np.random.default_rng(SEED).normal(0, 1, (STEPS, ROWS, WIDTH)).astype(np.float32)
    with without(RULE):
        single = answers(content, [x])
    for ours, one, theirs in zip(answers(content, [x]), single, litert(content, [x]), strict=True):
        np.testing.assert_allclose(ours, one, rtol=0, atol=1e-6)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)
    counts = optimised_nodes(content)
    return counts["Gemm"] + counts["FusedGemm"] + counts["MatMul"]


@pytest.mark.parametrize("also", ["", "slice", "whole"])
@pytest.mark.parametrize("bias", [False, True])
def test_one_product(bias: bool, also: str) -> None:
    assert check(model(bias=bias, also=also)) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"order": (0, 2, 1, 3, 4)},
        {"order": (0, 1, 2, 3)},
        {"order": (0, 0, 1, 2, 3)},
        {"axis": 1},
        {"weights": 2},
        {"also": "layer"},
    ],
)
def test_others_stay(changed: dict[str, Any]) -> None:
    assert check(model(**changed)) > 1


def test_a_slice_of_the_user_is_run() -> None:
    def backwards(x: Any, *lists: Any) -> Any:
        return x[STEPS - 1 - int(lists[0][0])]

    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.STRIDED_SLICE, Registration(function=backwards))
    x = np.random.default_rng(SEED).normal(0, 1, (STEPS, ROWS, WIDTH)).astype(np.float32)
    found = []
    for given in (resolver, None):
        interpreter = Interpreter(model_content=model(), resolver=given)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    np.testing.assert_allclose(found[0], found[1][::-1], rtol=0, atol=1e-6)
