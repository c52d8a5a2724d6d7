"""How many pictures a second `tflite-ort predict` does, beside a plain loop over LiteRT.

    python -m benchmarks.predict [--images 2000] [--suffix jpg] [--only throughput] [--json FILE]

Pictures of 224 x 224 are written first. Both runtimes then take turns over portions of them, and
each decodes its pictures. The models are MobileNet V2 as uint8, and the same network as float, made
of the uint8 one's weights. The parts:

throughput: the whole work of the command, with two workers, against LiteRT with two threads
parts: what decoding alone and the networks alone take on both cores
batches: the same by the most rows at once
engines: threads against processes
threads: what two predictors in one process get, by how their sessions use the cores
memory: resident memory while a table of 100,000 rows is worked on
kills: the command killed ten times at random moments
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter as LiteRT
from PIL import Image

from tests.models import model_path
from tests.prediction.models import dense_layer
from tflite_ort import Interpreter, Predictor
from tflite_ort.base.files import write_bytes, write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.prediction.images import Normalization, read_image
from tflite_ort.prediction.job import Job, opened_job
from tflite_ort.prediction.local import run_processes, run_threads
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.results import Done
from tflite_ort.prediction.units import Unit, units_of
from tflite_ort.prediction.work import Setup, Worker
from tflite_ort.prediction.writers import writer_for
from tflite_ort.schema import Buffer, Model, TensorType, read_model, write_model
from tflite_ort.schema.file.model import stored_data

Array = npt.NDArray[Any]

MODEL = "tflite-support__mobilenet_v2_1.0_224_quant.tflite"
BAR = 1.5
SIZE = 224
MEAN = STD = 127.5
# Work for ten kills, each after 0.3 to 5 seconds.
KILLED_ROWS = 20_000
_CODES = {TensorType.UINT8: np.uint8, TensorType.INT32: np.int32}


def dequantised(model: Model) -> Model:
    """The network in float32, with the real values of its quantised weights."""
    graph, buffers, tensors = model.subgraphs[0], list(model.buffers), []
    for tensor in graph.tensors:
        quantization = tensor.quantization
        if quantization is None or quantization.scale is None or tensor.type not in _CODES:
            tensors.append(tensor)
            continue
        data = stored_data(model, tensor)
        if data is not None:
            codes = data.view(_CODES[tensor.type]).astype(np.float64)
            zero_point = 0 if quantization.zero_point is None else quantization.zero_point[0]
            real = ((codes - zero_point) * quantization.scale[0]).astype(np.float32)
            buffers.append(Buffer(data=real.view(np.uint8)))
            tensor = replace(tensor, buffer=len(buffers) - 1)
        tensors.append(replace(tensor, type=TensorType.FLOAT32, quantization=None))
    graph = replace(graph, tensors=tuple(tensors))
    return replace(model, buffers=tuple(buffers), subgraphs=(graph,), metadata=())


def draw(folder: Path, count: int, suffix: str) -> list[Path]:
    """Pictures with shapes and some noise; as large as photographs of this size are as files."""
    paths = []
    for number in range(count):
        rng = np.random.default_rng(number)
        coarse = Image.fromarray(rng.integers(0, 256, (28, 28, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((SIZE, SIZE), Image.Resampling.BICUBIC))
        noisy = smooth + rng.normal(0, 6, smooth.shape)
        paths.append(folder / f"{number:05}.{suffix}")
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(paths[-1], quality=90)
    return paths


def plain_loop(model: Path, threads: int) -> Callable[[Sequence[Path]], None]:
    """What is written without this library: read, decode, set, invoke, get, one by one."""
    interpreter = LiteRT(str(model), num_threads=threads)
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

    def loop(paths: Sequence[Path]) -> None:
        results = []
        for path in paths:
            image = Image.open(path).convert("RGB").resize((SIZE, SIZE))
            pixels = np.asarray(image)[np.newaxis]
            if given["dtype"] == np.float32:
                pixels = (pixels.astype(np.float32) - MEAN) / STD
            interpreter.set_tensor(given["index"], pixels)
            interpreter.invoke()
            results.append(interpreter.get_tensor(made["index"]))

    return loop


def setup_of(model: Path, batch_size: int | None = None) -> Setup:
    real = Interpreter(model).get_input_details()[0]["dtype"] is np.float32
    how = Normalization((MEAN,), (STD,)) if real else None
    return Setup(str(model), batch_size, preparation=Preparation(normalization=how))


def job_of(folder: Path, paths: Iterable[Path], worker: Worker) -> Job:
    out = folder / "results.parquet"
    units = (Unit(str(path)) for path in paths)
    return opened_job(out, writer_for(out, worker.columns), {}, units, overwrite=True)


def predicting(folder: Path, setup: Setup, workers: int) -> Callable[[Sequence[Path]], None]:
    """The whole work of the command after its model is loaded: list, read, run, write, join."""
    worker = Worker(setup)

    def predict(paths: Sequence[Path]) -> None:
        job = job_of(folder, paths, worker)
        run_threads(job, worker, workers, lambda *_: None)
        job.finish()

    return predict


def in_turns(
    works: dict[str, Callable[[Sequence[Path]], None]], portions: Sequence[Sequence[Path]]
) -> dict[str, list[float]]:
    """Milliseconds a picture of each work over each portion; they take turns."""
    for work in works.values():
        work(portions[0][:128])  # makes the sessions of all workers
    spent: dict[str, list[float]] = {name: [] for name in works}
    for number, portion in enumerate(portions):
        named = list(works.items())
        for name, work in named if number % 2 else reversed(named):
            started = time.perf_counter()
            work(portion)
            spent[name].append((time.perf_counter() - started) / len(portion) * 1e3)
    return spent


def told(title: str, spent: dict[str, list[float]], base: str) -> dict[str, Any]:
    print(title)
    found = {}
    for name, times in spent.items():
        ratios = [there / here for there, here in zip(spent[base], times, strict=True)]
        ratio, low, high = statistics.median(ratios), min(ratios), max(ratios)
        each = statistics.median(times)
        speed = f"{each:7.2f} ms {1e3 / each:6.0f}/s"
        print(f"  {name:32} {speed}  x {ratio:.2f} ({low:.2f} to {high:.2f})")
        found[name] = {"ms": times, "ratio": ratio, "lowest": low, "highest": high}
    return found


def throughput(folder: Path, models: dict[str, Path], portions: Any) -> dict[str, Any]:
    found = {}
    for name, model in models.items():
        works = {
            "LiteRT, 2 threads": plain_loop(model, 2),
            "predict, 2 workers": predicting(folder, setup_of(model), 2),
        }
        found[name] = told(f"{name}: bar {BAR}", in_turns(works, portions), "LiteRT, 2 threads")
    return found


def parts(folder: Path, models: dict[str, Path], portions: Any) -> dict[str, Any]:
    """Each part alone on both cores: two threads at once, each with half of the pictures."""
    found = {}
    for name, model in models.items():
        setup = setup_of(model)
        worker = Worker(setup)
        column = worker.inputs[0]
        read = partial(
            read_image,
            details=column.details,
            normalization=setup.preparation.normalization_of(column),
        )
        row = read(portions[0][0])
        works: dict[str, Callable[[Sequence[Path]], None]] = {
            "LiteRT, 2 threads, with decoding": plain_loop(model, 2),
            "predict, 2 workers": predicting(folder, setup, 2),
            "decoding alone": _halved(lambda half, read=read: deque(map(read, half), maxlen=0)),
            "LiteRT's network alone": _halved(*(_network(model, row) for _ in range(2))),
        }
        for size in (1, worker.rows_at_once):
            rows = np.repeat(row, size, axis=0)
            runs = [_batched(model, rows) for _ in range(2)]
            works[f"our network alone, batches of {size}"] = _halved(*runs)
        bare = [_bare(model, read, worker.rows_at_once) for _ in range(2)]
        works["a bare loop on each core"] = _halved(*bare)
        spent = in_turns(works, [each[: len(each) // 2] for each in portions])
        found[name] = told(f"{name}: parts", spent, "LiteRT, 2 threads, with decoding")
    return found


def _halved(*works: Callable[[Sequence[Path]], Any]) -> Callable[[Sequence[Path]], None]:
    """Two threads at once, each with half of the pictures."""
    first, second = works * 2 if len(works) == 1 else works

    def work(paths: Sequence[Path]) -> None:
        middle = len(paths) // 2
        _at_once([lambda: first(paths[:middle]), lambda: second(paths[middle:])])

    return work


def _network(model: Path, row: Array) -> Callable[[Sequence[Path]], None]:
    interpreter = LiteRT(str(model), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], row)

    def run(paths: Sequence[Path]) -> None:
        for _ in paths:
            interpreter.invoke()

    return run


def _batched(model: Path, rows: Array) -> Callable[[Sequence[Path]], None]:
    size = len(rows)
    interpreter = Interpreter(model, num_threads=1, batch=size if size > 1 else None)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], rows)

    def run(paths: Sequence[Path]) -> None:
        for _ in range(len(paths) // size):
            interpreter.invoke()

    return run


def _bare(
    model: Path, read: Callable[[Path], Array], size: int
) -> Callable[[Sequence[Path]], None]:
    """The least that there is to do: read, decode, set, invoke, get; nothing is kept."""
    interpreter = Interpreter(model, num_threads=1, batch=size if size > 1 else None)
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

    def loop(paths: Sequence[Path]) -> None:
        for first in range(0, len(paths) - size + 1, size):
            rows = [read(path) for path in paths[first : first + size]]
            interpreter.set_tensor(given["index"], np.concatenate(rows))
            interpreter.invoke()
            interpreter.get_tensor(made["index"])

    return loop


def batches(folder: Path, models: dict[str, Path], portions: Any) -> dict[str, Any]:
    found = {}
    for name, model in models.items():
        sizes = (None, 1, 2, 4, 8, 16, 32)
        works = {
            f"batch size {size or 'chosen'}": predicting(folder, setup_of(model, size), 2)
            for size in sizes
        }
        spent = in_turns(works, [each[: len(each) // 2] for each in portions[::2]])
        found[name] = told(f"{name}: by batch size", spent, "batch size 1")
    return found


def engines(folder: Path, models: dict[str, Path], portions: Any) -> dict[str, Any]:
    """Processes are started once for each portion, as the command does; loading is included."""
    found = {}
    for name, model in models.items():
        setup = setup_of(model)
        worker = Worker(setup)

        def processes(paths: Sequence[Path], setup: Setup = setup, worker: Worker = worker) -> None:
            job = job_of(folder, paths, worker)
            run_processes(job, setup, 2, worker.rows_at_once, lambda *_: None)
            job.finish()

        works = {"threads": predicting(folder, setup, 2), "processes": processes}
        whole = [[path for portion in portions for path in portion]]
        found[name] = told(f"{name}: engines", in_turns(works, whole * 2), "threads")
    return found


def threads(folder: Path, models: dict[str, Path], portions: Any) -> dict[str, Any]:
    """Two callers in one process, each with rows of its own."""
    found = {}
    for name, model in models.items():
        dtype = Interpreter(model).get_input_details()[0]["dtype"]
        rows = np.zeros((16, SIZE, SIZE, 3), dtype)
        shared = [Predictor(model, 1, threads=2) for _ in range(2)]
        works: dict[str, Callable[[Any], None]] = {
            "the shared pool": lambda _, s=shared, r=rows: _at_once([lambda p=p: p(r) for p in s])
        }
        for many in (1, 2):
            pair = [Interpreter(model, num_threads=many) for _ in range(2)]
            for each in pair:
                each.allocate_tensors()
            works[f"2 interpreters, {many} threads each"] = lambda _, p=pair: _at_once(
                [lambda i=i: [i.invoke() for _ in range(16)] for i in p]
            )
        spent = in_turns(works, [range(32)] * 8)
        found[name] = told(f"{name}: two callers", spent, "the shared pool")
    return found


def _at_once(works: Iterable[Callable[[], Any]]) -> None:
    callers = [threading.Thread(target=work) for work in works]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()


def memory(folder: Path, models: dict[str, Path], portions: Any) -> dict[str, Any]:
    """MiB of resident memory after each tenth of 100,000 rows of 1,024 floats."""
    rows = 100_000
    source = folder / "rows.npy"
    table = np.lib.format.open_memmap(source, "w+", np.float32, (rows, 1024))
    for first in range(0, rows, 1000):
        table[first : first + 1000] = np.random.default_rng(first).normal(size=(1000, 1024))
    del table
    model = folder / "dense.tflite"
    write_bytes(model, dense_layer(1024, 1024))
    worker = Worker(Setup(str(model)))
    out = folder / "rows.parquet"
    units = units_of([str(source)], rows=True)
    job = opened_job(out, writer_for(out, worker.columns), {}, units, save_seconds=1.0)
    noted: list[float] = []
    done = 0

    def tell(now: Done) -> None:
        nonlocal done
        done += now.rows
        if done >= (len(noted) + 1) * rows // 10:
            noted.append(round(resident(), 1))

    run_threads(job, worker, 2, tell)
    job.finish()
    noted.append(round(resident(), 1))
    print("memory, MiB, after each tenth and after joining:", *noted)
    return {"resident_mib": noted}


def kills(folder: Path, models: dict[str, Path], portions: Any) -> dict[str, Any]:
    """The command over pictures under many names, killed ten times at random moments, then left
    alone."""
    seed = int(time.time())
    moments, out = np.random.default_rng(seed), folder / "killed.jsonl"
    pictures, many = [path for portion in portions for path in portion], folder / "many"
    many.mkdir()
    paths = [many / f"{number:05}{pictures[0].suffix}" for number in range(KILLED_ROWS)]
    for number, path in enumerate(paths):
        path.hardlink_to(pictures[number % len(pictures)])
    command = [sys.executable, "-m", "tflite_ort", "predict", str(models["uint8"]), str(many)]
    command += ["--save-every", "0.2", "--out", str(out)]
    killed = 0
    while not out.exists():
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            process.wait(moments.uniform(0.3, 5) if killed < 10 else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
    sources = [json.loads(line)["source"] for line in out.read_text().splitlines()]
    whole = sources == sorted(map(str, paths))
    print(f"killed {killed} times (seed {seed}): {len(sources)} rows, each once: {whole}")
    return {"killed": killed, "rows": len(sources), "each_once": whole}


def resident() -> float:
    """MiB of this process's own memory, without what it maps of files."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


_ALL = (throughput, parts, batches, engines, threads, memory, kills)
PARTS = {each.__name__: each for each in _ALL}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--portion", type=int, default=1000)
    parser.add_argument("--suffix", choices=["jpg", "png"], default="jpg")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = draw(folder, arguments.images, arguments.suffix)
        models = {"uint8": model_path(MODEL), "float": folder / "float.tflite"}
        write_bytes(models["float"], write_model(dequantised(read_model(models["uint8"]))))
        step = arguments.portion
        portions = [paths[first : first + step] for first in range(0, len(paths), step)]
        found = {part: PARTS[part](folder, models, portions) for part in arguments.only or PARTS}
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), **found}, indent=2) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
