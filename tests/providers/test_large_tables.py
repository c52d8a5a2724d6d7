"""Large tables of which rows are taken are read where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.oracle import litert
from tflite_ort import Interpreter, export_onnx
from tflite_ort.providers import session
from tflite_ort.providers.plain_session import PlainSession
from tflite_ort.providers.session import Session
from tflite_ort.schema import GatherOptions, Op, TensorType

Array = npt.NDArray[Any]
INT4, INT8, INT32 = TensorType.INT4, TensorType.INT8, TensorType.INT32
IDS = [np.array(each, np.int32) for each in ([3, 0, 8191], [17, 8190, 17])]
ROWS, COLUMNS = 8192, 256


def embedding(type: TensorType) -> bytes:
    """8- or 4-bit codes with a scale for each row: 2 MiB and 1 MiB."""
    rng = np.random.default_rng(3)
    low, high = (-128, 128) if type is INT8 else (-8, 8)
    codes = rng.integers(low, high, (ROWS, COLUMNS)).astype(np.int8)
    scales = rng.uniform(0.01, 0.02, ROWS).astype(np.float32)
    table = T.constant(codes, type, scale=scales.tolist(), axis=0)
    tensors = {"ids": T((3,), INT32), "table": table, "rows": T((3, COLUMNS))}
    node = Node(Op.EMBEDDING_LOOKUP, ["ids", "table"], ["rows"], version=4 if type is INT4 else 3)
    return graph_model(tensors, [node], ["rows"])


def gather() -> bytes:
    """int8 codes that stay codes."""
    codes = np.random.default_rng(3).integers(-128, 128, (ROWS, COLUMNS)).astype(np.int8)
    quantized = {"scale": 0.5, "zero_point": 3}
    tensors = {
        "ids": T((3,), INT32),
        "table": T.constant(codes, **quantized),
        "rows": T((3, COLUMNS), INT8, **quantized),
        "reals": T((3, COLUMNS)),
    }
    nodes = [
        Node(Op.GATHER, ["table", "ids"], ["rows"], GatherOptions(), version=2),
        Node(Op.DEQUANTIZE, ["rows"], ["reals"], version=2),
    ]
    return graph_model(tensors, nodes, ["rows", "reals"])


MODELS = {"int8": embedding(INT8), "int4": embedding(INT4), "gather": gather()}


def ready(path: Path, **arguments: Any) -> Interpreter:
    interpreter = Interpreter(path, **arguments)
    interpreter.allocate_tensors()
    return interpreter


def rows(interpreter: Interpreter, ids: Array) -> list[Array]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], ids)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(MODELS[request.param])
    return path


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """The weights in place of the sessions that are bound from now on."""
    seen: list[Array] = []
    bind = Session.bind

    def noted(self: Session, *arguments: Any) -> Any:
        seen.extend(self.in_place.values())
        return bind(self, *arguments)

    monkeypatch.setattr(Session, "bind", noted)
    return seen


def test_rows_are_those_of_litert(model: Path) -> None:
    for ids in IDS:
        got, _ = ours(model.read_bytes(), [ids])
        for mine, theirs in zip(got, litert(model.read_bytes(), [ids]), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_the_table_is_that_of_the_file(model: Path, in_place: list[Array]) -> None:
    content = model.read_bytes()
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (table,) = (each for each in in_place if each.nbytes >= 1 << 20)
    assert np.shares_memory(table, np.frombuffer(content, np.uint8))


@pytest.mark.parametrize("cached", [False, True])
def test_interpreters_share_the_session(
    model: Path, tmp_path: Path, cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"cache": tmp_path / "cache"} if cached else {}
    expected = [rows(ready(model), ids) for ids in IDS]
    made = []

    def noted(*given: Any, **options: Any) -> PlainSession:
        made.append(PlainSession(*given, **options))
        return made[-1]

    monkeypatch.setattr(session, "PlainSession", noted)
    first = ready(model, **arguments)
    count = len(made)
    others = [ready(model, **arguments) for _ in range(2)]
    assert len(made) == count
    first.close()
    for interpreter in others:
        for ids, wanted in zip(IDS, expected, strict=True):
            for a, b in zip(rows(interpreter, ids), wanted, strict=True):
                np.testing.assert_array_equal(a, b)


def test_another_table_in_an_equal_graph_is_not_shared(tmp_path: Path) -> None:
    content = bytearray(MODELS["int8"])
    (tmp_path / "a.tflite").write_bytes(content)
    first = ready(tmp_path / "a.tflite")
    table = np.frombuffer(content, np.uint8)
    codes = first.get_tensor(1).view(np.uint8).reshape(-1)
    place = content.find(codes[:64].tobytes())
    table[place] ^= 1
    (tmp_path / "b.tflite").write_bytes(content)
    second = ready(tmp_path / "b.tflite")
    ids = np.zeros(3, np.int32)
    (a,), (b,) = rows(first, ids), rows(second, ids)
    assert (a[:, 0] != b[:, 0]).all()
    np.testing.assert_array_equal(a[:, 1:], b[:, 1:])


def test_packed_rows_stay_packed_in_exports(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(MODELS["int4"])
    exported = export_onnx(model, tmp_path / "model.onnx")
    assert exported.ByteSize() <= 1.1 * model.stat().st_size
