"""Checkpoints of both kinds, as TensorFlow 2.18.1 wrote them, and damaged ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.nodes import declared_options
from tests.flex.training_data import SLICES, TENSORS
from tests.one_op import Node, T, graph_model
from tests.subgraph_models import Sub, model_of
from tflite_ort import BridgeError, Interpreter, KernelError
from tflite_ort.fallback_kernels.idioms import checkpoints
from tflite_ort.fallback_kernels.idioms.crc32c import crc32c
from tflite_ort.fallback_kernels.idioms.sorted_tables import Table, table_of
from tflite_ort.schema import IfOptions, Op, TensorType
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.file.flex_table import TENSOR_TYPES

Array = npt.NDArray[Any]
FOLDER = Path(__file__).parent / "training"
NAMES = {type: name for name, type in TENSOR_TYPES.items()}
WHOLE = np.concatenate(list(SLICES.values()))


def parts() -> list[checkpoints.Part]:
    found = [checkpoints.part(name.encode(), array, b"") for name, array in TENSORS.items()]
    return found + [checkpoints.part(b"sliced", a, told.encode()) for told, a in SLICES.items()]


def expected() -> dict[bytes, Array]:
    return {name.encode(): array for name, array in TENSORS.items()} | {b"sliced": WHOLE}


def same(got: Array, want: Array) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tolist() == want.tolist()


def test_checksums() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0
    draw = np.random.default_rng(7)
    for size in (1, 2, 16, 17, 16_383, 16_384, 20_001):
        content = draw.bytes(size)
        value = 0xFFFFFFFF
        for byte in content:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        assert crc32c(content) == value ^ 0xFFFFFFFF, size


def test_one_file() -> None:
    stored = (FOLDER / "types.checkpoint").read_bytes()
    read = checkpoints.read_one_file(Table.of(stored, "types"), "types")
    assert read.keys() == expected().keys()
    for name, want in expected().items():
        same(read[name](), want)
    assert checkpoints.one_file(parts()) == stored


def test_an_index_and_its_data() -> None:
    index = (FOLDER / "types.index").read_bytes()
    data = (FOLDER / "types.data-00000-of-00001").read_bytes()
    entries, shards = checkpoints.read_index(index, "types")
    assert shards == 1
    for name, want in expected().items():

        def held(entry: checkpoints.Entry) -> bytes:
            return data[entry.offset : entry.offset + entry.size]

        same(checkpoints.whole(name, entries, held, "types"), want)
    assert checkpoints.indexed(parts()) == (index, data)


def test_many_keys_and_long_ones() -> None:
    draw = np.random.default_rng(8)
    keys = {draw.bytes(int(n)): draw.bytes(int(n) * 9) for n in draw.integers(0, 300, 2000)}
    keys |= {b"\xff" * n: b"x" * 70_000 for n in range(9)}
    table = Table.of(table_of(keys), "keys")
    assert dict(table.items()) == keys
    assert all(table.get(key) == keys[key] for key in sorted(keys))
    assert table.get(b"\xff" * 300) is None
    assert table.get(b"nothing has this key") is None


@pytest.mark.parametrize("start", [-(2**62), -8193, -8192, -65, -64, -1, 0, 63, 64, 8191, 8192])
def test_keys_of_slices_keep_the_order_of_their_numbers(start: int) -> None:
    one, other = (checkpoints._signed(value) for value in (start, start + 1))
    assert one < other


def operators(name: str, given: Sequence[Array], outputs: list[T], **told: Any) -> bytes:
    """A model of one operator, whose first input is the model's."""
    tensors = {"path": T((), TensorType.STRING)}
    for place, array in enumerate(given):
        tensors[f"in{place}"] = T.constant(array)
    results = {f"out{place}": each for place, each in enumerate(outputs)}
    node = Node(f"Flex{name}", list(tensors), list(results), declared_options(name, told))
    shown = dict(results) or {"copy": T((), TensorType.STRING)}
    nodes = [node]
    if not results:
        options = declared_options("Identity", {"T": "string"})
        nodes.append(Node("FlexIdentity", ["path"], ["copy"], options))
    return graph_model(tensors | shown, nodes, list(shown))


def opened(array: Array) -> T:
    """A result of the rank of an array, with open sizes."""
    rank = array.ndim
    return T((1,) * rank, tensor_type(array.dtype), shape_signature=(-1,) * rank)


def texts(*values: str) -> Array:
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return array


