"""LiteRT 2's names and types: options, classes and arguments beside the installed LiteRT's."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.test_cli import INT8
from tflite_ort import install_as
from tflite_ort.compiled_model import (
    CompiledModel,
    Environment,
    GpuOptions,
    Options,
    TensorBuffer,
)
from tflite_ort.schema import Op, TensorType

# Types that LiteRT's own class takes, as the bytes that they are.
TAKEN = {"bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32"}
TYPES = [
    *("bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
    *("uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "U3"),
    *("object", "datetime64[s]", ">f4", ">i4", ">f2", "V4"),
]


def taken(call: Callable[..., Any], *arguments: Any) -> str:
    try:
        call(*arguments)
    except ValueError as error:
        assert str(error).startswith("Unsupported dtype"), error
        return "refused"
    return "taken"


@pytest.mark.parametrize("name", TYPES)
def test_a_buffer_takes_the_types_that_litert_takes(name: str) -> None:
    theirs_module = pytest.importorskip("ai_edge_litert.compiled_model")
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    model = one_op_model(Op.NEG, [T((20,))], [T((20,))])
    found = []
    for kind in (theirs_module.CompiledModel, CompiledModel):
        compiled = kind.from_buffer(model)
        (buffer,), (answer,) = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
        told = [taken(buffer.write, np.zeros(5, dtype)), taken(answer.read, 2, dtype)]
        if told[0] == "taken":
            buffer.write(np.frombuffer(bytes(range(80)), np.uint8).view(dtype))
            compiled.run_by_index(0, [buffer], [answer])
            told.append(answer.read(20, np.float32).tobytes())
        found.append(told)
    assert found[0] == found[1]
    assert (found[1][0] == "taken") == (name in TAKEN)


@pytest.mark.parametrize("name", ["int16", "uint16", "uint32", "int64", "float64", "complex64"])
def test_of_other_types_a_buffer_takes_its_own(name: str) -> None:
    (tensor,) = (type for type in TensorType if type.name.lower() == name)
    repeats = T((1,), TensorType.INT32, data=np.int32([2]))
    model = one_op_model(Op.TILE, [T((4,), tensor), repeats], [T((8,), tensor)])
    compiled = CompiledModel.from_buffer(model)
    (buffer,), (answer,) = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    values = np.arange(4).astype(name)
    for taken_buffer in (buffer, TensorBuffer.create_from_host_memory(values)):
        taken_buffer.write(values)
        compiled.run_by_index(0, [taken_buffer], [answer])
        np.testing.assert_array_equal(answer.read(8, name), np.tile(values, 2))
    for other in {"int64", "float64", "int16"} - {name}:
        with pytest.raises(ValueError, match=f"{other}; the buffer has {name}"):
            buffer.write(values.real.astype(other))
        for size, sides in (
            (4, lambda host: ([host], [answer])),
            (8, lambda host: ([buffer], [host])),
        ):
            host = TensorBuffer.create_from_host_memory(np.zeros(size, name).view(other))
            with pytest.raises(RuntimeError, match=f"bytes of {other}, its tensor"):
                compiled.run_by_index(0, *sides(host))
    with pytest.raises(ValueError, match=r"Unsupported dtype: [<>]"):
        TensorBuffer.create_from_host_memory(values.astype(values.dtype.newbyteorder()))


LITERT_MODULES = [
    *("compiled_model", "cpu_kernel_mode", "cpu_options", "environment", "gpu_options"),
    *("hardware_accelerator", "intel_openvino_options", "options", "qualcomm_options"),
    *("tensor_buffer", "interpreter"),
]
# Of LiteRT's own objects, which these are not; a delegate is a library of TFLite there.
INSIDE = {"capsule", "environment", "c_model_ptr", "interpreter"}
APART = {"Delegate.__init__", "SignatureRunner.__init__", "Environment.capsule"}


def classes_of(module: Any) -> dict[str, type]:
    return {
        name: each
        for name, each in vars(module).items()
        if inspect.isclass(each)
        and each.__module__.startswith("ai_edge_litert.")
        and not name.startswith("_")
    }


def names_of(function: Any) -> list[str]:
    return [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        and each.name not in INSIDE | {"self"}
    ]


@pytest.mark.parametrize("name", LITERT_MODULES)
def test_all_that_litert_names_is_here(name: str) -> None:
    """Classes, methods, arguments in their order, fields and members: what a new release adds is
    seen here."""
    theirs = importlib.import_module(f"ai_edge_litert.{name}")
    with install_as("ai_edge_litert"):
        ours = importlib.import_module(f"ai_edge_litert.{name}")
        found = {each: vars(ours).get(each) for each in classes_of(theirs)}
    for each, wanted in classes_of(theirs).items():
        kind = found[each]
        assert kind is not None and kind is not wanted, each
        if issubclass(wanted, enum.Enum):
            assert {k: v.value for k, v in kind.__members__.items()} == {
                k: v.value for k, v in wanted.__members__.items()
            }
            continue
        for method in vars(wanted):
            private = method.startswith("_") and method != "__init__"
            if private or f"{each}.{method}" in APART:
                continue
            assert hasattr(kind, method) or method in vars(kind)["__annotations__"], method
            if inspect.isroutine(getattr(wanted, method)):
                taken = names_of(getattr(kind, method))
                asked = names_of(getattr(wanted, method))
                if "arguments" in inspect.signature(getattr(kind, method)).parameters:
                    continue  # all of Interpreter's by name
                assert taken[: len(asked)] == asked, f"{each}.{method}"


def test_options_are_equal_if_all_of_them_are() -> None:
    assert Options() == Options.create()
    assert Options() != Options(gpu_options=GpuOptions(constant_tensor_sharing=True))
    options = Options()
    options.qualcomm_options.log_level = options.qualcomm_options.LOG_LEVEL.WARN
    options.intel_openvino_options.configs_map["KEY"] = "value"
    assert options.qualcomm_options.log_level == 2
    assert options != Options()
    assert CompiledModel.from_file(INT8, options=options).is_fully_accelerated()


def test_an_environment_has_a_cache(tmp_path: Path) -> None:
    environment = Environment.create(compiler_cache_dir=str(tmp_path / "cache"))
    assert environment.options.compiler_cache_dir
    CompiledModel.from_file(INT8, environment=environment)
    assert any((tmp_path / "cache").rglob("*"))
