"""Variables over invokes in a row, against LiteRT; and exported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Node, T, assert_close
from tests.oracle import litert_interpreter
from tests.subgraph_models import HANDLE, Sub, check_invokes, invoked, model_of
from tflite_ort import (
    ExecutionProviderDelegate,
    ExportError,
    Interpreter,
    ModelError,
    StateError,
    export_onnx,
    first_state,
)
from tflite_ort.schema import (
    AddOptions,
    CallOnceOptions,
    ConcatenationOptions,
    IfOptions,
    MulOptions,
    Op,
    TensorType,
    VarHandleOptions,
    WhileOptions,
)

Array = npt.NDArray[Any]

X = T((2,))
FLAG, COUNT = T((), TensorType.BOOL), T((), TensorType.INT32)
CODES = T((2,), TensorType.INT8, scale=0.5, zero_point=3)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def handle(name: str = "h", variable: str = "v") -> Node:
    return Node(Op.VAR_HANDLE, [], [name], VarHandleOptions(container="", shared_name=variable))


def read(source: str, result: str) -> Node:
    return Node(Op.READ_VARIABLE, [source], [result])


def assign(target: str, value: str) -> Node:
    return Node(Op.ASSIGN_VARIABLE, [target, value], [])


def once(subgraph: int) -> Node:
    return Node(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=subgraph))


def add(a: str, b: str, result: str) -> Node:
    return Node(Op.ADD, [a, b], [result], AddOptions())


def mul(a: str, b: str, result: str) -> Node:
    return Node(Op.MUL, [a, b], [result], MulOptions())


def first(value: Array) -> Sub:
    """What gives the variable its first value."""
    tensors = {"h": HANDLE, "k": T.constant(value, quantized(value))}
    return Sub(tensors, [handle(), assign("h", "k")])


def quantized(value: Array) -> TensorType:
    return {np.dtype(np.float32): TensorType.FLOAT32, np.dtype(np.int8): TensorType.INT8}[
        value.dtype
    ]


def main(nodes: Sequence[Node], outputs: Sequence[str], t: T = X, **tensors: T) -> Sub:
    """h is the variable's handle; r, s and q are of the type of the input x."""
    own = {"h": HANDLE, "x": t, "r": t, "s": t, "q": t, **tensors}
    feeds = [name for name in ("c", "i", "n") if name in tensors]
    return Sub(own, [handle(), *nodes], [*feeds, "x"], outputs)


SUM = [once(1), read("h", "r"), add("r", "x", "s"), assign("h", "s")]
INPUTS = [[floats(1, 1)], [floats(2, 3)], [floats(0, -1)], [floats(5, 5)]]
FIRST = first(floats(1, 2))

ADDING = Sub(
    {"g": HANDLE, "a": X, "r": X, "s": X},
    [read("g", "r"), add("a", "r", "s"), assign("g", "s")],
    ["g", "a"],
    ["s"],
)
SQUARING = Sub({"g": HANDLE, "a": X, "r": X}, [mul("a", "a", "r")], ["g", "a"], ["r"])
CHOICE = Node(Op.IF, ["c", "h", "x"], ["s"], IfOptions(1, 2))
FLAGS = [[np.array(flag), floats(1, 2)] for flag in (True, False, True, True)]

STATE = {"i": COUNT, "n": COUNT, "g": HANDLE}
BELOW = Sub(STATE | {"t": FLAG}, [Node(Op.LESS, ["i", "n"], ["t"])], list(STATE), ["t"])
DOUBLING = Sub(
    STATE | {"one": T.constant(np.int32(1)), "j": COUNT, "r": X, "s": X},
    [add("i", "one", "j"), read("g", "r"), add("r", "r", "s"), assign("g", "s")],
    list(STATE),
    ["j", "n", "g"],
)
LOOP = Node(Op.WHILE, ["i", "n", "h"], ["oi", "on", "oh"], WhileOptions(1, 2))
COUNTS = [[np.zeros((), np.int32), np.array(count, np.int32), floats(1, 2)] for count in (3, 0, 2)]

