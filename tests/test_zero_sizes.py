"""A size or an option of 0, anywhere: a result or one of our errors, and the process lives."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.attempts import Attempt, attempted, litert_status, status
from tests.one_op import Case, T, one_op_model
from tests.samples import SAMPLES, sample, types
from tests.survivor import Survivor
from tests.zero_sizes import zeroed
from tflite_ort import AllocationError, Interpreter, export_onnx
from tflite_ort.schema import (
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    ModelError,
    Op,
    Pool2DOptions,
    TensorType,
    TransposeConvOptions,
)


def cases() -> Iterator[Case]:
    """The rows of the tables in tests/ops."""
    for path in sorted((Path(__file__).parent / "ops").glob("test_*.py")):
        table = getattr(importlib.import_module(f"tests.ops.{path.stem}"), "CASES", ())
        yield from (row for row in table if isinstance(row, Case))


def seeds(thorough: bool) -> Iterator[tuple[str, bytes]]:
    """One model of every operator with an own table or sample; thoroughly, all of them."""
    seen = set[Op]()
    for case in cases():
        if thorough or case.op not in seen:
            seen.add(case.op)
            yield case.name, case.model()
    for op in SAMPLES:
        for type in types(op) if thorough else types(op)[:1]:
            if thorough or op not in seen:
                yield f"{op.name} {type.name}", sample(op, type)[0]


def test_the_process_lives(request: pytest.FixtureRequest) -> None:
    thorough = bool(request.config.getoption("--thorough"))
    bad, count = [], 0
    with Survivor(attempted) as survivor:
        for name, model in seeds(thorough):
            for attempt in zeroed(model, name):
                if thorough or "tensor" not in attempt.name:
                    count += 1
                    said = survivor.call(attempt)
                    bad += [] if said == "fine" else [f"{attempt.name}: {said}"]
    print(f"{count} models")
    assert not bad, "\n".join(bad)


STRIDES = {"stride_h": 1, "stride_w": 1}
IMAGE, RESULT, SIZE = T((1, 4, 4, 3)), T((1, 4, 4, 5)), T((4,), TensorType.INT32)
BIAS = T.constant(np.zeros(5, np.float32))
CONV, DEPTHWISE, POOL = Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.MAX_POOL_2D
# Operator, inputs, options. LiteRT runs the pool, on memory that it does not own.
EMPTY: dict[str, tuple[Op, list[T], Any]] = {
    "input channels": (CONV, [T((1, 4, 4, 0)), T((5, 2, 2, 3)), BIAS], Conv2DOptions(**STRIDES)),
    "filter channels": (CONV, [IMAGE, T((5, 2, 2, 0)), BIAS], Conv2DOptions(**STRIDES)),
    "filter rows": (CONV, [IMAGE, T((5, 0, 2, 3)), BIAS], Conv2DOptions(**STRIDES)),
    "steps": (CONV, [IMAGE, T((5, 2, 2, 3)), BIAS], Conv2DOptions()),
    "dilation": (
        CONV,
        [IMAGE, T((5, 2, 2, 3)), BIAS],
        Conv2DOptions(**STRIDES, dilation_h_factor=0),
    ),
    "depthwise channels": (
        DEPTHWISE,
        [T((1, 4, 4, 0)), T((1, 2, 2, 0)), T((0,))],
        DepthwiseConv2DOptions(**STRIDES),
    ),
    "pooled rows": (POOL, [IMAGE], Pool2DOptions(**STRIDES, filter_width=2)),
    "transposed steps": (
        Op.TRANSPOSE_CONV,
        [SIZE, T((5, 2, 2, 3)), IMAGE],
        TransposeConvOptions(),
    ),
    "transposed rows": (
        Op.TRANSPOSE_CONV,
        [SIZE, T((5, 0, 2, 3)), IMAGE],
        TransposeConvOptions(**STRIDES),
    ),
    "transposed planes": (
        Op.CONV_3D_TRANSPOSE,
        [T((5,), TensorType.INT32), T((0, 2, 2, 5, 3)), T((1, 4, 4, 4, 3))],
        Conv3DOptions(stride_d=1, **STRIDES),
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_no_window_is_refused_when_allocated(name: str) -> None:
    op, inputs, options = EMPTY[name]
    model = one_op_model(op, inputs, [RESULT], options)
    with pytest.raises(AllocationError):
        Interpreter(model_content=model).allocate_tensors()
    with pytest.raises(ModelError):
        export_onnx(model)
    with Survivor(litert_status) as litert:
        assert litert.call(Attempt(model)) != "runs" or op is POOL


def test_an_image_resized_to_no_channels() -> None:
    """What ended the process in a tenth of the real models."""
    options = Conv2DOptions(**STRIDES)
    weights = T.constant(np.ones((5, 2, 2, 3), np.float32))
    model = one_op_model(CONV, [IMAGE, weights, BIAS], [RESULT], options)
    with Survivor(status) as ours, Survivor(litert_status) as litert:
        for channels, said in ((0, "AllocationError"), (2, "AllocationError"), (3, "runs")):
            attempt = Attempt(model, {0: (1, 4, 4, channels)})
            assert ours.call(attempt).startswith(said)
            assert (litert.call(attempt) == "runs") == (said == "runs")
