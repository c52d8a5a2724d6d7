"""How far real models are from the budgets: the largest amount of each over many models.

    python benchmarks/budgets.py [MODEL_OR_FOLDER...]

Every model is opened, allocated and read for its metadata; one that does not load is named.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from tflite_ort import BridgeError, Budgets, Interpreter

SHARED = Path(__file__).parents[2] / "shared"
MODELS = [Path(os.environ.get("TFLITE_ORT_MODELS") or SHARED / "models"), SHARED / "models2"]
_UNLIMITED = 1 << 62


def used_by(model: Path) -> dict[str, int]:
    """The largest amount of each budget that one model asks for."""
    used: dict[str, int] = {}
    budgets = Budgets(**dict.fromkeys(Budgets.names(), _UNLIMITED), used=used)
    try:
        with Interpreter(model, budgets=budgets) as interpreter:
            interpreter.allocate_tensors()
            _ = interpreter.metadata
    except BridgeError as error:
        print(f"{model.name}: {str(error).splitlines()[0][:100]}")
    return used


def models_in(given: list[Path]) -> Iterator[Path]:
    """The models, and those in the folders."""
    for path in given:
        yield from sorted(path.rglob("*.tflite")) if path.is_dir() else [path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*", default=MODELS)
    warnings.simplefilter("ignore")
    largest: dict[str, tuple[int, str]] = {}
    models = list(models_in(parser.parse_args().models))
    for model in models:
        for name, amount in used_by(model).items():
            largest[name] = max(largest.get(name, (0, "")), (amount, model.name))
    print(f"{len(models)} models")
    print(f"{'budget':18} {'default':>12} {'largest':>12}  of")
    for name in Budgets.names():
        amount, of = largest.get(name, (0, ""))
        print(f"{name:18} {getattr(Budgets(), name):12} {amount:12}  {of}")


if __name__ == "__main__":
    main()
