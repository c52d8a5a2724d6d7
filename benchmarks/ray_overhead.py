"""What Ray costs beside threads of one process, for the same job of `predict` on this machine.

    python -m benchmarks.ray_overhead [--rows 100000] [--pictures 2000] [--actors 4] \
        [--nodes 1 2] [--json FILE]

Seconds of whole jobs. `rows` are small: a keyword network in 8 bits, of a table of numbers.
`pictures` are JPEG files of 224 x 224 through MobileNet V2 of uint8. The job runs in threads, one
for each core; then by `--engine ray` on clusters of one and of two nodes, which run already; then
with an actor killed in the middle. The nodes claim a core for each actor and two more to read, but
share the cores of this machine: this tells what handing out costs, not what more machines bring.

The seconds in which a cluster starts are told apart. Every result is compared with that of the
threads, row by row.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster as LocalCluster

from benchmarks.predict import MODEL, draw
from tests.models import model_path
from tests.prediction.test_ray import MODEL as WORDS
from tests.prediction.test_ray import killing_one
from tflite_ort.base.files import write_text, writing
from tflite_ort.command.benchmark import machine
from tflite_ort.prediction.job import Job, opened_job
from tflite_ort.prediction.local import run_threads
from tflite_ort.prediction.pool import cores
from tflite_ort.prediction.ray_engine import Cluster, run_ray
from tflite_ort.prediction.results import Done
from tflite_ort.prediction.units import units_of
from tflite_ort.prediction.work import Setup, Worker
from tflite_ort.prediction.writers import writer_for

Engine = Callable[[Job], None]


class Task:
    """One job, to be done again and again."""

    def __init__(self, folder: Path, name: str, model: Path, inputs: Path, *, rows: bool) -> None:
        self.name, self.inputs, self.rows = name, inputs, rows
        self.setup = Setup(str(model))
        self.worker = Worker(self.setup)
        self.out = folder / f"{name}.npz"

    def seconds(self, engine: Engine) -> float:
        """The time of the whole job: list, read, run, write, join."""
        started = time.perf_counter()
        job = opened_job(
            self.out,
            writer_for(self.out, self.worker.columns),
            {},
            units_of([str(self.inputs)], rows=self.rows),
            overwrite=True,
        )
        engine(job)
        job.finish()
        return time.perf_counter() - started

    def results(self) -> dict[str, Any]:
        """All columns as they were written."""
        with np.load(self.out) as made:
            return dict(made)

    def is_midway(self) -> bool:
        """Whether some parts are written."""
        folder = Path(f"{self.out}.job")
        return folder.exists() and sum("-" in name for name in os.listdir(folder)) >= 2


@contextmanager
def cluster(nodes: int, actors: int) -> Iterator[str]:
    """The address of a running cluster."""
    share = (actors + 2) // nodes
    begun = time.perf_counter()
    started = LocalCluster(initialize_head=True, head_node_args={"num_cpus": share})
    for _ in range(nodes - 1):
        started.add_node(num_cpus=share)
    ray.init(address=started.address, log_to_driver=False, logging_level="warning")
    print(f"cluster of {nodes}, ready in {time.perf_counter() - begun:.1f} s", flush=True)
    yield started.address
    ray.shutdown()
    started.shutdown()


def measured(tasks: list[Task], actors: int, clusters: list[int]) -> dict[str, dict[str, float]]:
    """Seconds by task and engine."""
    found: dict[str, dict[str, float]] = {}
    wanted = {}
    for task in tasks:
        work = task.worker
        local = task.seconds(lambda job, work=work: run_threads(job, work, cores(), _tell))
        found[task.name] = {"threads": local}
        print(f"{task.name:9} {'threads':26} {local:6.1f} s", flush=True)
        wanted[task.name] = task.results()
    for nodes in clusters:
        with cluster(nodes, actors) as address:
            for task in tasks:
                for kill in (False, True):
                    took = _by_ray(task, Cluster(actors, address), kill=kill)
                    same(task.results(), wanted[task.name])
                    how = f"{nodes} node{'s' * (nodes > 1)}{', an actor killed' * kill}"
                    found[task.name][how] = took
                    print(f"{task.name:9} {how:26} {took:6.1f} s", flush=True)
    return found


def _by_ray(task: Task, where: Cluster, *, kill: bool) -> float:
    with killing_one(task.is_midway) if kill else nullcontext([]) as killed:
        took = task.seconds(lambda job: run_ray(job, task.setup, where, _tell))
    if kill and not killed:
        sys.exit(f"{task.name}: the job was over before an actor was killed")
    return took


def _tell(done: Done) -> None:
    pass


def same(got: dict[str, Any], want: dict[str, Any]) -> None:
    """Every row is there once, in its place, and as threads make it."""
    for name, column in want.items():
        np.testing.assert_array_equal(got[name], column, err_msg=name)


def main() -> None:
    """Print the seconds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--actors", type=int, default=4)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    with TemporaryDirectory() as name:
        folder = Path(name)
        shape = (given.rows, 49, 10, 1)
        codes = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
        with writing(folder / "rows.npy") as (stream,):
            np.save(stream, codes)
        (folder / "pictures").mkdir()
        draw(folder / "pictures", given.pictures, "jpg")
        tasks = [
            Task(folder, "rows", model_path(WORDS), folder / "rows.npy", rows=True),
            Task(folder, "pictures", model_path(MODEL), folder / "pictures", rows=False),
        ]
        found = measured(tasks, given.actors, given.nodes)
    if given.json:
        write_text(given.json, json.dumps({**machine(), "seconds": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
