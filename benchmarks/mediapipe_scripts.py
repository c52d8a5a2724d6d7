"""Scripts that import mediapipe, on MediaPipe and on this library, with no line of them changed.

    python -m benchmarks.mediapipe_scripts --mediapipe ENV/bin/python --picture P.jpg... LIST

Each line of LIST is a folder, and a script in it with its arguments. `ENV` has MediaPipe 0.10.21
and OpenCV; here OpenCV is needed too. A film made of the pictures takes the place of the camera,
and windows are kept instead of shown. The table has how many windows there were, the share of their
pixels that differ by more than 8 of 256 (without the first 60 rows, where scripts draw their
speed), and the share for MediaPipe itself when a hundredth of each frame's bytes is changed by 1.
Of a script without windows it says whether it printed the same words, but for times.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.files import write_bytes

Array = npt.NDArray[Any]

SECONDS = 120
# Before the first of these rows scripts draw how fast they are.
FIRST_ROW, SAME = 60, 8
# Imported by Python before a script.
SHIM = """
import atexit, os, time
if os.environ.get("SCRIPT_WINDOWS"):
    import cv2, numpy as np
    frames, shown, state = [], [], {"left": None, "keys": 0}
    for path in os.environ["SCRIPT_PICTURES"].split(os.pathsep):
        picture = cv2.imread(path)
        picture = cv2.resize(picture, (640, picture.shape[0] * 640 // picture.shape[1]))[:480]
        below = 480 - picture.shape[0]
        picture = cv2.copyMakeBorder(picture, 0, below, 0, 0, cv2.BORDER_CONSTANT)
        for step in range(4):
            moved = np.float32([[1, 0, 2 * step], [0, 1, step]])
            frames.append(cv2.warpAffine(picture, moved, (640, 480)))
    if os.environ.get("SCRIPT_NOISE"):
        for frame in frames:
            frame[::10, ::10] ^= 1
    class Camera:
        def __init__(self, *arguments): state["left"] = len(frames)
        def set(self, *arguments): return True
        def get(self, *arguments): return 30.0
        def isOpened(self): return True
        def release(self): pass
        def read(self):
            time.sleep(0.3)
            if not state["left"]:
                return False, None
            state["left"] -= 1
            return True, frames[-1 - state["left"]].copy()
    def key(*arguments):
        state["keys"] += 1
        return 27 if state["left"] == 0 or state["keys"] > len(frames) else -1
    nothing = lambda *arguments, **named: None
    cv2.VideoCapture, cv2.waitKey = Camera, key
    cv2.imshow = lambda name, window: shown.append(np.array(window))
    cv2.destroyAllWindows = cv2.namedWindow = cv2.setMouseCallback = cv2.destroyWindow = nothing
    atexit.register(lambda: np.savez_compressed(os.environ["SCRIPT_WINDOWS"], *shown))
"""


def run(
    command: Sequence[str], folder: Path, shim: Path, windows: Path, environment: dict[str, str]
) -> str:
    """What a script prints; its windows are in a file then.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    found = [str(shim), os.environ.get("PYTHONPATH", "")]
    given = {"PYTHONPATH": os.pathsep.join(filter(None, found)), "SCRIPT_WINDOWS": str(windows)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "Agg"} | environment | given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return done.stdout


def differing(one: Path, other: Path) -> tuple[int, float]:
    """How many windows there were, and the share of their pixels that differ."""
    mine, theirs = np.load(one), np.load(other)
    shares = [
        float((np.abs(mine[name].astype(int) - theirs[name])[FIRST_ROW:].max(-1) > SAME).mean())
        for name in mine.files
        if name in theirs.files and mine[name].shape == theirs[name].shape
    ]
    return len(mine.files), float(np.mean(shares)) if shares else float("nan")


def words(printed: str) -> str:
    """Without numbers of milliseconds, which no two runs share, and with four decimals."""
    return re.sub(r"(\.\d{4})\d+", r"\1", re.sub(r"\d+(\.\d+)? *ms", "", printed))


def rows(lines: Sequence[str], mediapipe: str, pictures: str) -> Iterator[str]:
    """A row of the table for each script."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_bytes(place / "sitecustomize.py", SHIM.encode())
        ours = [sys.executable, "-m", "tflite_ort", "as", "mediapipe"]
        ways = {
            "mediapipe": ([mediapipe], {}),
            "here": (ours, {}),
            "noise": ([mediapipe], {"SCRIPT_NOISE": "1"}),
        }
        for line in lines:
            folder, *script = shlex.split(line)
            printed, failed = {}, ""
            for way, (begin, more) in ways.items():
                environment = {"SCRIPT_PICTURES": pictures, **more}
                windows = place / f"{way}.npz"
                try:
                    printed[way] = run([*begin, *script], Path(folder), place, windows, environment)
                except subprocess.SubprocessError as error:
                    failed = f"{way}: {error}"
            if failed:
                yield f"| {script[0]} | failed: {failed[:200]} | | |"
                continue
            count, share = differing(place / "here.npz", place / "mediapipe.npz")
            _, noise = differing(place / "noise.npz", place / "mediapipe.npz")
            same = words(printed["here"]) == words(printed["mediapipe"])
            told = f"{share:.5f}" if count else "same words" if same else "other words"
            yield f"| {script[0]} | {count} | {told} | {noise:.5f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mediapipe", required=True)
    parser.add_argument("--picture", action="append", required=True)
    parser.add_argument("list", type=Path)
    given = parser.parse_args()
    pictures = os.pathsep.join(str(Path(each).resolve()) for each in given.picture)
    print("| script | windows | pixels that differ | MediaPipe with noise |\n|---|---|---|---|")
    lines = [line for line in given.list.read_text().splitlines() if line.strip()]
    for row in rows(lines, given.mediapipe, pictures):
        print(row, flush=True)


if __name__ == "__main__":
    main()