def run(content: bytes, path: Path | str) -> list[Array]:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    interpreter.set_tensor(given["index"], np.array(str(path).encode(), object))
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def saving(version: str) -> bytes:
    """Save, or SaveV2, of all tensors."""
    arrays = [np.asarray(each) for each in TENSORS.values()]
    types = [NAMES[tensor_type(array.dtype)] for array in arrays]
    names = texts(*TENSORS)
    if version == "":
        return operators("Save", [names, *arrays], [], T=types)
    return operators("SaveV2", [names, texts(*[""] * len(arrays)), *arrays], [], dtypes=types)


def restoring(told: str = "") -> bytes:
    """RestoreV2 of all tensors."""
    outputs = [opened(np.asarray(each)) for each in TENSORS.values()]
    types = [NAMES[each.type] for each in outputs]
    names, slices = texts(*TENSORS), texts(*[told] * len(outputs))
    return operators("RestoreV2", [names, slices], outputs, dtypes=types)


@pytest.mark.parametrize("version", ["", "V2"])
def test_a_model_saves_and_restores(version: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    run(saving(version), path)
    for got, want in zip(run(restoring(), path), TENSORS.values(), strict=True):
        same(got, np.asarray(want))


def test_a_slice_is_restored() -> None:
    names, told = texts("sliced"), texts("4 3 1,2:2,1")
    outputs = [opened(WHOLE)]
    content = operators("RestoreV2", [names, told], outputs, dtypes=["float"])
    (got,) = run(content, FOLDER / "types")
    same(got, WHOLE[1:3, 2:3])


def test_checkpoints_are_merged(tmp_path: Path) -> None:
    folder = tmp_path / "all_temp"
    folder.mkdir()
    for part in ("part-0", "part-1"):
        name, types = texts(part), ["float"]
        array = np.float32([len(part), int(part[-1])])
        save = operators("SaveV2", [name, texts(""), array], [], dtypes=types)
        run(save, folder / part)
    content = merging(tmp_path, [str(folder / part) for part in ("part-0", "part-1")])
    run(content, tmp_path / "all")
    assert not folder.exists()
    names, outputs = texts("part-0", "part-1"), [opened(np.zeros(2, np.float32))] * 2
    content = operators("RestoreV2", [names, texts("", "")], outputs, dtypes=["float"] * 2)
    assert [array.tolist() for array in run(content, tmp_path / "all")] == [[6, 0], [6, 1]]


def test_several_files_are_one_pattern(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b")):
        save = operators("Save", [texts(name), np.float32([number])], [], T=["float"])
        run(save, tmp_path / f"all-{number:05d}-of-00002")
    restore = operators("Restore", [texts("b")], [opened(np.zeros(1, np.float32))], dt="float")
    assert run(restore, tmp_path / "all-?????-of-00002")[0].tolist() == [1]
    assert run(restore, tmp_path / "all-00001-of-00002")[0].tolist() == [1]


def merging(folder: Path, prefixes: Sequence[str]) -> bytes:
    """MergeV2Checkpoints: the prefixes stand in the file, and begin with what it is given."""
    tensors = {
        "path": T((), TensorType.STRING),
        "prefixes": T.constant(texts(*prefixes)),
        "copy": T((), TensorType.STRING),
    }
    options = declared_options("MergeV2Checkpoints", {})
    same_text = declared_options("Identity", {"T": "string"})
    nodes = [
        Node("FlexMergeV2Checkpoints", ["prefixes", "path"], [], options),
        Node("FlexIdentity", ["path"], ["copy"], same_text),
    ]
    return graph_model(tensors, nodes, ["copy"])


def test_a_model_names_no_files_of_its_own(tmp_path: Path) -> None:
    """A path that stands in the file, or that goes elsewhere from what a user names."""
    for added in ("", "/../other", ".pth"):
        tensors = {
            "path": T((), TensorType.STRING),
            "more": T.constant(texts(added)),
            "name": T.constant(np.array(str(tmp_path / "own").encode(), object)),
            "whole": T((), TensorType.STRING),
            "names": T.constant(texts("a")),
            "value": T.constant(np.float32([1])),
        }
        join = declared_options("StringJoin", {"N": 2})
        save = declared_options("Save", {"T": ["float"]})
        target = "whole" if added else "name"
        nodes = [
            Node("FlexStringJoin", ["path", "more"], ["whole"], join),
            Node("FlexSave", [target, "names", "value"], [], save),
        ]
        with pytest.raises(KernelError, match="no path that the model is given"):
            run(graph_model(tensors, nodes, ["whole"]), tmp_path / "given")
    assert not list(tmp_path.iterdir())


def test_an_input_with_a_value_of_its_own_names_no_files(tmp_path: Path) -> None:
    """Such inputs stand in the file, or an operator makes them."""
    path = np.array(str(tmp_path / "own").encode(), object)
    save = declared_options("Save", {"T": ["float"]})
    same_text = declared_options("Identity", {"T": "string"})
    copied = Node("FlexIdentity", ["own"], ["given"], same_text)
    for given, nodes in ((T.constant(path), []), (T((), TensorType.STRING), [copied])):
        tensors = {
            "path": T((), TensorType.STRING),
            "own": T.constant(path),
            "given": given,
            "names": T.constant(texts("a")),
            "value": T.constant(np.float32([1])),
        }
        nodes = [*nodes, Node("FlexSave", ["own", "names", "value"], [], save)]
        content = model_of(Sub(tensors, nodes, ["path", "given"], ["path"]))
        with pytest.raises(BridgeError):
            interpreter = Interpreter(model_content=content)
            interpreter.allocate_tensors()
            interpreter.invoke()
    assert not list(tmp_path.iterdir())


def test_what_is_called_names_no_files(tmp_path: Path) -> None:
    """A subgraph that another one calls gets its texts from the model."""
    text = T((), TensorType.STRING)
    own = np.array(str(tmp_path / "own").encode(), object)
    branch_tensors = {
        "path": text,
        "names": T.constant(texts("a")),
        "value": T.constant(np.float32([1])),
        "copy": text,
    }
    save = declared_options("Save", {"T": ["float"]})
    same_text = declared_options("Identity", {"T": "string"})
    branch = Sub(
        branch_tensors,
        [
            Node("FlexSave", ["path", "names", "value"], [], save),
            Node("FlexIdentity", ["path"], ["copy"], same_text),
        ],
        ["path"],
        ["copy"],
    )
    main = Sub(
        {"test": T((), TensorType.BOOL), "own": T.constant(own), "out": text},
        [Node(Op.IF, ["test", "own"], ["out"], IfOptions(1, 1))],
        ["test"],
        ["out"],
    )
    interpreter = Interpreter(model_content=model_of(main, branch))
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    interpreter.set_tensor(given["index"], np.array(True))
    with pytest.raises(BridgeError, match="no path that the model is given"):
        interpreter.invoke()
    assert not list(tmp_path.iterdir())


def damaged(content: bytes, seed: int, count: int) -> Iterator[bytes]:
    draw = np.random.default_rng(seed)
    for _ in range(count):
        changed = bytearray(content)
        for place in draw.integers(0, len(content), draw.integers(1, 4)):
            changed[place] = draw.integers(0, 256)
        yield bytes(changed[: int(draw.integers(1, len(content) + 1))])
        yield bytes(changed)


def resealed(content: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Tables of damaged values whose checksums fit."""
    values, draw = dict(Table.of(content, "table").items()), np.random.default_rng(seed)
    keys = sorted(values)
    for _ in range(count):
        changed = dict(values)
        key = keys[int(draw.integers(0, len(keys)))]
        value = bytearray(changed[key])
        for place in draw.integers(0, max(len(value), 1), 2):
            value[place : place + 1] = draw.bytes(int(draw.integers(0, 3)))
        changed[key] = bytes(value)
        yield table_of(changed)


def test_damaged_checkpoints_are_errors() -> None:
    print("seeds 3 and 4")
    stored, index = ((FOLDER / name).read_bytes() for name in ("types.checkpoint", "types.index"))
    data, refused = (FOLDER / "types.data-00000-of-00001").read_bytes(), 0
    for content in (*damaged(stored, 3, 300), *resealed(stored, 3, 300)):
        try:
            for make in checkpoints.read_one_file(Table.of(content, "one"), "one").values():
                make()
        except KernelError:
            refused += 1
    for content in (*damaged(index, 4, 300), *resealed(index, 4, 300)):
        try:
            entries, _ = checkpoints.read_index(content, "two")
            for key in expected().keys() & entries.keys():
                held = lambda e: data[max(e.offset, 0) : max(e.offset + e.size, 0)]  # noqa: E731
                checkpoints.whole(key, entries, held, "two")
        except KernelError:
            refused += 1
    assert refused > 1500


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    wrong = operators("Restore", [texts("a")], [T((), TensorType.FLOAT32)], dt="float")
    missing = operators("Restore", [texts("z")], [T((), TensorType.FLOAT32)], dt="float")
    for content in (wrong, missing):
        with pytest.raises(BridgeError):
            run(content, FOLDER / "types.checkpoint")
        with pytest.raises(BridgeError):
            run(content, tmp_path / "nothing")
    with pytest.raises(BridgeError, match="tells no shape"):
        run(restoring("4 x"), FOLDER / "types")
