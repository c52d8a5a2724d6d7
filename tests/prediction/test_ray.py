"""The ray engine, and Predictor in Ray Data, on clusters that the tests start."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

from tests.models import model_path
from tflite_ort import Predictor
from tflite_ort.command.cli import app

Array = npt.NDArray[Any]

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]  # Ray has warnings of its own

MODEL = "mlperf-tiny__kws_ref_model.tflite"
ROWS, ACTORS = 40_000, 4


@pytest.fixture(scope="module", params=[2, 1], ids=["two nodes", "one node"])
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a cluster, with cores for the actors and for what reads, and a GPU in name."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    ray: Any = importlib.import_module("ray")
    utilities: Any = importlib.import_module("ray.cluster_utils")
    nodes = request.param
    head = {"num_cpus": 6 // nodes, "num_gpus": 1}
    started = utilities.Cluster(initialize_head=True, head_node_args=head)
    for _ in range(nodes - 1):
        started.add_node(num_cpus=3)
    ray.init(address=started.address, log_to_driver=False)
    assert len([node for node in ray.nodes() if node["Alive"]]) == nodes
    yield started.address
    ray.shutdown()
    started.shutdown()


@pytest.fixture(scope="module")
def given() -> Array:
    return np.random.default_rng(0).integers(-128, 128, (ROWS, 49, 10, 1)).astype(np.int8)


@pytest.fixture(scope="module")
def expected(given: Array) -> Array:
    return Predictor(model_path(MODEL), 32)(given)


def actors() -> list[int]:
    """The processes of Ray Data's actors, of those that this process and its own have started."""
    return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _is_actor(pid)]


def _is_actor(pid: int) -> bool:
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes()
        while pid not in (os.getpid(), 0):
            status = Path(f"/proc/{pid}/status").read_text()
            pid = int(status.partition("PPid:")[2].split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return False
    return title.startswith(b"ray::MapWorker") and pid == os.getpid()


@contextmanager
def killing_one(when: Callable[[], bool]) -> Iterator[list[int]]:
    """Kill an actor as soon as `when` holds, at the latest when the work inside is done; the list
    tells which one. There is no other limit: a cluster takes its time."""
    killed, ended = list[int](), threading.Event()

    def work() -> None:
        while not killed and not ended.wait(0.01):
            if when() and (found := actors()):
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("kill", [False, True])
def test_engine(tmp_path: Path, cluster: str, given: Array, expected: Array, kill: bool) -> None:
    np.save(tmp_path / "in.npy", given)
    out, folder = tmp_path / "out.npz", tmp_path / "out.npz.job"
    left: list[int] = []

    def is_midway() -> bool:
        parts = [each for each in os.listdir(folder) if "-" in each] if folder.exists() else []
        left[:] = [ROWS // 256 - len(parts)]
        return len(parts) >= 5

    how = ("--engine", "ray", "--workers", ACTORS, "--address", cluster)
    command = ("predict", model_path(MODEL), tmp_path / "in.npy", "--rows", "--out", out, *how)
    with killing_one(is_midway if kill else lambda: False) as killed:
        result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 0, result.output
    assert bool(killed) == kill
    assert not kill or left[0] > 0
    with np.load(out) as made:
        np.testing.assert_array_equal(made["row"], np.arange(ROWS))
        np.testing.assert_array_equal(made["Identity"], expected)
        assert not any(made["error"])


def test_a_job_without_a_result_is_an_error(tmp_path: Path, cluster: str) -> None:
    """The actors' errors are told, and written; a table is read on from group to group."""
    table, out = tmp_path / "in.csv", tmp_path / "out.csv"
    table.write_text("x\n" + "nothing.npy\n" * 1000)
    how = ("--engine", "ray", "--workers", 1, "--address", cluster)
    command = ("predict", model_path(MODEL), table, "--out", out, *how)
    result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 1, result.output
    assert "all 1000 rows have an error (column 'error'), such as: " in result.output
    assert "'nothing.npy'" in result.output
    assert len(out.read_text("utf-8").splitlines()) == 1001


def test_actors_share_a_gpu(tmp_path: Path, cluster: str, given: Array, expected: Array) -> None:
    """Ray counts what a node is said to have: two actors of half a GPU each hold it all."""
    ray: Any = importlib.import_module("ray")
    np.save(tmp_path / "in.npy", given)
    out, free, ended = tmp_path / "out.npz", [1.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            free.append(ray.available_resources().get("GPU", 0.0))

    thread = threading.Thread(target=watch)
    thread.start()
    how = ("--engine", "ray", "--workers", 2, "--gpus-per-worker", 0.5, "--address", cluster)
    command = ("predict", model_path(MODEL), tmp_path / "in.npy", "--rows", "--out", out, *how)
    try:
        result = CliRunner().invoke(app, list(map(str, command)))
    finally:
        ended.set()
        thread.join()
    assert result.exit_code == 0, result.output
    assert min(free) == 0
    with np.load(out) as made:
        np.testing.assert_array_equal(made["Identity"], expected)


def test_predictor_in_ray_data(tmp_path: Path, cluster: str, given: Array, expected: Array) -> None:
    data: Any = importlib.import_module("ray.data")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    arrow: Any = importlib.import_module("pyarrow")
    (tmp_path / "in").mkdir()
    for first in range(0, ROWS, 1000):
        rows = {
            "id": np.arange(first, first + 1000),
            "keywords": list(given[first : first + 1000].reshape(1000, -1)),
        }
        parquet.write_table(arrow.table(rows), tmp_path / "in" / f"{first:06}.parquet")
    marks = tmp_path / "marks"
    marks.mkdir()
    with killing_one(lambda: len(os.listdir(marks)) >= 5) as killed:
        data.read_parquet(os.fspath(tmp_path / "in")).map_batches(
            Shaped,
            fn_constructor_args=(os.fspath(model_path(MODEL)), os.fspath(marks)),
            compute=data.ActorPoolStrategy(size=ACTORS),
            batch_size=128,
        ).write_parquet(os.fspath(tmp_path / "made"))
    made = parquet.read_table(tmp_path / "made").sort_by("id")
    assert killed
    assert made["id"].to_pylist() == list(range(ROWS))
    np.testing.assert_array_equal(np.stack(made["Identity"].to_numpy()), expected)


class Shaped(Predictor):
    """Takes rows of flat lists, as tables hold them, and leaves a mark for each batch in a folder:
    results may be written only when all batches are done."""

    def __init__(self, model: str, marks: str) -> None:
        super().__init__(model)
        self._marks = Path(marks)

    def __call__(self, batch: Any) -> Any:
        rows = np.stack(list(batch["keywords"])).reshape(-1, 49, 10, 1).astype(np.int8)
        made = super().__call__({"id": batch["id"], "input_1": rows})
        (self._marks / str(batch["id"][0])).touch()
        return made
