"""What the first size of an input of the file counts."""

from __future__ import annotations

from tflite_ort.schema import Model
from tflite_ort.schema.values.operators import INPUTS

# What sequences are called among the inputs of operators.
SEQUENCES = frozenset({"input", "aux_input"})


def has_one_sample(model: Model, subgraph: int, index: int) -> bool:
    """Whether the first size of an input is that of one sample: it is 1, the file does not leave it
    open, and it does not count the steps of a sequence."""
    tensor = model.subgraphs[subgraph].tensors[index]
    if tensor.shape[:1] != (1,) or (tensor.shape_signature or (1,))[0] == -1:
        return False
    return not _has_time_first(model, subgraph, index)


def _has_time_first(model: Model, subgraph: int, index: int) -> bool:
    """Whether an operator reads a tensor as a sequence whose first axis is time."""
    for operator in model.subgraphs[subgraph].operators:
        if getattr(operator.options, "time_major", False):
            code = model.operator_codes[operator.opcode_index].builtin_code
            named = zip(INPUTS[code].names, operator.inputs, strict=False)
            if any(name in SEQUENCES and at == index for name, at in named):
                return True
    return False
