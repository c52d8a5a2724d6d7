"""Plans of known sizes: a change back uses what is there, and gives what a new plan gives."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tests.subgraph_models import invoked
from tests.test_kept_caches import cache_model
from tests.test_state import FLOATS, resolver
from tflite_ort import Interpreter, TensorError
from tflite_ort.base.records import replace
from tflite_ort.compiled_model import CompiledModel
from tflite_ort.interpreter import known_sizes
from tflite_ort.interpreter.known_sizes import PLANS_KEPT, KnownSizes
from tflite_ort.plan import session_step
from tflite_ort.schema import (
    AddOptions,
    CastOptions,
    ModelBuilder,
    Op,
    TensorType,
    UniqueOptions,
)

Array = npt.NDArray[Any]


def network() -> bytes:
    """Two layers that take any size, with a signature."""
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", (1, 8, 8, 1)).constant("k", np.float32(0.5))
    main.tensor("h", (1, 8, 8, 1)).operator(Op.ADD, ["x", "k"], ["h"], AddOptions())
    main.tensor("y", (1, 8, 8, 1)).operator(Op.TANH, ["h"], ["y"])
    main.inputs("x").outputs("y").signature("main", inputs={"x": "x"}, outputs={"y": "y"})
    return builder.write()


NETWORK = network()
VWW = "mlperf-tiny__vww_96_float.tflite"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sessions of plans that are made."""
    sessions: list[Any] = []
    make = session_step.model_session

    def noted(*arguments: Any, **named: Any) -> Any:
        sessions.append(weakref.ref(made := make(*arguments, **named)))
        return made

    monkeypatch.setattr(session_step, "model_session", noted)
    return sessions


def allocated(content: bytes = NETWORK, **arguments: Any) -> Interpreter:
    interpreter = Interpreter(model_content=content, **arguments)
    interpreter.allocate_tensors()
    return interpreter


def resized(interpreter: Interpreter, *shape: int) -> None:
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
    interpreter.allocate_tensors()


def images(rows: int) -> Array:
    return np.random.default_rng(rows).uniform(0, 1, (rows, 8, 8, 1)).astype(np.float32)


# What is kept ------------------------------------------------------------------------------------


def test_a_change_back_makes_no_session(made: list[Any]) -> None:
    interpreter = allocated()
    right = {}
    for rows in (1, 2, 1, 3, 2, 1, 3):
        resized(interpreter, rows, 8, 8, 1)
        got = invoked(interpreter, [images(rows)])[0]
        np.testing.assert_array_equal(got, right.setdefault(rows, got))
    assert len(made) == 3
    assert interpreter.load_times.translate == interpreter.load_times.session == 0
    assert len({row.partition for row in interpreter.delegation()}) == 1


def test_the_last_few_are_kept(made: list[Any]) -> None:
    interpreter = allocated()
    sizes = list(range(2, 4 + PLANS_KEPT))
    for rows in sizes:
        resized(interpreter, rows, 8, 8, 1)
    count = len(made)
    for rows in reversed(sizes[1:]):
        resized(interpreter, rows, 8, 8, 1)
    assert len(made) == count
    resized(interpreter, sizes[0], 8, 8, 1)
    assert len(made) == count + 1
    gc.collect()
    assert len({id(each()) for each in made if each() is not None}) == 1 + PLANS_KEPT


def test_no_more_memory_than_a_limit(monkeypatch: pytest.MonkeyPatch, made: list[Any]) -> None:
    monkeypatch.setattr(known_sizes, "BYTES_KEPT", len(NETWORK))
    interpreter = allocated()
    for rows in (2, 3, 2):
        resized(interpreter, rows, 8, 8, 1)
    assert len(made) == 4  # one of each change
    gc.collect()
    assert len({id(each()) for each in made if each() is not None}) == 1


def test_closing_frees_all(made: list[Any]) -> None:
    interpreter = allocated()
    for rows in (2, 3, 2):
        resized(interpreter, rows, 8, 8, 1)
    interpreter.close()
    gc.collect()
    assert [each() for each in made] == [None] * len(made)


def test_plans_of_the_cache_are_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[object]()
    find = KnownSizes.take
    monkeypatch.setattr(KnownSizes, "take", lambda *a: found.append(find(*a)) or found[-1])
    for _ in range(2):  # made, then read
        interpreter = allocated(cache=tmp_path)
        for rows in (2, 3, 2, 3):
            resized(interpreter, rows, 8, 8, 1)
        assert [each is not None for each in found[-2:]] == [True, True]
        want = invoked(allocated(batch=None, cache=False), [images(3)[:1]])[0]
        np.testing.assert_allclose(
            invoked(interpreter, [images(3)])[0][:1], want, rtol=1e-5, atol=1e-7
        )


# What it gives -----------------------------------------------------------------------------------


def positions() -> bytes:
    tensors = {"c": T((4,), TensorType.BOOL), "w": T((1, 1), TensorType.INT64), "y": T((1, 1))}
    cast = CastOptions(in_data_type=TensorType.INT64, out_data_type=TensorType.FLOAT32)
    nodes = [Node(Op.WHERE, ["c"], ["w"]), Node(Op.CAST, ["w"], ["y"], cast)]
    return graph_model(tensors, nodes, ["y", "w"])


