"""Intermediate results that are read after an invoke, where not all tensors are preserved."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import model_path
from tests.one_op import Node, T, graph_model
from tests.ops.test_state import FIRST, SUM, X, add, assign, floats, main, mul, once, read
from tests.oracle import litert_interpreter
from tests.subgraph_models import Sub, invoked, model_of
from tests.test_state import SHAPE, resolver, running_sums
from tflite_ort import BuiltinOpResolver, Interpreter, TensorError
from tflite_ort.schema import Op, RandomOptions, TensorType

Array = npt.NDArray[Any]

# Of one subgraph: x, sum, product, y.
CHAIN = graph_model(
    {"x": X, "sum": X, "product": X, "y": X},
    [add("x", "x", "sum"), mul("sum", "sum", "product"), add("product", "x", "y")],
    ["y"],
)
SUMMED, PRODUCT = 1, 2
NETWORK = "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite"


def ready(content: bytes, **options: Any) -> Interpreter:
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("options", [{}, {"providers": []}], ids=["ort", "numpy"])
def test_a_value_is_that_of_the_last_invoke(options: dict[str, Any]) -> None:
    interpreter = ready(CHAIN, **options)
    for step in range(1, 5):
        (y,) = invoked(interpreter, [floats(step, -step)])
        np.testing.assert_array_equal(interpreter.get_tensor(PRODUCT), [4 * step**2] * 2)
        np.testing.assert_array_equal(interpreter.get_tensor(PRODUCT), [4 * step**2] * 2)
        if step > 2:  # one that was not asked for yet
            np.testing.assert_array_equal(interpreter.get_tensor(SUMMED), [2 * step, -2 * step])
        np.testing.assert_array_equal(y, [4 * step**2 + step, 4 * step**2 - step])
        np.testing.assert_array_equal(interpreter.get_tensor(3), y)


def test_inputs_that_were_set_since_are_no_inputs_of_the_last_invoke() -> None:
    interpreter = ready(CHAIN)
    with pytest.raises(TensorError, match=r"'product' \(2\) is an intermediate .* no invoke"):
        interpreter.get_tensor(PRODUCT)
    invoked(interpreter, [floats(1, 2)])
    np.testing.assert_array_equal(interpreter.get_tensor(PRODUCT), floats(4, 16))
    interpreter.set_tensor(0, floats(9, 9))
    np.testing.assert_array_equal(interpreter.get_tensor(PRODUCT), floats(4, 16))
    with pytest.raises(TensorError, match=r"inputs were set.*kept from now on"):
        interpreter.get_tensor(SUMMED)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(SUMMED), floats(18, 18))
    np.testing.assert_array_equal(interpreter.get_tensor(PRODUCT), floats(324, 324))


def test_what_was_written_through_a_view_was_set() -> None:
    interpreter = ready(CHAIN)
    interpreter.tensor(0)()[...] = floats(1, 2)
    interpreter.invoke()
    interpreter.tensor(0)()[...] = floats(5, 5)
    with pytest.raises(TensorError, match="inputs were set"):
        interpreter.get_tensor(PRODUCT)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.tensor(PRODUCT)(), floats(100, 100))
    held = interpreter.tensor(PRODUCT)
    interpreter.set_tensor(0, floats(1, 1))
    interpreter.invoke()
    np.testing.assert_array_equal(held(), floats(4, 4))


def test_arrays_that_are_held_stay_those_of_the_interpreter() -> None:
    interpreter = ready(CHAIN)
    invoked(interpreter, [floats(1, 2)])
    view = interpreter.tensor(3)()
    interpreter.get_tensor(PRODUCT)
    assert np.shares_memory(view, interpreter.tensor(3)())
    del view
    invoked(interpreter, [floats(2, 1)])
    np.testing.assert_array_equal(interpreter.get_tensor(3), floats(18, 5))


def test_it_is_kept_after_a_resize_too() -> None:
    interpreter = ready(CHAIN)
    invoked(interpreter, [floats(1, 2)])
    interpreter.get_tensor(PRODUCT)
    for size in (3, 2, 5):
        x = np.arange(size, dtype=np.float32)
        invoked(interpreter, [x])
        np.testing.assert_array_equal(interpreter.get_tensor(PRODUCT), 4 * x * x)
        interpreter.set_tensor(0, x + 1)  # it is not computed again
        np.testing.assert_array_equal(interpreter.get_tensor(PRODUCT), 4 * x * x)


def test_values_are_those_of_a_network_that_keeps_all() -> None:
    path = model_path(NETWORK)
    mine, all_kept = Interpreter(path), Interpreter(path, experimental_preserve_all_tensors=True)
    image = np.random.default_rng(40).integers(0, 256, (1, 224, 224, 3)).astype(np.uint8)
    for interpreter in (mine, all_kept):
        interpreter.allocate_tensors()
        invoked(interpreter, [image])
    results = [op["outputs"][0] for op in all_kept._get_ops_details()]
    for index in results[:: len(results) // 6]:
        np.testing.assert_array_equal(mine.get_tensor(index), all_kept.get_tensor(index))
    invoked(mine, [image])
    invoked(all_kept, [image])
    for index in results:
        np.testing.assert_array_equal(mine.get_tensor(index), all_kept.get_tensor(index))


# State -------------------------------------------------------------------------------------------


def test_state_that_has_changed_is_told() -> None:
    """'q' depends on the variable that the invoke sets, 'z' on the input alone."""
    tensors = {"z": X, "u": X, "y": X}
    nodes = [*SUM, mul("x", "x", "z"), mul("r", "x", "q"), add("q", "z", "u"), add("u", "x", "y")]
    content = model_of(main(nodes, ["y"], **tensors), FIRST)
    interpreter, theirs = ready(content), litert_interpreter(content, "reference", keep_all=True)
    theirs.allocate_tensors()
    names = {each["name"]: each["index"] for each in interpreter.get_tensor_details()}
    for step in range(3):
        feeds = [floats(step, 3)]
        wanted = invoked(theirs, feeds)
        np.testing.assert_array_equal(invoked(interpreter, feeds)[0], wanted[0])
        np.testing.assert_array_equal(interpreter.get_tensor(names["z"]), floats(step**2, 9))
        if step == 0:
            with pytest.raises(TensorError, match="state that it depends on has changed"):
                interpreter.get_tensor(names["q"])
            continue
        value = theirs.get_tensor(names["q"])
        np.testing.assert_array_equal(interpreter.get_tensor(names["q"]), value)


def test_reading_leaves_variable_tensors_as_they_are() -> None:
    content, ones = running_sums("ort", "ort"), [np.ones(SHAPE, np.float32)]
    interpreter = ready(content, resolver=resolver())
    all_kept = ready(content, resolver=resolver(), experimental_preserve_all_tensors=True)
    for step in range(3):
        (y,), (same,) = invoked(interpreter, ones), invoked(all_kept, ones)
        np.testing.assert_array_equal(y, same)
        if step == 0:
            with pytest.raises(TensorError, match="state that it depends on has changed"):
                interpreter.get_tensor(2)
        for index in (1, 2) if step else (1,):
            value = all_kept.get_tensor(index)
            np.testing.assert_array_equal(interpreter.get_tensor(index), value)


def test_variables_that_only_start_are_as_they_were() -> None:
    """As those of weights: CALL_ONCE has set them at the first invoke."""
    own = {"h": T((), TensorType.RESOURCE), "x": X, "r": X, "s": X, "y": X}
    nodes = [main([], []).nodes[0], once(1), read("h", "r"), mul("r", "x", "s"), add("s", "x", "y")]
    infer = Sub(own, nodes, ["x"], ["y"], "infer")
    put = Sub({"h": own["h"], "x": X, "y": X}, [nodes[0], assign("h", "x"), add("x", "x", "y")],
              ["x"], ["y"], "put")  # fmt: skip
    interpreter = ready(model_of(infer, FIRST, put))
    invoked(interpreter, [floats(3, 3)])
    np.testing.assert_array_equal(interpreter.get_tensor(3), floats(3, 6))
    summing = [once(1), *nodes[:1], read("h", "r"), add("r", "x", "s"), assign("h", "s")]
    train = Sub({name: own[name] for name in "hxrs"}, summing, ["x"], ["s"], "train")
    for change in (put, train):  # in numpy, and in one session
        other = ready(model_of(infer, FIRST, change))
        runner = other.get_signature_runner(change.signature)
        for _ in range(2):
            invoked(other, [floats(3, 3)])
            runner(x=floats(7, 7))
        with pytest.raises(TensorError, match="state that it depends on has changed"):
            other.get_tensor(3)


def test_what_may_differ_is_not_computed_again() -> None:
    size = T.constant(np.int32([2]))
    draw = Node(Op.RANDOM_UNIFORM, ["size"], ["r"], RandomOptions())
    tensors = {"x": X, "size": size, "r": X, "t": X, "y": X}
    nodes = [draw, add("r", "x", "t"), add("t", "x", "y")]
    interpreter = ready(graph_model(tensors, nodes, ["y"]))
    invoked(interpreter, [floats(0, 0)])
    with pytest.raises(TensorError, match="random numbers"):
        interpreter.get_tensor(3)
    (y,) = invoked(interpreter, [floats(0, 0)])
    np.testing.assert_array_equal(interpreter.get_tensor(3), y)


def test_an_operator_of_a_user_does_not_run_for_it() -> None:
    resolver, calls = BuiltinOpResolver(), list[int]()

    @resolver.custom("Counted")
    def counted(x: Array) -> Array:
        calls.append(1)
        return x * len(calls)

    nodes = [Node("Counted", ["x"], ["t"]), add("t", "t", "y")]
    content = graph_model({"x": X, "t": X, "y": X}, nodes, ["y"])
    interpreter = ready(content, resolver=resolver)
    invoked(interpreter, [floats(1, 1)])
    ran = len(calls)
    np.testing.assert_array_equal(interpreter.get_tensor(1), floats(ran, ran))
    assert len(calls) == ran


# What has no value -------------------------------------------------------------------------------


def test_an_output_of_unknown_shape_is_called_an_output() -> None:
    """Before the first invoke it has no value; LiteRT's is of any size then."""
    flag = T((2,), TensorType.BOOL)
    where = Node(Op.WHERE, ["c"], ["y"])
    interpreter = ready(graph_model({"c": flag, "y": T((2, 1), TensorType.INT64)}, [where], ["y"]))
    with pytest.raises(TensorError, match=r"'y' \(1\) is an output whose shape depends on data"):
        interpreter.get_tensor(1)
    invoked(interpreter, [np.array([True, True])])
    np.testing.assert_array_equal(interpreter.get_tensor(1), [[0], [1]])


