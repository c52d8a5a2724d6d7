"""What of MediaPipe's public names this library lacks: a table of docs/mediapipe.md.

`python -m benchmarks.mediapipe_missing ENV/bin/python...` asks each Python, in whose environment a
MediaPipe is installed, for the modules of its tasks and its solutions, and for the public names of
each and of each class. It prints those that are not there after `install_as("mediapipe")`.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from tflite_ort import install_as

_ASK = """
import importlib, inspect, json, pkgutil, sys
import mediapipe
skipped = {"test", "benchmark", "metadata", "genai", "optional_dependencies", "download_utils"}
said = {}

def of_module(module):
    for name, value in vars(module).items():
        if name.startswith("_") or inspect.ismodule(value) or hasattr(typing_, name):
            continue
        origin = getattr(value, "__module__", module.__name__)
        if not (origin or "").startswith("mediapipe"):
            continue
        inner = []
        if inspect.isclass(value):
            inner = [each for each in vars(value) if not each.startswith("_")]
            inner += [each for each in getattr(value, "__dataclass_fields__", {}) if each[0] != "_"]
        yield name, sorted(set(inner))

import typing as typing_
for root in ("mediapipe.tasks.python", "mediapipe.solutions", "mediapipe.python.solutions"):
    try:
        package = importlib.import_module(root)
    except ImportError:
        continue
    for found in [package, *pkgutil.walk_packages(package.__path__, root + ".")]:
        name = getattr(found, "__name__", None) or found.name
        internal = name.endswith(("_c", "_c_utils", "_c_bindings", "_test", "_dispatcher"))
        if internal or skipped & set(name.split(".")):
            continue
        said[name] = dict(of_module(importlib.import_module(name)))
json.dump({"version": mediapipe.__version__, "modules": said}, sys.stdout)
"""
# Of the C library beneath MediaPipe 1.x, and of how 0.10 makes its graphs: no part of the API.
_INTERNAL = re.compile(
    r"Mp\w+C$|.*[cC]types?\b|CCallbackType|.*OptionsC$|Base\w+TaskApi|TaskInfo|SolutionBase"
    r"|sd(_error)?$|doc_controls|.*\.(to_pb2|create_from_pb2|get_graph_config)$|\w+Proto$"
    r"|HOST_ENVIRONMENT_PYTHON|validate_running_mode"
)


def asked(python: str) -> Mapping[str, Any]:
    """The version of a MediaPipe, and by module its names, each with what its class has."""
    done = subprocess.run([python, "-c", _ASK], check=True, stdout=subprocess.PIPE, text=True)
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said


def missing(modules: Mapping[str, Mapping[str, list[str]]]) -> Iterator[tuple[str, str]]:
    """By module, each name that this library lacks; of classes that it has, what they lack."""
    for module, names in modules.items():
        try:
            ours: ModuleType | None = importlib.import_module(module)
        except ImportError:
            ours = None
        for name, inner in names.items():
            here = getattr(ours, name, None)
            if here is None:
                yield module, name
            elif isinstance(here, type):
                yield from (
                    (module, f"{name}.{each}")
                    for each in inner
                    if not hasattr(here, each)
                    and not any(
                        each in getattr(here, names, ())
                        for names in ("FIELDS", "__dataclass_fields__", "__annotations__")
                    )
                )


def main() -> None:
    """Print the tables."""
    with install_as("mediapipe"):
        for python in sys.argv[1:]:
            said = asked(python)
            by_name: dict[str, list[str]] = defaultdict(list)
            for module, name in missing(said["modules"]):
                if not _INTERNAL.match(name):
                    by_name[name].append(module)
            total = len({n for names in said["modules"].values() for n in names})
            print(f"MediaPipe {said['version']}: {total} names, {len(by_name)} missing\n")
            print("| missing | of |\n|---|---|")
            rows: dict[str, list[str]] = defaultdict(list)
            for name, places in by_name.items():
                rows[max(places, key=len)].append(name)
            for place, lacking in sorted(rows.items()):
                print(f"| {', '.join(f'`{each}`' for each in sorted(lacking))} | `{place}` |")
            print()


if __name__ == "__main__":
    main()