MODELS: dict[str, tuple[bytes, list[list[Array]]]] = {
    "sum": (model_of(main(SUM, ["r", "s"]), FIRST), INPUTS),
    "read again": (model_of(main([*SUM, read("h", "q")], ["r", "s", "q"]), FIRST), INPUTS),
    "set twice": (
        model_of(
            main(
                [*SUM, read("h", "q"), mul("q", "r", "p"), assign("h", "p")],
                ["r", "s", "q"],
                p=X,
            ),
            FIRST,
        ),
        INPUTS,
    ),
    "set before it is read": (
        model_of(main([assign("h", "x"), read("h", "r")], ["r"])),
        INPUTS,
    ),
    "codes": (
        model_of(main(SUM, ["r", "s"], t=CODES), first(np.array([1, 2], np.int8))),
        [[np.array(x, np.int8)] for x in ((1, 5), (-7, 100), (3, -100))],
    ),
    "without dimensions": (
        model_of(main(SUM, ["r", "s"], t=T(())), first(np.array(2, np.float32))),
        [[np.array(x, np.float32)] for x in (1, 2, 3)],
    ),
    "set in a branch": (
        model_of(
            main([once(3), CHOICE, read("h", "r")], ["s", "r"], c=FLAG), ADDING, SQUARING, FIRST
        ),
        FLAGS,
    ),
    "set in a loop": (
        model_of(
            main(
                [once(3), LOOP, read("oh", "r"), add("r", "x", "s")],
                ["r", "s"],
                i=COUNT,
                n=COUNT,
                oi=COUNT,
                on=COUNT,
                oh=HANDLE,
            ),
            BELOW,
            DOUBLING,
            FIRST,
        ),
        COUNTS,
    ),
}
CPU = "CPUExecutionProvider"


@pytest.mark.parametrize("name", MODELS)
def test_invokes_in_a_row_give_what_litert_gives(name: str) -> None:
    interpreter = check_invokes(*MODELS[name])
    on_ort = {row.operator for row in interpreter.delegation() if row.subgraph == 0}
    assert {row.operator for row in interpreter.delegation() if row.runs_on == "numpy"} <= {
        "CALL_ONCE",
        "ASSIGN_VARIABLE",  # of what runs once
    }
    assert on_ort


@pytest.mark.parametrize("refused", [Op.ADD, Op.READ_VARIABLE, Op.ASSIGN_VARIABLE, Op.MUL])
@pytest.mark.parametrize("name", MODELS)
def test_numpy_and_onnx_runtime_share_a_variable(name: str, refused: Op) -> None:
    model, invokes = MODELS[name]
    delegate = ExecutionProviderDelegate(CPU, max_versions={refused: 0})
    mixed = Interpreter(model_content=model, providers=[delegate])
    theirs = litert_interpreter(model, "reference")
    mixed.allocate_tensors()
    theirs.allocate_tensors()
    for feeds in invokes:
        for want, got in zip(invoked(theirs, feeds), invoked(mixed, feeds), strict=True):
            assert_close(got, want, 0, 1e-6, name)


@pytest.mark.parametrize("name", MODELS)
def test_an_export_has_the_state_as_inputs_and_outputs(name: str) -> None:
    model, invokes = MODELS[name]
    exported = export_onnx(model, state_defaults=True)
    (pair,) = json.loads({p.key: p.value for p in exported.metadata_props}["tflite.state"])
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    assert pair == ["v" if name != "set before it is read" else None, "v_next"]
    state: dict[str, Array] = {}
    for feeds in invokes:
        named = {v.name: x for v, x in zip(session.get_inputs(), feeds, strict=True)}
        *results, after = session.run(None, {**named, **state})
        state = {"v": after} if pair[0] else {}
        for got, want in zip(results, invoked(interpreter, feeds), strict=True):
            assert_close(got, want, 0, 1e-6, name)


@pytest.mark.parametrize("name", MODELS)
def test_a_stateless_export_starts_anew(name: str) -> None:
    model, invokes = MODELS[name]
    session = onnxruntime.InferenceSession(export_onnx(model, stateful=False).SerializeToString())
    for feeds in invokes:
        interpreter = Interpreter(model_content=model)
        interpreter.allocate_tensors()
        named = {v.name: x for v, x in zip(session.get_inputs(), feeds, strict=True)}
        for got, want in zip(session.run(None, named), invoked(interpreter, feeds), strict=True):
            assert_close(got, want, 0, 1e-6, name)


