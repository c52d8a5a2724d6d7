"""TensorFlow's hash tables, filled once and asked: against what TensorFlow 2.18.1 answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.flex.cases import texts
from tests.flex.nodes import declared_options
from tests.one_op import Node, T
from tests.subgraph_models import HANDLE, Sub, model_of
from tflite_ort import BridgeError, ExportError, Interpreter, export_onnx
from tflite_ort.schema import CallOnceOptions, Op
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.file.flex_table import TENSOR_TYPES

Array = npt.NDArray[Any]
NAMES = {type: name for name, type in TENSOR_TYPES.items()}
WORDS = texts(b"a", b"", b"\xff")


def name_of(array: Array) -> str:
    return NAMES[tensor_type(array.dtype)]


def node(name: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Node:
    return Node(f"Flex{name}", inputs, outputs, declared_options(name, attributes))


def model(
    keys: Array,
    values: Array,
    asked: Array,
    default: Array,
    fill: str = "InitializeTableV2",
    *,
    known: bool = False,
    kind: str = "HashTableV2",
) -> bytes:
    """A table of `keys` and `values` that is filled once, what is in it, and how much that is; and
    the size of another one that is not filled, unless all has to be `known`."""
    types = [name_of(keys), name_of(values)]
    own = dict(zip(("key_dtype", "value_dtype"), types, strict=True))
    named = ("Tkey", "Tval") if fill == "InitializeTableV2" else ("Tin", "Tout")
    table = node(kind, [], ["h"], shared_name="t", **own)
    other = node("HashTableV2", [], ["g"], shared_name="u", **own)
    tensors = {"h": HANDLE, "k": T.constant(keys), "v": T.constant(values), "g": HANDLE}
    filling = [node(fill, [h, "k", "v"], [], **dict(zip(named, types, strict=True))) for h in "h"]
    found = {"Tin": types[0], "Tout": types[1]}
    main = {
        "h": HANDLE,
        "g": HANDLE,
        "x": T(asked.shape, tensor_type(keys.dtype)),
        "d": T.constant(default),
        "y": T(asked.shape, tensor_type(values.dtype)),
        "n": T((), TENSOR_TYPES["int64"]),
        "m": T((), TENSOR_TYPES["int64"]),
    }
    nodes = [
        Node(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=1)),
        other,
        table,
        node("LookupTableFindV2", ["h", "x", "d"], ["y"], **found),
        node("LookupTableSizeV2", ["h"], ["n"]),
        node("LookupTableSizeV2", ["g"], ["m"]),
    ]
    if known:
        nodes = [each for each in nodes if each.inputs != ["g"]]
    return model_of(
        Sub(main, nodes, ["x"], ["y", "n"] if known else ["y", "n", "m"]),
        Sub(tensors, [table, *filling], [], []),
    )


TABLES = {
    "words_numbers": (WORDS, np.int64([5, 6, 7]), texts(b"", b"z", b"\xff", b"a"), np.int64(-1)),
    "words_floats": (WORDS, np.float32([0.5, 6, 7]), texts(b"", b"z"), np.float32(-1)),
    "numbers_words": (np.int64([3, -4, 5]), WORDS, np.int64([[5, 3], [0, -4]]), np.array(b"none")),
    "small_floats": (np.int32([3, -4]), np.float32([1, 2]), np.int32([3, 0]), np.float32(9)),
    "numbers_numbers": (np.int64([3, 3]), np.int64([1, 1]), np.int64([3, 0]), np.int64(9)),
}
ANSWERS: dict[str, tuple[Any, int]] = {
    "words_numbers": ([6, -1, 7, 5], 3),
    "words_floats": ([6.0, -1.0], 3),
    "numbers_words": ([[b"\xff", b"a"], [b"none", b""]], 3),
    "small_floats": ([1.0, 9.0], 2),
    "numbers_numbers": ([1, 9], 1),
}


def table(name: str) -> tuple[Array, Array, Array, Array]:
    keys, values, asked, default = TABLES[name]
    return keys, values, asked, default.astype(object) if default.dtype.kind == "S" else default


def outputs(content: bytes, asked: Array, providers: list[str] | None) -> list[Array]:
    interpreter = Interpreter(model_content=content, providers=providers)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], asked)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.mark.parametrize("fill", ["InitializeTableV2", "LookupTableImportV2"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_tensorflow(name: str, fill: str) -> None:
    keys, values, asked, default = table(name)
    for providers in ([], None):
        found, size, none = outputs(model(keys, values, asked, default, fill), asked, providers)
        assert found.tolist() == ANSWERS[name][0]
        assert (size.shape, size, none) == ((), ANSWERS[name][1], 0)


@pytest.mark.parametrize("name", ["small_floats", "numbers_numbers"])
def test_a_known_table_exports(name: str, tmp_path: Path) -> None:
    keys, values, asked, default = table(name)
    content = model(keys, values, asked, default, known=True)
    export_onnx(content, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    found = session.run(None, {session.get_inputs()[0].name: asked})[0]
    assert np.asarray(found).tolist() == ANSWERS[name][0]


def test_a_key_of_two_values_is_refused() -> None:
    """As in TensorFlow; TFLite's tables take the first."""
    content = model(np.int64([3, 3]), np.int64([1, 2]), np.int64([3]), np.int64(9))
    for providers in ([], None):
        with pytest.raises(BridgeError, match="two values"):
            outputs(content, np.int64([3]), providers)


