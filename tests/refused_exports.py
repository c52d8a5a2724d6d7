"""Which operators the interpreter runs in numpy while an export refuses them.

    python -m tests.refused_exports

A small model of each operator, for each element type of its data: see `samples`. A row has the
operator, the types of which the export is refused, and the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tests.one_op import ours
from tests.samples import SAMPLES, sample, types
from tflite_ort import BridgeError, ExportError, export_onnx

Reasons = Mapping[tuple[str, str], Sequence[str]]


def refused() -> Reasons:
    """The types, by operator and reason."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for op in SAMPLES:
        for type in types(op):
            model, feeds = sample(op, type)
            try:
                ours(model, feeds)
            except BridgeError:
                continue
            try:
                export_onnx(model, stateful=True)
            except ExportError as error:
                found[op.name, _reason(error)].append(type.name)
    return found


def _reason(error: ExportError) -> str:
    """What the second line says of the operator, without the types, which differ."""
    line = str(error).splitlines()[1]
    return line.partition(": ")[2]


def main() -> None:
    for (op, reason), names in sorted(refused().items()):
        print(f"{op:28} {', '.join(names):24} {reason}")


if __name__ == "__main__":
    main()