@given(data=st.data())
def test_any_order_of_reading_and_setting_gives_what_litert_gives(data: st.DataObject) -> None:
    """Two variables, and sums of which some run in numpy; so may reading or setting."""
    variables, values = {"v": "g", "w": "h"}, ["x"]
    tensors = {"g": HANDLE, "h": HANDLE, "x": X}
    nodes = [once(1), *(handle(name, variable) for variable, name in variables.items())]
    for number in range(data.draw(st.integers(2, 12))):
        kind, result = data.draw(st.sampled_from(["read", "assign", "add"])), f"t{number}"
        name = data.draw(st.sampled_from(list(variables.values())))
        if kind == "assign":
            nodes.append(assign(name, data.draw(st.sampled_from(values))))
            continue
        tensors[result] = X
        if kind == "read":
            nodes.append(read(name, result))
        else:
            a, b = (data.draw(st.sampled_from(values)) for _ in range(2))
            version = data.draw(st.integers(1, 2))
            nodes.append(Node(Op.ADD, [a, b], [result], AddOptions(), version))
        values.append(result)
    firsts = Sub(
        {"g": HANDLE, "h": HANDLE, "k": T.constant(floats(1, 2)), "l": T.constant(floats(3, 4))},
        [handle("g", "v"), handle("h", "w"), assign("g", "k"), assign("h", "l")],
    )
    model = model_of(Sub(tensors, nodes, ["x"], values[1:] or ["x"]), firsts)
    limits = {Op.ADD: 1}
    for op in (Op.READ_VARIABLE, Op.ASSIGN_VARIABLE):
        limits[op] = data.draw(st.integers(0, 1))
    delegate = ExecutionProviderDelegate(CPU, max_versions=limits)
    mixed = Interpreter(model_content=model, providers=[delegate])
    theirs = litert_interpreter(model, "reference")
    mixed.allocate_tensors()
    theirs.allocate_tensors()
    for x in ([0.5, 1], [2, -1], [0, 3]):
        wanted, got = (invoked(i, [floats(*x)]) for i in (theirs, mixed))
        np.testing.assert_array_equal(got, wanted)


def test_a_reset_leaves_resources_as_they_are() -> None:
    model, invokes = MODELS["sum"]
    interpreters = [litert_interpreter(model), Interpreter(model_content=model)]
    for interpreter in interpreters:
        interpreter.allocate_tensors()
    for feeds in invokes:
        theirs, mine = (invoked(interpreter, feeds) for interpreter in interpreters)
        np.testing.assert_array_equal(mine, theirs)
        for interpreter in interpreters:
            interpreter.reset_all_variables()


def test_what_ran_once_does_not_run_again_after_a_resize() -> None:
    """The variable has 2 elements, and an input of 1 is spread over them."""
    model, _ = MODELS["sum"]
    interpreters = [litert_interpreter(model), Interpreter(model_content=model)]
    for interpreter in interpreters:
        interpreter.allocate_tensors()
    for feeds in ([floats(1, 2)], [floats(3)], [floats(4, 5)]):
        theirs, mine = (invoked(interpreter, feeds) for interpreter in interpreters)
        np.testing.assert_array_equal(mine, theirs)


def test_interpreters_do_not_share_a_variable() -> None:
    model, invokes = MODELS["sum"]
    one, other = (Interpreter(model_content=model) for _ in range(2))
    for interpreter in (one, other):
        interpreter.allocate_tensors()
    before = [invoked(one, feeds) for feeds in invokes]
    after = [invoked(other, feeds) for feeds in invokes]
    np.testing.assert_array_equal(before, after)


def test_signatures_share_a_variable() -> None:
    step = replace(main(SUM, ["s"]), signature="step")
    look = Sub({"h": HANDLE, "r": X}, [handle(), read("h", "r")], [], ["r"], "look")
    content = model_of(step, FIRST, look)
    interpreters = [litert_interpreter(content), Interpreter(model_content=content)]
    runners = [[i.get_signature_runner(key) for key in ("step", "look")] for i in interpreters]
    for (x,) in INPUTS:
        theirs, mine = ([step(x=x)["s"], look()["r"]] for step, look in runners)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("providers", [None, []])
def test_a_variable_that_grows_changes_the_shape_that_is_read(providers: Any) -> None:
    nodes = [
        once(1),
        read("h", "r"),
        Node(Op.CONCATENATION, ["r", "x"], ["s"], ConcatenationOptions(axis=0)),
        assign("h", "s"),
    ]
    model = model_of(main(nodes, ["s"]), FIRST)
    interpreter = Interpreter(model_content=model, providers=providers)
    interpreter.allocate_tensors()
    want = floats(1, 2)
    for feeds in INPUTS:
        want = np.concatenate([want, feeds[0]])
        np.testing.assert_array_equal(invoked(interpreter, feeds), [want])


@pytest.mark.parametrize("providers", [None, []])
def test_reading_before_anything_is_assigned_is_refused(providers: Any) -> None:
    nodes = [read("h", "r"), add("r", "x", "s"), assign("h", "s")]
    model = model_of(main(nodes, ["s"]))
    interpreter = Interpreter(model_content=model, providers=providers)
    interpreter.allocate_tensors()
    with pytest.raises(StateError, match="variable 'v' is read before it has a value"):
        interpreter.invoke()
    with pytest.raises(ExportError, match="variable 'v' is read and has no first value"):
        export_onnx(model, stateful=False)


def test_a_handle_that_depends_on_data_is_refused() -> None:
    branches = [Sub({"g": HANDLE}, [handle("g", name)], [], ["g"]) for name in ("v", "w")]
    node = Node(Op.IF, ["c"], ["h"], IfOptions(1, 2))
    tensors = {"c": FLAG, "h": HANDLE, "r": X}
    model = model_of(Sub(tensors, [node, read("h", "r")], ["c"], ["r"]), *branches)
    with pytest.raises(ModelError, match="which resource 'h' is depends on data"):
        Interpreter(model_content=model).allocate_tensors()