def distinct() -> bytes:
    outputs = [T((1,)), T((4,), TensorType.INT32)]
    return one_op_model(Op.UNIQUE, [T((4,))], outputs, UniqueOptions())


def with_a_sum(*runners: str) -> Callable[[], bytes]:
    """The first input takes any size; of the second there is a running sum, which does not."""

    def make() -> bytes:
        tensors = {
            "x": T((1, 4)),
            "y": T((1, 4)),
            "s": FLOATS,
            "h": replace(FLOATS, is_variable=True),
        }
        nodes, last = [Node(Op.TANH, ["x"], ["y"])], "s"
        for number, name in enumerate(runners):
            tensors[f"s{number}"] = FLOATS
            nodes.append(Node(name, [last, "h"], [f"s{number}"]))
            last = f"s{number}"
        return graph_model(tensors, nodes, ["y", last])

    return make


CASES: dict[str, tuple[Callable[[], bytes], Callable[[int], tuple[int, ...]]]] = {
    "network": (lambda: NETWORK, lambda size: (size, 8, 8, 1)),
    "sum in a session": (with_a_sum("ort"), lambda size: (size, 4)),
    "sum in numpy": (with_a_sum("numpy"), lambda size: (size, 4)),
    "sums": (with_a_sum("ort", "numpy", "ort"), lambda size: (size, 4)),
    "positions": (positions, lambda size: (3 + size,)),
    "distinct": (distinct, lambda size: (3 + size,)),
    "convolutions": (lambda: Path(model_path(VWW)).read_bytes(), lambda size: (size, 96, 96, 3)),
}


def seen(interpreter: Interpreter) -> Iterator[Any]:
    """What can be read of each tensor, and what is said of it."""
    for detail in interpreter.get_tensor_details():
        yield detail["name"], detail["shape"].tolist(), detail["dtype"]
    indices = [each["index"] for each in interpreter.get_input_details()]
    indices += [each["index"] for each in interpreter.get_output_details()]
    indices += [i for i, t in enumerate(interpreter._model.subgraphs[0].tensors) if t.is_variable]
    for index in indices:
        try:
            yield np.asarray(interpreter.get_tensor(index)).tolist()
        except TensorError as error:
            yield str(error)


@pytest.mark.filterwarnings("ignore::tflite_ort.BatchWarning")
@pytest.mark.parametrize("name", CASES)
def test_it_is_what_a_new_plan_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """States too: a change of size gives them their first values, as it does in TFLite."""
    seed = 5
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    make, shape = CASES[name]
    content = make()
    kept, anew = (Interpreter(model_content=content, resolver=resolver()) for _ in range(2))
    monkeypatch.setattr(anew._subgraph(0).executor._known, "take", lambda shapes: None)
    for size in (1, 2, 1, 3, 2, 1, 1, 3):
        for each in (kept, anew):
            resized(each, *shape(size))
        assert list(seen(kept)) == list(seen(anew))
        for _ in range(3):
            values = [
                rng.integers(0, 3, each["shape"]).astype(each["dtype"])
                for each in kept.get_input_details()
            ]
            results = [invoked(each, values) for each in (kept, anew)]
            for got, want in zip(*results, strict=True):
                np.testing.assert_array_equal(got, want)
            assert list(seen(kept)) == list(seen(anew))


def test_a_runner_changes_between_sizes(made: list[Any]) -> None:
    interpreter = allocated()
    runner = interpreter.get_signature_runner()
    (name,) = runner.get_input_details()
    right = {}
    for rows in (1, 2, 1, 2, 2, 1):
        (got,) = runner(**{name: images(rows)}).values()
        np.testing.assert_array_equal(got, right.setdefault(rows, got))
    assert len(made) == 2


def test_what_a_runner_keeps_makes_plans_anew(made: list[Any]) -> None:
    interpreter = Interpreter(model_content=cache_model())
    one = interpreter.get_signature_runner("one")
    new, place = np.ones((1, 4), np.float32), np.zeros(2, np.int32)
    cache, count = np.zeros((6, 4), np.float32), np.zeros(1, np.float32)
    one(cache=cache, new=new, place=place, count=count)
    before = len(made)
    keeping = interpreter.get_signature_runner("one", keep={"cache"})
    for step in range(2):
        place[0] = step
        shown = keeping(new=new, place=place, count=count)["shown"]
    assert len(made) == before + 1
    np.testing.assert_array_equal(shown[:2], np.full((2, 4), 2))


def test_a_buffer_from_before_is_not_the_models_memory_again() -> None:
    model = CompiledModel(allocated())
    (first,) = model.create_input_buffers(0)
    first.write(np.full((1, 8, 8, 1), 3, np.float32))
    model.resize_input_tensor(0, (2, 8, 8, 1), strict=False)
    model.create_input_buffers(0)
    model.resize_input_tensor(0, (1, 8, 8, 1), strict=False)
    (second,) = model.create_input_buffers(0)
    second.write(np.full((1, 8, 8, 1), 7, np.float32))
    assert set(first.read(64, np.float32)) == {3}
    outputs = model.create_output_buffers(0)
    model.run_by_index(0, [second], outputs)
    want = outputs[0].read(64, np.float32)
    model.run_by_index(0, [first], outputs)
    assert set(second.read(64, np.float32)) == {7}
    model.run_by_index(0, [second], outputs)
    np.testing.assert_array_equal(outputs[0].read(64, np.float32), want)