def test_a_table_that_is_filled_once_does_not_change() -> None:
    keys, values, asked, default = table("words_numbers")
    content = model(keys, values, asked, default, "LookupTableImportV2", kind="MutableHashTableV2")
    for providers in ([], None):
        found, size, none = outputs(content, asked, providers)
        assert (found.tolist(), size, none) == (*ANSWERS["words_numbers"], 0)


def test_a_table_is_filled_by_an_insertion() -> None:
    keys, values, asked, default = table("words_numbers")
    content = model(keys, values, asked, default, "LookupTableInsertV2", kind="MutableHashTableV2")
    for providers in ([], None):
        found, size, none = outputs(content, asked, providers)
        assert (found.tolist(), size, none) == (*ANSWERS["words_numbers"], 0)


def changing(
    keys: Array, values: Array, default: Array, kind: str = "", *, destroys: bool = False
) -> bytes:
    """A table that changes: keys and values are put in, the first key is removed; then what is
    asked for is looked up, and all is given."""
    key, value = name_of(keys), name_of(values)
    own = {"key_dtype": key, "value_dtype": value}
    kind, ends = kind or "MutableHashTableV2", list[str]()
    if kind == "MutableHashTableOfTensorsV2":
        own["value_shape"] = list(values.shape[1:])  # type: ignore[assignment]
    if kind == "MutableDenseHashTableV2":
        ends = ["empty", "deleted"]
    shape = values.shape[1:]
    main = {
        "h": HANDLE,
        "k": T(keys.shape, tensor_type(keys.dtype)),
        "v": T.constant(values),
        "gone": T.constant(keys[:1]),
        "empty": T.constant(np.array(b"#" if keys.dtype == object else -9, keys.dtype)),
        "deleted": T.constant(np.array(b"$" if keys.dtype == object else -8, keys.dtype)),
        "d": T.constant(default),
        "y": T((*keys.shape, *shape), tensor_type(values.dtype)),
        "n": T((), TENSOR_TYPES["int64"]),
        "keys": T((1,), tensor_type(keys.dtype)),
        "values": T((1, *shape), tensor_type(values.dtype)),
    }
    both = {"Tin": key, "Tout": value}
    nodes = [
        node(kind, ends, ["h"], shared_name="t", **own),
        node("LookupTableInsertV2", ["h", "k", "v"], [], **both),
        node("LookupTableRemoveV2", ["h", "gone"], [], Tin=key),
        node("LookupTableFindV2", ["h", "k", "d"], ["y"], **both),
        node("LookupTableSizeV2", ["h"], ["n"]),
        node("LookupTableExportV2", ["h"], ["keys", "values"], Tkeys=key, Tvalues=value),
    ]
    if destroys:
        nodes[4:4] = [node("DestroyResourceOp", ["h"], [])]
    if kind == "MutableDenseHashTableV2":  # gives its buckets
        return model_of(Sub(main, nodes[:-1], ["k"], ["y", "n"]))
    return model_of(Sub(main, nodes, ["k"], ["y", "n", "keys", "values"]))


WORD = texts(b"a", b"", b"a")
CHANGING: dict[str, tuple[Array, Array, Array, str]] = {
    "texts": (WORD, np.int64([5, 6, 7]), np.array(-1, np.int64), ""),
    "numbers": (np.int64([3, -4, 3]), np.float32([5, 6, 7]), np.array(-1, np.float32), ""),
    "each default": (np.int64([3, -4, 3]), np.float32([5, 6, 7]), np.float32([1, 2, 3]), ""),
    "dense": (WORD, np.int64([5, 6, 7]), np.array(-1, np.int64), "MutableDenseHashTableV2"),
    "rows": (
        np.int64([3, -4, 3]),
        np.float32([[5, 1], [6, 2], [7, 3]]),
        np.float32([-1, -2]),
        "MutableHashTableOfTensorsV2",
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_table_that_changes(name: str) -> None:
    """As TensorFlow 2.18.1 does: what is found, how many keys there are, and all of them."""
    keys, values, default, kind = CHANGING[name]
    content = changing(keys, values, default, kind)
    rest = default if default.shape == keys.shape else np.broadcast_to(default, values.shape)
    want = np.stack([rest[0], values[1], rest[2]])
    for providers in ([], None):
        found, size, *rows = outputs(content, keys, providers)
        assert found.tolist() == want.tolist() and size == 1
        if rows:
            left, row = rows
            assert left.tolist() == keys[1:2].tolist() and row.tolist() == values[1:2].tolist()
    with pytest.raises(ExportError):
        export_onnx(content)


def test_a_table_of_other_types_is_refused() -> None:
    content = changing(np.int64([3]), np.float32([5]), np.array(1, np.int64))
    with pytest.raises(BridgeError):
        outputs(content, np.int64([3]), [])


def test_a_table_is_destroyed() -> None:
    keys, values, default, _ = CHANGING["numbers"]
    content = changing(keys, values, default, destroys=True)
    for providers in ([], None):
        found, size, left, row = outputs(content, keys, providers)
        assert found.tolist() == [-1, 6, -1] and size == 0
        assert left.shape == row.shape == (0,)
