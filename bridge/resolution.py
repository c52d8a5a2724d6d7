"""Every (operator, version) of a model is known, or all that are not are refused at once."""

from __future__ import annotations

from collections import Counter

from tflite_ort.fallback_kernels import Kernel
from tflite_ort.opmap import Translator
from tflite_ort.schema import Model, Op, UnknownOperator, UnsupportedVersion
from tflite_ort.versioning.registry import Registry


def check_operators(
    model: Model, translators: Registry[Translator], kernels: Registry[Kernel]
) -> None:
    """Raise one error that lists every operator with neither translator nor kernel.

    As in TFLite, an entry of the model's operator codes counts even if no operator uses it.

    Raises:
        UnsupportedVersion: of known operators, some in a version that is not known.
        UnknownOperator: nothing is registered for some of the operators.
    """
    uses = Counter(op.opcode_index for graph in model.subgraphs for op in graph.operators)
    lines, unknown = [], False
    for i, code in enumerate(model.operator_codes):
        op, version = code.builtin_code, code.version
        if translators.find(op, version) or kernels.find(op, version):
            continue
        known = sorted({*translators.versions(op), *kernels.versions(op)})
        unknown = unknown or not known
        if op is Op.CUSTOM:
            lines.append(f"  Encountered unresolved custom op: {code.custom_code}. ({uses[i]}x)")
            continue
        text = f"known: versions {known[0]} to {known[-1]}" if known else "no version is known"
        lines.append(f"  builtin opcode '{op.name}' version '{version}' ({uses[i]}x): {text}")
    if lines:
        kind = UnknownOperator if unknown else UnsupportedVersion
        raise kind(
            "Didn't find op for:\n"
            + "\n".join(lines)
            + "\nThe model needs a newer tflite-ort, or to be converted without these operators."
        )
