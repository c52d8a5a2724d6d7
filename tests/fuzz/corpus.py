"""The models that files are made from, in an order that does not depend on the machine."""

from __future__ import annotations

import hashlib
import lzma
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

from tests.fuzz.describe import operators, types
from tests.models import MODELS_DIR
from tests.ops.test_control_flow import MODELS as CONTROL_FLOW
from tests.ops.test_state import MODELS as STATE
from tests.samples import SAMPLES, sample
from tests.samples import types as sample_types
from tflite_ort.schema import BridgeError, Model, TensorType, read_model
from tflite_ort.schema.file.element_types import BITS

# Larger models are no seeds: they take longer than what they would find is worth.
MOST_BYTES = 1 << 16
# Nor are models whose tensors declare more than that: what is made of them takes gigabytes. Of
# 9,895 models all but two declare at most 5.2 MiB.
MOST_DECLARED = 1 << 24
# Those that stay the same whatever becomes of the tests, and how large one of them may be.
FIXED = Path(__file__).with_name("seeds.xz")
_MOST_FIXED_BYTES = 1 << 11
_LENGTH = struct.Struct("<I")
ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".fuzz"


@dataclass(frozen=True)
class Seed:
    """A model, as bytes and as its tree."""

    content: bytes

    @cached_property
    def model(self) -> Model:
        return read_model(self.content)


class Corpus:
    """Seeds from the smallest to the largest; `digest` names the set."""

    def __init__(self, contents: Iterable[bytes]) -> None:
        ordered = sorted(set(contents), key=lambda content: (len(content), content))
        self.seeds = [seed for seed in map(Seed, ordered) if _useful(seed)]
        joined = hashlib.sha256()
        for seed in self.seeds:
            joined.update(hashlib.sha256(seed.content).digest())
        self.digest = joined.hexdigest()[:12]

    def only(self, operator: str) -> Corpus:
        """The seeds with an operator whose name has `operator` in it."""
        return Corpus(each.content for each in self.seeds if operator in operators(each.content))


def _useful(seed: Seed) -> bool:
    """Whether it can be read, has a graph, and none of giants."""
    try:
        return bool(seed.model.subgraphs) and declared(seed.model) <= MOST_DECLARED
    except BridgeError:
        return False


def declared(model: Model) -> int:
    """The bytes that the shapes of all tensors ask for, an open dimension as 1."""
    tensors = (tensor for graph in model.subgraphs for tensor in graph.tensors)
    return sum(prod(max(size, 1) for size in each.shape) * _width(each.type) for each in tensors)


def _width(type: TensorType) -> int:
    """The bytes of an element in memory, about: those that have no fixed size are references."""
    return (BITS.get(type, 64) + 7) // 8


def small_corpus() -> Corpus:
    """One-operator models of every type, and control-flow programs: made in a second."""
    samples = [sample(op, type)[0] for op in SAMPLES for type in sample_types(op)]
    programs = [model for models in (CONTROL_FLOW, STATE) for model, _ in models.values()]
    return Corpus(each for each in (*samples, *programs) if len(each) <= MOST_BYTES)


def full_corpus(file: Path | None = None, folders: Sequence[Path] = ()) -> Corpus:
    """The small corpus, the models that the tests write, and the small real ones.

    Args:
        file: where the models of the tests are kept; None: beside the repository's other caches,
            made anew when the tests change.
        folders: of further models.
    """
    contents = [seed.content for seed in small_corpus().seeds]
    contents += read_corpus(_harvested() if file is None else file)
    for folder in (MODELS_DIR, *folders):
        small = (path for path in folder.glob("*.tflite") if path.stat().st_size <= MOST_BYTES)
        contents += [path.read_bytes() for path in small]
    return Corpus(contents)


def fixed_corpus() -> Corpus:
    """The smallest model of each kind, as they were when `fix` was last called."""
    data, contents, place = lzma.decompress(FIXED.read_bytes()), [], 0
    while place < len(data):
        start = place + _LENGTH.size
        place = start + _LENGTH.unpack_from(data, place)[0]
        contents.append(data[start:place])
    return Corpus(contents)


def fix(corpus: Corpus) -> None:
    """Writes the seeds of `fixed_corpus`: of `corpus` the smallest of each list of operators and
    types."""
    kinds: dict[tuple[str, str], bytes] = {}
    for seed in corpus.seeds:
        if len(seed.content) <= _MOST_FIXED_BYTES:
            kinds.setdefault((operators(seed.content), types(seed.content)), seed.content)
    joined = b"".join(_LENGTH.pack(len(content)) + content for content in kinds.values())
    FIXED.write_bytes(lzma.compress(joined, preset=9 | lzma.PRESET_EXTREME))


def _harvested() -> Path:
    """The file with the models of the tests, written in a process of its own if need be."""
    tests = sorted((ROOT / "tests").glob("*.py")) + sorted((ROOT / "tests" / "ops").glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in tests)).hexdigest()[:12]
    file = CACHE / f"seeds-{digest}.zip"
    if not file.exists():
        CACHE.mkdir(exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")
        command = [sys.executable, "-m", "tests.fuzz.harvest", str(partial)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        partial.replace(file)
    return file


def write_corpus(file: Path, contents: Iterable[bytes]) -> None:
    """Writes models into a zip, each under its digest."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for content in sorted(set(contents)):
            name = hashlib.sha256(content).hexdigest()[:16]
            archive.writestr(zipfile.ZipInfo(f"{name}.tflite"), content)


def read_corpus(file: Path) -> list[bytes]:
    """The models of a zip."""
    with zipfile.ZipFile(file) as archive:
        return [archive.read(name) for name in archive.namelist()]
