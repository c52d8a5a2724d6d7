"""Workers on a cluster: a pool of Ray's actors, to which Ray Data hands out what is left of a job.

The folder of the job, the inputs and the model are on a file system that all nodes see. An actor
writes what it has done as a part of the job, under a name that tells which units are in it. If an
actor or its node is lost, Ray Data gives its groups to others, which write the same parts.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.job import Job, part_path
from tflite_ort.prediction.local import Tell
from tflite_ort.prediction.reading import Tables
from tflite_ort.prediction.results import Done
from tflite_ort.prediction.units import Unit
from tflite_ort.prediction.work import Setup, Worker
from tflite_ort.prediction.writers import writer_for
from tflite_ort.schema import BatchWarning

# Of a group, which is also a part: less, and handing it out would count.
_ROWS = 256


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a job runs, and with what.

    Args:
        address: of a cluster, as ``ray.init`` takes it; None starts one on this machine, or takes
            the one that ``RAY_ADDRESS`` names.
        workers: how many actors.
        gpus: of each actor; parts of 1 share a GPU.
    """

    workers: int
    address: str | None = None
    gpus: float = 0.0


class Actor:
    """What an actor does with a group of units."""

    def __init__(self, setup: Setup, out: str, folder: str) -> None:
        os.chdir(folder)  # inputs are named from there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BatchWarning)  # whoever began the job was told
            self._worker = Worker(setup)
        self._tables = Tables()
        self._out = Path(out)
        self._writer = writer_for(self._out, self._worker.columns)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Do the units of a row, and write them as a part."""
        first, units = int(row["first"]), [Unit(*each) for each in json.loads(row["units"])]
        block = self._worker(units, [*map(self._tables.loaded, units)])
        self._writer.part(part_path(self._out, first, first + len(units)), block)
        return asdict(block.done(len(units)))


def run_ray(job: Job, setup: Setup, cluster: Cluster, tell: Tell) -> None:
    """Do what is left of a job on a cluster.

    Raises:
        InputError: Ray is not installed.
    """
    ray, data = optional_module("ray"), optional_module("ray.data")
    if ray is None or data is None:
        raise InputError("--engine ray needs Ray: pip install 'tflite-ort[ray]'")
    groups = list(_rows(job))
    if not groups:  # all is done but the joining
        return
    started = not ray.is_initialized()
    if started:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="warning")
    try:
        data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        for row in _dataset(data, groups, job, setup, cluster).iter_rows():
            tell(Done(**row))
    finally:
        if started:
            ray.shutdown()


def _dataset(data: Any, groups: list[Any], job: Job, setup: Setup, cluster: Cluster) -> Any:
    return data.from_items(groups, override_num_blocks=len(groups)).map(
        Actor,
        fn_constructor_args=(setup, os.fspath(job.out.absolute()), os.getcwd()),
        compute=data.ActorPoolStrategy(size=min(cluster.workers, len(groups))),
        num_gpus=cluster.gpus or None,
    )


def _rows(job: Job) -> Iterator[dict[str, Any]]:
    for first, units in job.groups(_ROWS):
        yield {"first": first, "units": json.dumps([unit.stored() for unit in units])}
