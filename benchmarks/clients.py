"""Packages from PyPI that use the TFLite interpreter, unmodified, on LiteRT and on tflite-ort.

    python -m benchmarks.clients --environments FOLDER --json FILE

Each package is installed into a virtual environment of its own in FOLDER, once. Two processes, one
for each runtime, do its job in turn, and give numbers. The table says how far apart these are, and
the speed: LiteRT's time over ours, the median over the rounds. `--page docs/from_tf_lite.md` writes
it into the page. Models: $TFLITE_ORT_MODELS, else ../shared/models. `--only NAME` runs one package.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.client_packages import CLIENTS, Files
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine

RUNTIMES = ("litert", "tflite-ort")
MARK = "<!-- table of clients -->"
ROOT = Path(__file__).parents[1]
MODELS = Path(os.environ.get("TFLITE_ORT_MODELS") or ROOT.parent / "shared" / "models")


def environment(folder: Path, name: str) -> Path:
    """The interpreter of the environment of a client, which is made if it is not there."""
    home, client = folder / name, CLIENTS[name]
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        library = ("--editable", str(ROOT))  # as it is now, whenever the environment was made
        subprocess.run([*install, *library, "ai-edge-litert", *client.needs], check=True)
        subprocess.run([*install, "--no-deps", *client.packages], check=True)
        write_text(home / "ready", "")
    return python


class Process:
    """A job on one runtime, in a process of its own."""

    def __init__(self, python: Path, name: str, runtime: str, given: argparse.Namespace) -> None:
        words = [str(python), "-m", "benchmarks.clients", "--one", name, "--runtime", runtime]
        words += ["--picture", str(given.picture)] if given.picture else []
        quiet = {"PYTHONWARNINGS": "ignore", "TQDM_DISABLE": "1"}
        quiet = {**os.environ, **quiet, "TFLITE_ORT_MODELS": str(MODELS)}
        self._process = subprocess.Popen(
            words, cwd=ROOT, env=quiet, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.numbers = np.array(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(map(str, self._process.args))} ended")
        return json.loads(line)

    def run(self) -> float:
        """Seconds that the job takes."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(name: str, runtime: str, picture: Path | None) -> None:
    """What a `Process` runs: the numbers first, then the seconds for every line that comes."""
    with open(os.dup(1), "w", encoding="utf-8", buffering=1) as answers:
        os.dup2(2, 1)  # what the package prints
        with contextlib.redirect_stdout(sys.stderr):
            run = CLIENTS[name].job(runtime, Files(MODELS, picture))
            numbers = run()
            print(json.dumps(numbers), file=answers)
            for _ in sys.stdin:
                started = time.perf_counter()
                run()
                print(time.perf_counter() - started, file=answers)


def compared(name: str, python: Path, given: argparse.Namespace) -> dict[str, Any]:
    theirs, ours = (Process(python, name, runtime, given) for runtime in RUNTIMES)
    shapes = theirs.numbers.shape, ours.numbers.shape
    assert shapes[0] == shapes[1], f"{name}: {shapes[1]} results, LiteRT {shapes[0]}"
    rounds = [(theirs.run(), ours.run()) for _ in range(given.rounds)]
    theirs.close(), ours.close()
    return {
        "client": name,
        "results": ours.numbers.size,
        "largest": float(np.abs(theirs.numbers).max()),
        "apart": float(np.abs(ours.numbers - theirs.numbers).max()),
        "ms": 1000 * statistics.median(own for _, own in rounds),
        "litert_ms": 1000 * statistics.median(other for other, _ in rounds),
        "speed": statistics.median(other / own for other, own in rounds),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """As the page has it."""
    lines = ["| package | results | largest | apart | ms | LiteRT, ms | speed |", "|---" * 7 + "|"]
    for row in rows:
        package = CLIENTS[row["client"]].packages[0]
        apart = f"{row['apart']:.1g}" if row["apart"] else "exact"
        lines.append(
            f"| {package} | {row['results']:,} | {row['largest']:.3g} | {apart} | {row['ms']:.1f} "
            f"| {row['litert_ms']:.1f} | {row['speed']:.2f} |"
        )
    return "\n".join(lines)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--environments", type=Path, help="a folder; else this environment")
    parser.add_argument("--picture", type=Path, help="with a face in it")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--runtime", choices=RUNTIMES, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = parsed()
    if given.one:
        serve(given.one, given.runtime, given.picture)
        return
    rows = []
    for name in given.only or CLIENTS:
        here = Path(sys.executable)
        python = environment(given.environments.resolve(), name) if given.environments else here
        rows.append(compared(name, python, given))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
    if given.page:
        begin, _, rest = given.page.read_text(encoding="utf-8").partition(MARK)
        write_text(given.page, f"{begin}{MARK}\n{table(rows)}\n{MARK}{rest.partition(MARK)[2]}")
    if given.json:
        write_text(given.json, json.dumps({**machine(), "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
