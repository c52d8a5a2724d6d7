"""Which ONNX graphs the networks become: a record, to see what a change of the code changes.

    python benchmarks/session_graphs.py [FOLDER...] --write before.json
    python benchmarks/session_graphs.py [FOLDER...] --against before.json

Without folders: the models beside the repository. A row of the record is a network. It has the
digests of the graphs that ONNX Runtime gets, of each signature, with their weights, and the digest
of the exported file. A refactoring holds every digest. Graphs depend on the processor: compare
records of one machine. The exit status is 1 if a network differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tflite_ort import BridgeError, Interpreter, export_onnx
from tflite_ort.base import files
from tflite_ort.providers import graph_session

MODELS = Path(__file__).parents[2] / "shared"
FOLDERS = ("models", "models2", "models3")

Row = dict[str, Any]


def main() -> int:
    options = _options()
    folders = options.folders or [MODELS / name for name in FOLDERS]
    networks = [path for folder in folders for path in sorted(folder.rglob("*.tflite"))]
    rows: dict[str, Row] = {}
    context = multiprocessing.get_context("fork")
    with context.Pool(options.jobs, maxtasksperchild=1) as pool:
        for name, row in pool.imap(_row, networks):
            rows[name] = row
    graphs = sum(len(row["sessions"]) for row in rows.values())
    print(f"{len(rows)} networks, {graphs} session graphs")
    if options.write:
        files.write_text(options.write, json.dumps(rows, indent=1))
    if options.against:
        return _compare(json.loads(options.against.read_text()), rows)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", type=Path, help="the record of what is there now")
    parser.add_argument("--against", type=Path, help="an older record")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def _row(path: Path) -> tuple[str, Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f"{path.parent.name}/{path.name}", {
            "sessions": session_digests(path),
            "export": _export_digest(path),
        }


def session_digests(path: Path) -> list[str]:
    """The digests of the session graphs of a network, of each signature, or why there are none."""
    digests: list[str] = []
    made = graph_session.SessionGraph

    def record(content: bytes, weights: Any, in_place: Any, *others: Any) -> Any:
        digest = hashlib.sha256(content)
        for table in (weights, in_place):
            for name in sorted(table):
                digest.update(name.encode())
                digest.update(getattr(table[name], "array", table[name]).tobytes())
        digests.append(digest.hexdigest()[:16])
        return made(content, weights, in_place, *others)

    with patch.object(graph_session, "SessionGraph", record):
        try:
            interpreter = Interpreter(str(path), num_threads=1)
            interpreter.allocate_tensors()
            for signature in interpreter.get_signature_list():
                interpreter.get_signature_runner(signature)
        except BridgeError as error:
            digests.append(f"{type(error).__name__}: {error}")
    return digests


def _export_digest(path: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model.onnx"
        try:
            export_onnx(str(path), str(out))
        except BridgeError as error:
            return f"{type(error).__name__}: {error}"
        return hashlib.sha256(out.read_bytes()).hexdigest()[:16]


def _compare(before: dict[str, Row], after: dict[str, Row]) -> int:
    changed: Sequence[str] = [
        name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)
    ]
    for name in changed:
        old, new = before.get(name, {}), after.get(name, {})
        parts = [part for part in ("sessions", "export") if old.get(part) != new.get(part)]
        print(f"{name}: {', '.join(parts)}")
    print(f"{len(changed)} of {len(after)} networks differ")
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
