"""What a verification costs: its time, and its peak memory beside that of one invoke.

    python benchmarks/verify_cost.py [MODEL...]

Two processes are compared. One loads the model and invokes it once; the other verifies it in the
interpreter and as an exported file. Peak is the resident memory of the whole process, growth is the
peak less what the process has after its imports. LiteRT runs in a process of its own, whose peak is
listed too. Linux only. Models: by default MobileNet V2 of $TFLITE_ORT_MODELS, else
../shared/models.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

MODELS = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)
_HEAD = """
import json, resource, sys, time
from tflite_ort import Interpreter, verify
from tflite_ort.comparison.drawn import random_inputs
def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
before, started = status("VmRSS"), time.perf_counter()
"""
_TAIL = """
print(json.dumps({
    "peak": status("VmHWM"), "growth": status("VmHWM") - before,
    "seconds": time.perf_counter() - started,
    "litert": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
}))
"""
_INVOKE = """
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
for index, array in random_inputs(interpreter.get_input_details(), 0).items():
    interpreter.set_tensor(index, array)
interpreter.invoke()
"""
_VERIFY = """
verify(sys.argv[1])
"""


def measured(body: str, model: Path) -> dict[str, float]:
    """Seconds, and MiB, of a process of its own."""
    command = [sys.executable, "-c", _HEAD + body + _TAIL, str(model)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = MODELS / "tflite-support__mobilenet_v2_1.0_224_quant.tflite"
    parser.add_argument("models", nargs="*", type=Path, default=[default], metavar="MODEL")
    for model in parser.parse_args().models:
        one, all_ = measured(_INVOKE, model), measured(_VERIFY, model)
        print(f"{model.stem}: verified in {all_['seconds']:.1f} s")
        for key in ("peak", "growth"):
            times = all_[key] / one[key]
            print(f"  {key}: {one[key]:.0f} MiB to invoke, {all_[key]:.0f} to verify: {times:.2f}")
        print(f"  LiteRT's process: {all_['litert']:.0f} MiB")


if __name__ == "__main__":
    main()
