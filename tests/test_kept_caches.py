"""Signatures that keep caches inside: the same numbers as caches that are passed in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import newer_model_path
from tflite_ort import BridgeError, Interpreter, StateError, TensorError
from tflite_ort.plan.stored import StoredPlan
from tflite_ort.schema import AddOptions, ModelBuilder, Op, QuantizationParameters, TensorType

Array = npt.NDArray[Any]

ROWS, WIDTH = 6, 4


def cache_model(
    kind: TensorType = TensorType.FLOAT32, *, read_before: bool = False, other_rows: int = ROWS
) -> bytes:
    """Two signatures, `one` and `two`, which write as many rows at a place of a cache and return
    the sum of the whole cache and of these rows; each also counts its calls.

    Args:
        read_before: the sum is that of the cache before it is written.
        other_rows: of the cache of `two`.
    """
    builder = ModelBuilder()
    codes: dict[str, Any] = {}
    if kind is not TensorType.FLOAT32:
        codes["quantization"] = QuantizationParameters.affine(0.5, 3)
    for name, rows, size in (("one", 1, ROWS), ("two", 2, other_rows)):
        graph = builder.subgraph(name)
        graph.tensor("cache", (size, WIDTH), kind, **codes).tensor(
            "new", (rows, WIDTH), kind, **codes
        )
        graph.tensor("place", (2,), TensorType.INT32).tensor("count", (1,))
        graph.constant("1", np.float32([1]))
        graph.tensor("cache_out", (size, WIDTH), kind, **codes).tensor("count_out", (1,))
        graph.tensor("shown", (size, WIDTH), kind, **codes)
        graph.operator(Op.DYNAMIC_UPDATE_SLICE, ["cache", "new", "place"], ["cache_out"])
        graph.operator(Op.ADD, ["count", "1"], ["count_out"], AddOptions())
        read = "cache" if read_before else "cache_out"
        graph.operator(Op.ADD, [read, read], ["shown"], AddOptions())
        graph.inputs("cache", "new", "place", "count").outputs("cache_out", "count_out", "shown")
        graph.signature(
            name,
            inputs={each: each for each in ("cache", "new", "place", "count")},
            outputs={"cache": "cache_out", "count": "count_out", "shown": "shown"},
        )
    return builder.write()


def steps(kind: type[np.generic]) -> list[tuple[str, dict[str, Array]]]:
    """Calls by signature."""
    rng = np.random.default_rng(3)
    calls = []
    for name, rows, place in (("two", 2, 0), ("one", 1, 2), ("one", 1, 3), ("two", 2, 4)):
        new = rng.integers(-20, 20, (rows, WIDTH)).astype(kind)
        calls.append((name, {"new": new, "place": np.int32([place, 0])}))
    return calls


def assert_like_passed(model: Any, kind: type[np.generic] = np.float32, **choices: Any) -> Any:
    """Kept caches give what caches give that are passed; returns the interpreter that kept them."""
    passing, keeping = Interpreter(model_content=model, **choices), None
    keeping = Interpreter(model_content=model, **choices)
    plain = {name: passing.get_signature_runner(name) for name in ("one", "two")}
    kept = {
        name: keeping.get_signature_runner(name, keep={"cache", "count"}) for name in ("one", "two")
    }
    cache, count = np.zeros((ROWS, WIDTH), kind), np.zeros(1, np.float32)
    for name, call in steps(kind):
        want = plain[name](cache=cache, count=count, **call)
        cache, count = want["cache"], want["count"]
        got = kept[name](**call)
        assert list(got) == ["shown"]
        np.testing.assert_array_equal(got["shown"], want["shown"])
        for runner in kept.values():
            np.testing.assert_array_equal(runner.kept["cache"], cache)
            np.testing.assert_array_equal(runner.kept["count"], count)
    assert cache.any()
    return keeping


def places(interpreter: Interpreter, subgraph: int) -> list[int]:
    """Where the cache that goes in and the one that comes out stand."""
    executor = interpreter._subgraph(subgraph).executor
    arrays = [executor.array(index) for index in (0, 5)]
    return [array.ctypes.data for array in arrays if array is not None]


def test_a_cache_is_one_array() -> None:
    interpreter = assert_like_passed(cache_model())
    assert len({*places(interpreter, 0), *places(interpreter, 1)}) == 1


def test_what_is_read_later_is_not_written_in_place() -> None:
    interpreter = assert_like_passed(cache_model(read_before=True))
    assert len(set(places(interpreter, 0))) == 2


def test_codes_are_kept() -> None:
    assert_like_passed(cache_model(TensorType.INT8), np.int8)


@pytest.mark.parametrize(
    "choices", [{"providers": []}, {"experimental_preserve_all_tensors": True}, {"num_threads": 2}]
)
def test_ways_to_run(choices: dict[str, Any]) -> None:
    assert_like_passed(cache_model(), **choices)


def test_stored_plans_keep(tmp_path: Path) -> None:
    assert_like_passed(cache_model(), cache=tmp_path)
    again = assert_like_passed(cache_model(), cache=tmp_path)
    for number in (0, 1):
        assert isinstance(again._subgraph(number).executor.plan, StoredPlan)
    assert len({*places(again, 0), *places(again, 1)}) == 1


def test_a_plan_without_caches_is_made_anew() -> None:
    interpreter = Interpreter(model_content=cache_model())
    plain = interpreter.get_signature_runner("one")
    cache, call = np.zeros((ROWS, WIDTH), np.float32), steps(np.float32)[1][1]
    want = plain(cache=cache, count=np.zeros(1, np.float32), **call)
    keeping = interpreter.get_signature_runner("one", keep={"cache", "count"})
    np.testing.assert_array_equal(keeping(**call)["shown"], want["shown"])
    assert keeping.kept["count"] == [1]


def test_a_call_may_pass_what_is_kept() -> None:
    interpreter = Interpreter(model_content=cache_model())
    runner = interpreter.get_signature_runner("one", keep={"cache", "count"})
    call = steps(np.float32)[1][1]
    runner(**call, count=np.float32([5]))
    assert runner.kept["count"] == [6]
    runner.kept["count"][...] = 0
    runner(**call)
    assert runner.kept["count"] == [1]
    interpreter.get_signature_runner("two", keep={"cache"})
    interpreter.allocate_tensors()
    interpreter.reset_all_variables()
    assert not runner.kept["count"].any()
    assert not runner.kept["cache"].any()


@pytest.mark.parametrize("wrong", ["an input", "what is kept"])
@pytest.mark.parametrize("first", [True, False])
def test_after_a_call_with_wrong_shapes(first: bool, wrong: str) -> None:
    interpreter = Interpreter(model_content=cache_model())
    runner = interpreter.get_signature_runner("one", keep={"cache", "count"})
    call = steps(np.float32)[1][1]
    if not first:
        runner(**call)
    given = {name: np.zeros((3, *value.shape, 5), value.dtype) for name, value in call.items()}
    if wrong == "what is kept":
        given = {**call, "cache": np.zeros((1, 2, 3), np.float32)}
    with pytest.raises(BridgeError):
        runner(**given)
    assert runner.kept["count"] == [0 if first else 1]
    assert runner.kept["cache"].shape == (ROWS, WIDTH)
    runner(**call)
    assert runner.kept["count"] == [1 if first else 2]


def test_another_name_of_the_output() -> None:
    builder = ModelBuilder()
    graph = (
        builder.subgraph().tensor("h", (2,)).tensor("h_next", (2,)).constant("1", np.float32([1]))
    )
    graph.operator(Op.ADD, ["h", "1"], ["h_next"], AddOptions()).inputs("h").outputs("h_next")
    graph.signature("step", inputs={"h": "h"}, outputs={"h_next": "h_next"})
    step = Interpreter(model_content=builder.write()).get_signature_runner(keep={"h": "h_next"})
    for _ in range(3):
        assert step() == {}
    assert step.kept["h"].tolist() == [3, 3]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"nothing"}, "no input nothing to keep"),
        ({"new"}, "no output new to keep"),
        ({"cache": "count", "count": "count"}, "as one output"),
        ("cache", "a collection of names"),
    ],
)
def test_what_cannot_be_kept(keep: Any, message: str) -> None:
    interpreter = Interpreter(model_content=cache_model())
    with pytest.raises(TensorError, match=message):
        interpreter.get_signature_runner("one", keep=keep)


def test_names_of_two_shapes() -> None:
    interpreter = Interpreter(model_content=cache_model(other_rows=ROWS + 1))
    call = {"place": np.int32([0, 0])}
    interpreter.get_signature_runner("one", keep={"cache", "count"})(
        **call, new=np.zeros((1, WIDTH), np.float32)
    )
    other = interpreter.get_signature_runner("two", keep={"cache", "count"})
    with pytest.raises(StateError, match="'cache' is kept as float32"):
        other(**call, new=np.zeros((2, WIDTH), np.float32))


def test_too_few_inputs() -> None:
    runner = Interpreter(model_content=cache_model()).get_signature_runner("one", keep={"cache"})
    with pytest.raises(TensorError, match="expected 3 vs provided 1"):
        runner(place=np.int32([0, 0]))


@pytest.mark.parametrize("name", ["hf_lfm2", "llm_gemma3_none"])
def test_caches_of_a_language_model(name: str) -> None:
    path = newer_model_path(f"{name}.tflite")
    passing, keeping = Interpreter(path), Interpreter(path)
    signatures = passing.get_signature_list()
    caches = set(signatures["decode"]["inputs"]) & set(signatures["decode"]["outputs"])
    rng, state = np.random.default_rng(5), {}
    for key in (next(key for key in signatures if key.startswith("prefill")), "decode", "decode"):
        plain, kept = (
            passing.get_signature_runner(key),
            keeping.get_signature_runner(key, keep=caches),
        )
        given: dict[str, Any] = {
            name: np.zeros(each["shape"], each["dtype"])
            for name, each in plain.get_input_details().items()
        }
        given["tokens"][...] = rng.integers(0, 500, given["tokens"].shape)
        given["input_pos"][...] = np.arange(len(given["input_pos"])) + len(state)
        want = plain(**(given | state))
        got = kept(**{name: array for name, array in given.items() if name not in caches})
        state = {name: want[name] for name in caches}
        for name, array in want.items():
            np.testing.assert_array_equal(kept.kept[name] if name in caches else got[name], array)


def test_an_input_is_not_kept_as_two_outputs() -> None:
    """The second runner would go on with the first one's output."""
    interpreter = Interpreter(model_content=cache_model())
    _, call = steps(np.float32)[1]
    interpreter.get_signature_runner("one", keep={"cache", "count"})(**call)
    other = interpreter.get_signature_runner("one", keep={"cache": "shown", "count": "count"})
    with pytest.raises(StateError, match="'cache' is kept as another output"):
        other(**call)
