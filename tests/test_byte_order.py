"""Arrays of another byte order: the right values wherever an array is taken, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tflite_ort import (
    BuiltinOpResolver,
    Interpreter,
    KernelError,
    ModelError,
    Predictor,
    Registration,
    verify,
)
from tflite_ort.schema import ModelBuilder, Op

Array = npt.NDArray[Any]

VALUES = np.float32([[1, -2, 3.5, 1e-3]])
OTHER = VALUES.astype(VALUES.dtype.newbyteorder())


def negation(op: Op | str = Op.NEG) -> bytes:
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (1, 4)).tensor("y", (1, 4)).operator(op, ["x"], ["y"])
    main.inputs("x").outputs("y").signature("s")
    return builder.write()


def set_tensor(path: Path) -> Array:
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, OTHER)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(1))


def memory(path: Path) -> Array:
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    interpreter.tensor(0)()[...] = OTHER
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(1))


def signature(path: Path) -> Array:
    return np.asarray(Interpreter(path).get_signature_runner("s")(x=OTHER)["y"])


def batch(path: Path) -> Array:
    runner = Interpreter(path, batch=2).get_signature_runner("s")
    return np.asarray(runner(x=np.repeat(OTHER, 2, 0))["y"][1:])


def rows(path: Path) -> Array:
    return np.asarray(Predictor(path)(OTHER))


@pytest.mark.parametrize("place", [set_tensor, memory, signature, batch, rows])
def test_values_are_the_same(place: Callable[[Path], Array], tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(negation())
    np.testing.assert_array_equal(place(tmp_path / "m.tflite"), -VALUES)


def test_litert_is_given_the_values_in_its_order() -> None:
    report = verify(negation(), inputs=[{"x": OTHER}], runtimes=["interpreter"])
    assert report.verdict.name == "EXACT"


def test_a_constant_of_another_order_is_refused() -> None:
    with pytest.raises(ModelError, match=r"no type of [<>]f4"):
        ModelBuilder().subgraph("main").constant("c", OTHER)


@pytest.mark.parametrize("dtype", [OTHER.dtype, np.float64, np.int32, np.float16])
def test_a_result_of_another_type_is_refused(dtype: npt.DTypeLike) -> None:
    resolver = BuiltinOpResolver()
    resolver.add_custom("Mine", Registration(function=lambda x: (-x).astype(dtype)))
    with pytest.raises(KernelError, match="expected float32"):
        Interpreter(model_content=negation("Mine"), resolver=resolver).get_signature_runner("s")(
            x=VALUES
        )
