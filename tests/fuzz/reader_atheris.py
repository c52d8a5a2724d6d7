"""Coverage-guided fuzzing of the reader, by atheris: ``python -m tests.fuzz.reader_atheris``.

What follows are options of libFuzzer, such as ``-max_total_time=600``. New inputs that reach other
code are kept in ``.fuzz/reader``; an input that raises an error which is none of the library's is
written as ``crash-...`` and ends the run.
"""

from __future__ import annotations

import hashlib
import sys

import atheris

# The first import of the library's modules counts.
with atheris.instrument_imports(include=["tflite_ort.schema"], enable_loader_override=False):
    from tests.fuzz.corpus import CACHE, small_corpus
    from tflite_ort.schema import BridgeError, read_model, write_model
    from tflite_ort.schema.file.tables import Table

FOLDER = CACHE / "reader"


def read(content: bytes) -> None:
    """Reads a file; what can be read is written and read again."""
    try:
        model = read_model(content)
    except BridgeError:
        return
    again: Table = read_model(write_model(model))
    if again != model:
        raise AssertionError("a model that is written and read again is another one")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed in small_corpus().seeds:
        name = hashlib.sha256(seed.content).hexdigest()[:16]
        (FOLDER / f"{name}.tflite").write_bytes(seed.content)
    limits = ["-rss_limit_mb=2048", "-timeout=20"]
    atheris.Setup([sys.argv[0], *limits, *sys.argv[1:], str(FOLDER)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
