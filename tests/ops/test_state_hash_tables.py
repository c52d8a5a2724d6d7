"""Hash tables over invokes in a row, against LiteRT; and exported where their content is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.one_op import Node, T
from tests.subgraph_models import Sub, check_invokes, invoked, model_of
from tflite_ort import ExportError, Interpreter, KernelError, ModelError, export_onnx
from tflite_ort.schema import (
    CallOnceOptions,
    HashtableOptions,
    IfOptions,
    Op,
    TensorType,
)

Array = npt.NDArray[Any]

TABLE, NUMBERS = T((1,), TensorType.RESOURCE), T((3,), TensorType.INT64)
WORDS, SIZE = T((3,), TensorType.STRING), T((1,), TensorType.INT64)
FLAG = T((), TensorType.BOOL)


def words(*texts: str | bytes, shape: tuple[int, ...] | None = None) -> T:
    """A constant of strings."""
    data = np.array(texts, np.object_)
    return T.constant(data if shape is None else data.reshape(shape), TensorType.STRING)


def numbers(*values: int) -> T:
    return T.constant(np.array(values, np.int64))


def table(of_texts: bool = False) -> Node:
    types = [TensorType.INT64, TensorType.STRING]
    key, value = reversed(types) if of_texts else types
    options = HashtableOptions(table_id=5, key_dtype=key, value_dtype=value)
    return Node(Op.HASHTABLE, [], ["h"], options)


def imported(keys: str = "k", values: str = "v") -> Node:
    return Node(Op.HASHTABLE_IMPORT, ["h", keys, values], [])


def once(subgraph: int = 1) -> Node:
    return Node(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=subgraph))


FIND = Node(Op.HASHTABLE_FIND, ["h", "x", "d"], ["y"])
COUNT = Node(Op.HASHTABLE_SIZE, ["h"], ["n"])
CONTENT = {"k": numbers(1, 2, 3, 1), "v": words("a", "bé", "", "d")}
NOTHING = {"k": numbers(), "v": words()}
OTHER = {"k2": numbers(9), "v2": words("zz")}
INVOKES = [[np.array(keys, np.int64)] for keys in ((1, 2, 9), (3, 3, 2))]


def main(nodes: Sequence[Node], *, inputs: Sequence[str] = ("x",), **tensors: T) -> Sub:
    own = {"h": TABLE, "x": NUMBERS, "d": words("none"), "y": WORDS, "n": SIZE} | tensors
    return Sub(own, nodes, inputs, ["y", "n"])


def first(*nodes: Node, **tensors: T) -> Sub:
    """What runs once."""
    return Sub({"h": TABLE} | tensors, [table(), *nodes])


FILLED = first(imported(), imported("k2", "v2"), **CONTENT, **OTHER)
USED = [once(), table(), FIND, COUNT]
TEXTS = Sub(
    {
        "h": TABLE,
        "x": WORDS,
        "d": numbers(-1),
        "y": NUMBERS,
        "n": SIZE,
        "k": words("one", "zwölf", ""),
        "v": numbers(10, -20, 2**40),
    },
    [table(of_texts=True), imported(), FIND, COUNT],
    ["x"],
    ["y", "n"],
)
LOOKED_UP = np.array([b"", "zwölf".encode(), b"three"], np.object_)
# A branch has the table filled before it, or by itself.
LOOK = Sub(
    {"h": TABLE, "x": NUMBERS, "d": words("none"), "y": WORDS}, [table(), FIND], ["x"], ["y"]
)
KEEP = Sub({"x": NUMBERS, "y": words("p", "q", "r")}, [], ["x"], ["y"])
CHOOSE = Node(Op.IF, ["c", "x"], ["y"], IfOptions(2, 3))
ONE_KEY = {"x": T((), TensorType.INT64), "y": T((), TensorType.STRING)}

# (model, invokes): the table always holds the same.
KNOWN: dict[str, tuple[bytes, Sequence[Sequence[Array]]]] = {
    "first of two values and of two imports": (model_of(main(USED), FILLED), INVOKES),
    "imported in place": (model_of(main([table(), imported(), FIND, COUNT], **CONTENT)), INVOKES),
    "texts": (model_of(TEXTS), [[LOOKED_UP], [LOOKED_UP[::-1]]]),
    "nothing imported": (
        model_of(main(USED), first(imported(), imported("k2", "v2"), **NOTHING, **OTHER)),
        INVOKES,
    ),
    "in matrices": (
        model_of(
            main(USED),
            first(imported(), k=T.constant(np.array([[1, 2]])), v=words("a", "b", shape=(1, 2))),
        ),
        INVOKES,
    ),
    "one key": (model_of(main(USED, **ONE_KEY), FILLED), [[np.array(2)], [np.array(5)]]),
    "no keys": (
        model_of(main([*USED[:2], COUNT], y=T.constant(np.zeros(1, np.int64))), FILLED),
        INVOKES,
    ),
    "several defaults": (model_of(main(USED, d=words("a", "b")), FILLED), INVOKES),
    "computed default": (
        model_of(main(USED, d=T((1,), TensorType.STRING), inputs=["x", "d"]), FILLED),
        [[*keys, np.array([b"else"], np.object_)] for keys in INVOKES],
    ),
    "computed default, nothing imported": (
        model_of(
            main(USED, d=T((1,), TensorType.STRING), inputs=["x", "d"]),
            first(imported(), **NOTHING),
        ),
        [[*keys, np.array([b"else"], np.object_)] for keys in INVOKES],
    ),
    "in a branch": (
        model_of(
            main([once(), table(), CHOOSE, COUNT], c=FLAG, inputs=["c", "x"]), FILLED, LOOK, KEEP
        ),
        [[np.array(flag), *keys] for flag, keys in zip((True, False), INVOKES, strict=True)],
    ),
}
# What a table holds is found out by running.
UNKNOWN: dict[str, tuple[bytes, Sequence[Sequence[Array]]]] = {
    "computed keys": (
        model_of(
            main(
                [table(), imported(), FIND, COUNT],
                inputs=["x", "k"],
                k=T((2,), TensorType.INT64),
                v=words("a", "b"),
            )
        ),
        [[*keys, np.array(k, np.int64)] for keys, k in zip(INVOKES, ((1, 2), (9, 3)), strict=True)],
    ),
    "imported in a branch": (
        model_of(
            main(
                [table(), Node(Op.IF, ["c"], [], IfOptions(1, 2)), FIND, COUNT],
                c=FLAG,
                inputs=["c", "x"],
            ),
            first(imported(), **CONTENT),
            first(imported("k2", "v2"), **OTHER),
        ),
        [[np.array(flag), *keys] for flag, keys in zip((False, True), INVOKES, strict=True)],
    ),
    "size before the import": (
        model_of(main([table(), COUNT, imported(), FIND], **CONTENT)),
        INVOKES,
    ),
}


def texts(array: Array) -> list[Any]:
    """Strings as bytes, as an interpreter gives them."""
    return [x.encode() if isinstance(x, str) else x for x in array.reshape(-1).tolist()]


def run(session: onnxruntime.InferenceSession, feeds: Sequence[Array]) -> list[Array]:
    names = [value.name for value in session.get_inputs()]
    given = [
        np.array([text.decode() for text in x.reshape(-1)], np.object_).reshape(x.shape)
        if x.dtype == np.object_
        else x
        for x in feeds
    ]
    return session.run(None, dict(zip(names, given, strict=True)))


@pytest.mark.parametrize("name", [*KNOWN, *UNKNOWN])
def test_invokes_in_a_row_give_what_litert_gives(name: str) -> None:
    check_invokes(*(KNOWN | UNKNOWN)[name], kernels="default")


@pytest.mark.parametrize("name", KNOWN)
def test_an_export_has_the_tables_in_it(name: str) -> None:
    model, invokes = KNOWN[name]
    exported = export_onnx(model, state_defaults=True)
    onnx.checker.check_model(exported)
    assert "tflite.state" not in {entry.key for entry in exported.metadata_props}
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    interpreter = litert.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for feeds in invokes:
        for want, got in zip(invoked(interpreter, feeds), run(session, feeds), strict=True):
            assert got.shape == want.shape
            assert texts(got) == texts(want)


@pytest.mark.parametrize("stateful", [True, False])
@pytest.mark.parametrize("name", UNKNOWN)
def test_an_export_of_what_is_not_known_is_refused(name: str, stateful: bool) -> None:
    with pytest.raises(ExportError, match=r"HASHTABLE_(FIND|SIZE)|IF_1"):
        export_onnx(UNKNOWN[name][0], stateful=stateful)


def test_the_refusal_says_what_is_missing() -> None:
    with pytest.raises(ExportError, match="what the table holds is not known before the run"):
        export_onnx(UNKNOWN["computed keys"][0])


@pytest.mark.parametrize("providers", [None, []])
@pytest.mark.parametrize("nodes", [[table(), FIND, imported()], [table(), FIND]])
def test_a_find_before_the_import_is_refused(nodes: list[Node], providers: Any) -> None:
    model = model_of(replace(main(nodes, **CONTENT), outputs=["y"]))
    interpreters = [
        litert.Interpreter(model_content=model),
        Interpreter(model_content=model, providers=providers),
    ]
    for interpreter, kind, text in zip(
        interpreters,
        (RuntimeError, KernelError),
        ("need to be initialized", "nothing has been imported"),
        strict=True,
    ):
        interpreter.allocate_tensors()
        with pytest.raises(kind, match=text):
            invoked(interpreter, INVOKES[0])
    with pytest.raises(ExportError, match="HASHTABLE_FIND_1"):
        export_onnx(model)


def test_signatures_that_import_other_content_leave_it_to_who_comes_first() -> None:
    """Each has a subgraph that runs once, and the first one fills the table that both use."""
    other = first(imported("k2", "v2"), k2=numbers(1), v2=words("zz"))
    one = replace(main(USED), signature="one")
    two = replace(main([once(3), *USED[1:]]), signature="two")
    content = model_of(one, first(imported(), **CONTENT), two, other)
    for order in (("one", "two"), ("two", "one")):
        found = []
        for make in (litert.Interpreter, Interpreter):
            interpreter: Any = make(model_content=content)
            runners = [interpreter.get_signature_runner(key) for key in order]
            found.append([runner(x=INVOKES[0][0])["y"].tolist() for runner in runners])
        assert found[0] == found[1]
    with pytest.raises(ExportError, match="HASHTABLE_FIND_2"):
        export_onnx(content)


WRONG = {
    "find": Sub(
        {"h": TABLE, "x": WORDS, "d": numbers(-1), "y": NUMBERS, "n": SIZE} | CONTENT,
        [table(), imported(), FIND, COUNT],
        ["x"],
        ["y", "n"],
    ),
    "import": main([table(of_texts=True), imported(), COUNT], y=numbers(0), **CONTENT),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_types_than_the_table_has_are_refused(name: str) -> None:
    model = model_of(WRONG[name])
    theirs = litert.Interpreter(model_content=model)
    theirs.allocate_tensors()
    feeds = [LOOKED_UP] if name == "find" else INVOKES[0]
    with pytest.raises(RuntimeError, match="key_type"):
        invoked(theirs, feeds)
    with pytest.raises(ModelError, match=f"HASHTABLE_{name.upper()}_.* has .*, its table"):
        Interpreter(model_content=model).allocate_tensors()


def test_text_that_is_not_utf_8_is_not_exported() -> None:
    """The interpreter takes any bytes."""
    model = model_of(main(USED), first(imported(), k=numbers(1, 2), v=words(b"\xff", "b")))
    check_invokes(model, INVOKES, kernels="default")
    with pytest.raises(ExportError, match=r"text that is not UTF-8: b'\\xff'"):
        export_onnx(model)
