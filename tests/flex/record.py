"""Records what TensorFlow answers to the cases::

    TENSORFLOW_PYTHON=/path/to/python python -m tests.flex.record [--check] [FAMILY...]

With ``--check`` nothing is written: the recorded answers are compared with those of TensorFlow now.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.flex.cases import ANSWERS, Case, answers, cases_of, families, packed

WORKER = Path(__file__).with_name("tensorflow_worker.py")


def live(models: Mapping[str, tuple[bytes, Sequence[Any]]]) -> dict[str, Any]:
    """What TensorFlow's interpreter makes of models."""
    python = os.environ.get("TENSORFLOW_PYTHON", "")
    if not python:
        sys.exit("TENSORFLOW_PYTHON names no Python with TensorFlow 2.18.1")
    done = subprocess.run(
        [python, str(WORKER)], input=pickle.dumps(dict(models), protocol=4), capture_output=True
    )
    start = done.stdout.find(b"ANSWERS")
    if start < 0:
        sys.exit(done.stderr.decode(errors="replace")[-2000:])
    found: dict[str, Any] = pickle.loads(done.stdout[start + len(b"ANSWERS") :])
    return found


def recorded(family: str, cases: Sequence[Case]) -> dict[str, Any]:
    """The arrays of the file of a family."""
    found = live({case.key: (case.model(), case.feeds()) for case in cases})
    arrays: dict[str, Any] = {}
    for case in cases:
        got = found[case.key]
        if isinstance(got, str) is not case.refused:
            said = got.partition("\n")[0] if isinstance(got, str) else "not refused"
            print(f"{family}: {case}: {said}")
        if isinstance(got, str):
            arrays[f"{case.key}.refused"] = np.array(True)
            continue
        for number, array in enumerate(got):
            arrays |= packed(f"{case.key}.{number}", np.asarray(array))
    return arrays


def main(arguments: Sequence[str]) -> None:
    """Records, or compares, the families named; all without a name."""
    check = "--check" in arguments
    names = [each for each in arguments if not each.startswith("-")] or families()
    for family in names:
        arrays = recorded(family, cases_of(family))
        if not check:
            ANSWERS.mkdir(exist_ok=True)
            np.savez_compressed(ANSWERS / f"{family}.npz", **arrays)
            print(f"{family}: {len(arrays)} arrays")
            continue
        before = answers(family)
        same = before.keys() == arrays.keys() and all(
            np.array_equal(before[key], arrays[key], equal_nan=arrays[key].dtype.kind in "fc")
            for key in arrays
        )
        print(f"{family}: {'the same' if same else 'OTHER ANSWERS'}")
        if not same:
            sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
