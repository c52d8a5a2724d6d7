"""TensorFlow's checkpoints and files: what reads and writes one is told which ones a user names.

A model may name files on its own, and so could one that somebody has made to do harm. So each
operator gets the texts that the model is given as further inputs: a file that none of them names is
refused. These operators also keep their order: each gives a number to the next.
"""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.flow import called_subgraphs
from tflite_ort.schema.file.model import Model
from tflite_ort.schema.flex.rewriting import Site, rewriting


@rewriting(
    *("MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2", "Save", "SaveSlices", "SaveV2"),
    *("ReadFile", "WriteFile"),
    stays=True,
)
def files(site: Site) -> bool:
    """The operator itself, with the texts that the model is given, and the number of the one
    before; it gives one more."""
    turns, given = site.drafts.turns, _user_texts(site)
    before, turn = turns.get(site.subgraph), site.add_tensor(TensorType.INT32)
    turns[site.subgraph] = turn
    site.stay([*site.inputs, *given, *([] if before is None else [before])], [*site.outputs, turn])
    return True


def _user_texts(site: Site) -> list[int]:
    """The texts that a user gives to the subgraph: none that the file has, or an operator makes."""
    model = site.drafts.model
    if _is_called(model, site.subgraph):
        return []
    graph = model.subgraphs[site.subgraph]
    made = {index for operator in graph.operators for index in operator.outputs}
    texts = [index for index in graph.inputs if site.type(index) is TensorType.STRING]
    return [index for index in texts if index not in made and site.constant(index) is None]


def _is_called(model: Model, subgraph: int) -> bool:
    """Whether an operator gives the inputs of a subgraph, and not a user."""
    return any(
        index == subgraph
        for graph in model.subgraphs
        for operator in graph.operators
        if operator.options is not None
        and model.operator_codes[operator.opcode_index].builtin_code is not Op.CUSTOM
        for _, index in called_subgraphs(operator.options)
    )