def test_what_no_operator_makes_has_no_value() -> None:
    interpreter = ready(
        model_of(Sub({"x": X, "y": X, "idle": X}, [add("x", "x", "y")], ["x"], ["y"]))
    )
    invoked(interpreter, [floats(1, 1)])
    with pytest.raises(TensorError, match=r"'idle' \(2\) is made by no operator"):
        interpreter.get_tensor(2)
    with pytest.raises(TensorError, match=r"'idle' .* is set by an invoke"):
        interpreter.set_tensor(2, floats(1, 1))


# Costs and lives ---------------------------------------------------------------------------------


def test_signatures_and_the_cache(tmp_path: Path) -> None:
    content = model_of(
        Sub({"x": X, "t": X, "y": X}, [add("x", "x", "t"), mul("t", "t", "y")], ["x"], ["y"], "a"),
        Sub({"x": X, "t": X, "y": X}, [mul("x", "x", "t"), add("t", "t", "y")], ["x"], ["y"], "b"),
    )
    for _ in range(2):  # the second one finds the plan of the first one
        interpreter = Interpreter(model_content=content, cache=tmp_path)
        runner = interpreter.get_signature_runner("b")
        for value in (2, 3, 4):
            np.testing.assert_array_equal(runner(x=floats(value, 1))["y"], [2 * value**2, 2])
            np.testing.assert_array_equal(interpreter.get_tensor(1, 1), floats(value**2, 1))


def test_an_interpreter_that_was_asked_is_freed_at_once() -> None:
    interpreter = ready(CHAIN)
    executor = weakref.ref(interpreter._subgraph(0).executor)
    gc.disable()
    try:
        invoked(interpreter, [floats(1, 2)])
        interpreter.get_tensor(PRODUCT)
        del interpreter
        assert executor() is None
    finally:
        gc.enable()
