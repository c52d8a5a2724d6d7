"""What the first size of an input of the file counts, and which sizes the file leaves open."""

from __future__ import annotations

from collections.abc import Collection

from tflite_ort.schema import Model
from tflite_ort.schema.values.operators import INPUTS
from tflite_ort.schema.values.sizes import Shape, is_known, unknown_size

# What sequences are called among the inputs of operators.
SEQUENCES = frozenset({"input", "aux_input"})
# What an open first size of a signature is called.
BATCH = "batch"


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


def left_open(model: Model, given: Collection[str], *, of_sample: bool) -> dict[int, Shape]:
    """The shapes of inputs whose signatures leave sizes open.

    Args:
        given: names of inputs that are left out.
        of_sample: a leading 1 is where a batch has its samples, and stays.
    """
    graph, shapes = model.subgraphs[0], dict[int, Shape]()
    leads = dict[int, int]()
    for index in graph.inputs:
        tensor = graph.tensors[index]
        signature = tensor.shape_signature or ()
        if of_sample and tensor.shape[:1] == (1,):
            signature = (1, *signature[1:])
        # TFLite does not look at a signature; its own converter writes none of another rank.
        named = tensor.name in given
        if not named and len(signature) == len(tensor.shape) and -1 in signature:
            shapes[index] = _open(tensor.shape, signature, leads)
    return shapes


def _open(shape: Shape, signature: Shape, leads: dict[int, int]) -> Shape:
    """`shape`, but for what the signature leaves open; other sizes there mean nothing to TFLite.

    Args:
        leads: open first sizes, by what the file says of them: those that differ in the file are
            no batch of the same samples.
    """
    pairs = zip(shape, signature, strict=True)
    opened = [unknown_size() if given == -1 else size for size, given in pairs]
    if not is_known(opened[0]):
        opened[0] = leads.setdefault(shape[0], unknown_size("" if leads else BATCH))
    return tuple(opened)