def test_an_exported_variable_can_grow() -> None:
    nodes = [
        once(1),
        read("h", "r"),
        Node(Op.CONCATENATION, ["r", "x"], ["s"], ConcatenationOptions(axis=0)),
        assign("h", "s"),
    ]
    exported = export_onnx(model_of(main(nodes, ["s"]), FIRST), state_defaults=True)
    sizes = {
        value.name: value.type.tensor_type.shape.dim[0].dim_param
        for value in (*exported.graph.input, *exported.graph.output)
    }
    assert sizes["v"] and sizes["v_next"] and sizes["v"] != sizes["v_next"]
    fed = first_state(export_onnx(model_of(main(nodes, ["s"]), FIRST)))
    np.testing.assert_array_equal(fed["v"], floats(1, 2))
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    want, state = floats(1, 2), dict[str, Array]()
    for (x,) in INPUTS:
        want = np.concatenate([want, x])
        result, after = session.run(None, {"x": x, **state})
        state = {"v": after}
        np.testing.assert_array_equal(result, want)


def test_a_state_without_elements_has_a_first_value() -> None:
    empty = T((0, 2), shape_signature=(0, -1))
    content = model_of(main([read("h", "r"), assign("h", "x")], ["r"], empty))
    (fed,) = first_state(export_onnx(content)).values()
    assert len(fed) == 0 and fed.ndim == 2 and fed.dtype == np.float32


def test_variables_of_one_name_are_numbered() -> None:
    """They are in different containers."""
    other = Node(Op.VAR_HANDLE, [], ["g"], VarHandleOptions(container="c", shared_name="v"))
    tensors = {"h": HANDLE, "g": HANDLE, "k": T.constant(floats(1, 2))}
    both = Sub(tensors, [handle(), assign("h", "k"), other, assign("g", "k")])
    nodes = [once(1), other, read("h", "r"), add("r", "x", "s"), assign("h", "s")]
    nodes += [read("g", "q"), assign("g", "x")]
    model = model_of(main(nodes, ["s", "q"], g=HANDLE), both)
    check_invokes(model, INPUTS)
    exported = export_onnx(model, state_defaults=True)
    pairs = json.loads({p.key: p.value for p in exported.metadata_props}["tflite.state"])
    assert pairs == [["v", "v_next"], ["v_1", "v_next_1"]]


def test_the_state_of_a_file_has_to_be_fed_and_the_metadata_tell_its_first_value(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """ONNX Runtime says nothing when it loads such a file."""
    model, invokes = MODELS["sum"]
    exported = export_onnx(model, tmp_path / "model.onnx", check=True)
    assert not {each.name for each in exported.graph.initializer} & {"v"}
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert not capfd.readouterr().err
    with pytest.raises(ValueError, match="Required inputs"):
        session.run(None, {session.get_inputs()[0].name: invokes[0][0]})
    said = {entry.key: json.loads(entry.value) for entry in exported.metadata_props}
    assert set(said["tflite.state_first"]) == {"v"}
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    state = first_state(tmp_path / "model.onnx")
    for feeds in invokes:
        named = {v.name: x for v, x in zip(session.get_inputs(), feeds, strict=False)}
        *results, after = session.run(None, {**named, **state})
        state = {"v": after}
        for got, want in zip(results, invoked(interpreter, feeds), strict=True):
            assert_close(got, want, 0, 1e-6, "fed")


def test_a_file_with_first_values_starts_by_itself() -> None:
    model, _ = MODELS["sum"]
    plain, defaults = export_onnx(model), export_onnx(model, state_defaults=True)
    (value,) = (x for x in defaults.graph.initializer if x.name == "v")
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(value), first_state(plain)["v"])
    assert first_state(defaults) == {}


def test_first_values_that_differ_are_a_list() -> None:
    first = first_state(export_onnx(MODELS["sum"][0]))
    np.testing.assert_array_equal(first["v"], floats(1, 2))
    (told,) = (
        p.value
        for p in export_onnx(MODELS["sum"][0]).metadata_props
        if p.key == "tflite.state_first"
    )
    assert json.loads(told) == {"v": {"shape": [2], "elements": [1.0, 2.0]}}


def test_a_variable_that_is_never_set_is_a_constant() -> None:
    nodes = [once(1), read("h", "r"), add("r", "x", "s")]
    exported = export_onnx(model_of(main(nodes, ["s"]), FIRST))
    assert [each.name for each in exported.graph.input] == ["x"]
    assert not {"tflite.state", "tflite.state_first"} & {p.key for p in exported.metadata_props}
