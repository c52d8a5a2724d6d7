"""SentencePiece's operators read the model itself, which the node of the handle has."""

from __future__ import annotations

import numpy as np

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.flex.rewriting import Site, rewriting
from tflite_ort.schema.values.flex import node_from

_SOURCE = "SentencepieceOp"


@rewriting(
    "SentencepieceDetokenizeOp",
    "SentencepieceIdToStringOp",
    "SentencepieceStringToIdOp",
    "SentencepieceTokenizeOp",
    "SentencepieceTokenizeWithOffsetsOp",
    "SentencepieceVocabSizeOp",
    stays=True,
)
def by_model(site: Site) -> bool:
    """The bytes of the model in the place of the handle. A handle that another subgraph made is of
    the only model that there is."""
    own, all = _models(site)
    content = own.get(site.input("sp_handle"))
    if content is None and len(all) == 1:
        (content,) = all
    if content is None:
        return False
    model = site.add_constant(np.frombuffer(content, np.uint8), np.uint8)
    site.stay([model, *site.inputs[1:]], site.outputs)
    return True


def _models(site: Site) -> tuple[dict[int, bytes], set[bytes]]:
    """The models by the handles of the subgraph, and those of all subgraphs."""
    own, found = dict[int, bytes](), set[bytes]()
    model = site.drafts.model
    for number, graph in enumerate(model.subgraphs):
        for operator in graph.operators:
            name = model.operator_codes[operator.opcode_index].custom_code or ""
            if name != PREFIX + _SOURCE:
                continue
            try:
                told = node_from(name, name, operator.custom_options)["model"]
            except ModelError:  # told when its subgraph is made ready
                continue
            content: bytes = told.encode("utf-8", "surrogateescape")
            found.add(content)
            if number == site.subgraph:
                own.update(dict.fromkeys(operator.outputs, content))
    return own, found
