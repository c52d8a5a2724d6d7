"""Many interpreters of one model: in one process, in threads, after a fork, in new processes."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tflite_ort import Interpreter
from tflite_ort.command.demo import digits_model
from tflite_ort.plan import session_step
from tflite_ort.providers import session
from tflite_ort.providers.plain_session import PlainSession
from tflite_ort.schema import read_model

Array = npt.NDArray[Any]
SECONDS = 60


def ready(path: Path | str, **arguments: Any) -> Interpreter:
    interpreter = Interpreter(str(path), **arguments)
    interpreter.allocate_tensors()
    return interpreter


def answer(interpreter: Interpreter, seed: int = 0) -> Array:
    """The output for random numbers."""
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    image = np.random.default_rng(seed).random(given["shape"]).astype(given["dtype"])
    interpreter.set_tensor(given["index"], image)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(made["index"]))


def doubled(path: Path) -> bytes:
    """The file with its largest weights doubled."""
    sizes = {id(each.data): each.data for each in read_model(path).buffers if each.data is not None}
    weights = max(sizes.values(), key=lambda data: data.size)
    content = bytearray(path.read_bytes())
    place = content.index(weights.tobytes())
    floats = np.frombuffer(content, np.float32, weights.size // 4, place)
    floats *= 2
    return bytes(content)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "digits.tflite"
    path.write_bytes(Path(digits_model("float32")).read_bytes())
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[PlainSession]:
    """The sessions that are made from now on."""
    sessions: list[PlainSession] = []

    def noted(*arguments: Any, **options: Any) -> PlainSession:
        sessions.append(PlainSession(*arguments, **options))
        return sessions[-1]

    monkeypatch.setattr(session, "PlainSession", noted)
    return sessions


@pytest.mark.parametrize("cached", ["", "made", "found"])
def test_interpreters_of_one_model_share_a_session(
    model: Path, made: list[PlainSession], tmp_path: Path, cached: str
) -> None:
    """The first one too that makes an entry of the cache."""
    arguments = {"cache": tmp_path / "cache"} if cached else {}
    if cached == "found":
        ready(model, **arguments)
    first = ready(model, **arguments)
    count = len(made)
    others = [ready(model, **arguments), ready(model, **arguments).copy()]
    others[1].allocate_tensors()
    assert len(made) == count
    expected = answer(first, 1)
    answer(others[0], 2)  # writes into arrays of its own
    np.testing.assert_array_equal(answer(others[1], 1), expected)
    outputs = first.get_output_details()
    np.testing.assert_array_equal(first.get_tensor(outputs[0]["index"]), expected)


def test_a_session_goes_with_its_last_interpreter(model: Path, made: list[PlainSession]) -> None:
    ready(model)  # the first of a process tries the processor
    made.clear()
    ready(model)
    count = len(made)
    ready(model)
    assert len(made) == 2 * count > 0


def test_a_session_of_the_cache_goes_with_its_last_interpreter(
    model: Path, made: list[PlainSession], tmp_path: Path
) -> None:
    ready(model, cache=tmp_path)
    made.clear()
    ready(model, cache=tmp_path)
    count = len(made)
    ready(model, cache=tmp_path)
    assert len(made) == 2 * count > 0


def test_sessions_of_the_cache_with_threads_of_their_own_are_not_shared(
    model: Path, made: list[PlainSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_step, "saves_time", lambda operators: True)
    ready(model, cache=tmp_path, num_threads=2)
    made.clear()
    held = []
    for count in (1, 2, 3):
        held.append(ready(model, cache=tmp_path, num_threads=2))
        assert len(made) == count
    np.testing.assert_array_equal(answer(held[0]), answer(held[2]))


def test_other_weights_in_an_equal_graph_are_not_shared(model: Path, tmp_path: Path) -> None:
    content = doubled(model)
    changed = tmp_path / "changed.tflite"
    changed.write_bytes(content)
    first, second = ready(model), ready(changed)
    assert not np.array_equal(answer(first), answer(second))
    alone = Interpreter(model_content=content, num_threads=2)
    alone.allocate_tensors()
    np.testing.assert_allclose(answer(second), answer(alone), rtol=1e-5)


def test_shared_sessions_run_in_threads_at_once(model: Path) -> None:
    expected = {seed: answer(ready(model), seed) for seed in range(4)}

    def work(seed: int) -> list[Array]:
        interpreter = ready(model)
        return [answer(interpreter, seed) for _ in range(50)]

    with ThreadPoolExecutor(4) as pool:
        for seed, results in enumerate(pool.map(work, range(4))):
            for result in results:
                np.testing.assert_array_equal(result, expected[seed])


def test_a_file_that_was_changed_is_read_anew(model: Path) -> None:
    """Also at once, when its time may be that of the file before."""
    held = ready(model)
    expected = answer(held)
    for _ in range(3):
        model.write_bytes(doubled(model))
        changed = answer(ready(model))
        assert not np.array_equal(changed, expected)
        np.testing.assert_array_equal(answer(held), answer(held))
        expected, held = changed, ready(model)


def test_a_pickle_holds_the_path_and_not_the_weights(model: Path) -> None:
    interpreter = ready(model)
    pickled = pickle.dumps(interpreter)
    assert len(pickled) < 2000 < model.stat().st_size
    again = pickle.loads(pickled)
    again.allocate_tensors()
    np.testing.assert_array_equal(answer(again), answer(interpreter))


def in_process(method: str, work: Callable[..., None], *arguments: Any) -> Any:
    """What `work` puts in a queue, its last argument, in a new process."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=work, args=(*arguments, queue))
    process.start()
    try:
        return queue.get(timeout=SECONDS)
    finally:
        process.join(5)
        process.kill()


_LOADED: dict[str, Interpreter] = {}


def answer_of_the_loaded(queue: Any) -> None:
    queue.put(answer(_LOADED["interpreter"]))


def answer_of(interpreter: Interpreter, queue: Any) -> None:
    interpreter.allocate_tensors()
    queue.put(answer(interpreter))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_after_a_load_works(model: Path, threads: int) -> None:
    _LOADED["interpreter"] = ready(model, num_threads=threads)
    expected = answer(_LOADED["interpreter"])
    try:
        np.testing.assert_array_equal(in_process("fork", answer_of_the_loaded), expected)
        np.testing.assert_array_equal(answer(_LOADED["interpreter"]), expected)
    finally:
        del _LOADED["interpreter"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_an_interpreter_can_be_sent_to_a_process(model: Path, method: str) -> None:
    interpreter = ready(model, num_threads=2)
    expected = answer(interpreter)
    sent = Interpreter(str(model), num_threads=2)
    np.testing.assert_array_equal(in_process(method, answer_of, sent), expected)
