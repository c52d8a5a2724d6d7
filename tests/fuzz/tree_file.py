"""Mutations of what stands around the graphs: external data, signatures, metadata, bytes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from tests.fuzz import edges
from tests.fuzz.tree import Unfit, operator_at, pick, tensor_at, with_operator, with_tensor
from tflite_ort.schema import Buffer, ExternalBuffer, ExternalBufferGroup, Model
from tflite_ort.schema.file.model import Metadata, SignatureDef, TensorMap

_METADATA = ("min_runtime_version", "TFLITE_METADATA", "CONVERSION_METADATA", "buffer_location", "")


def external(draw: random.Random, model: Model) -> Model:
    """A tensor whose data stand in another file."""
    graph, number, _ = tensor_at(draw, model)
    groups = (*model.external_buffer_groups, ExternalBufferGroup(name=draw.choice(edges.TEXTS)))
    buffer = ExternalBuffer(
        id=draw.choice((0, 1, 1, 2, 2**32 - 1)),
        group=draw.choice((0, len(groups) - 1, len(groups), 2**32 - 1)),
        offset=draw.choice((0, 0, 1, 4, 2**31, 2**63, 2**64 - 1)),
        length=draw.choice((0, 4, 16, 2**31, 2**63, 2**64 - 1)),
        packing=draw.choice(("", "", "x")),
    )
    model = replace(
        model, external_buffer_groups=groups, external_buffers=(*model.external_buffers, buffer)
    )
    emptied = {"buffer": 0} if draw.random() < 0.7 else {}
    return with_tensor(model, graph, number, external_buffer=buffer.id, **emptied)


def signature(draw: random.Random, model: Model) -> Model:
    """A signature of a subgraph, with odd names or tensors."""
    number = pick(draw, range(len(model.subgraphs)))
    graph = model.subgraphs[number]

    def maps(indices: tuple[int, ...]) -> tuple[TensorMap, ...]:
        odd = draw.random() < 0.2
        return tuple(
            TensorMap(
                name=draw.choice(edges.TEXTS) if odd else f"n{i}",
                tensor_index=draw.choice((0, 1, 99, 2**32 - 1)) if odd else index % 2**32,
            )
            for i, index in enumerate(indices)
        )

    new = SignatureDef(
        inputs=maps(graph.inputs),
        outputs=maps(graph.outputs),
        signature_key=draw.choice(edges.TEXTS),
        subgraph_index=number if draw.random() < 0.8 else draw.choice((1, 2, 2**32 - 1)),
    )
    return replace(model, signature_defs=(*model.signature_defs, new))


def metadata(draw: random.Random, model: Model) -> Model:
    """An entry of metadata."""
    texts = (b"1.5.0\0", b"9.9.9", b"\xff\xfe", b"PK\x03\x04", b"", draw.randbytes(40))
    buffers = (*model.buffers, Buffer(data=np.frombuffer(draw.choice(texts), np.uint8)))
    at = len(buffers) - 1 if draw.random() < 0.8 else draw.choice((0, 1, len(buffers), 2**32 - 1))
    entry = Metadata(name=draw.choice(_METADATA), buffer=at)
    return replace(model, buffers=buffers, metadata=(*model.metadata, entry))


def custom_options(draw: random.Random, model: Model) -> Model:
    """Bytes of an operator's own options."""
    graph, number, operator = operator_at(draw, model)
    old = operator.custom_options
    if old is None or not old.size:
        if draw.random() < 0.9:
            raise Unfit
        data = bytearray(draw.randbytes(draw.choice((0, 1, 3, 24))))
    else:
        data = bytearray(old.tobytes())
        for _ in range(draw.choice((1, 1, 2, 4))):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 4, 127, 128, 255))
        data = data[: draw.choice((len(data), len(data), len(data), len(data) // 2))]
    array = np.frombuffer(bytes(data), np.uint8)
    return with_operator(model, graph, number, custom_options=array)


def share_buffer(draw: random.Random, model: Model) -> Model:
    """A tensor that takes the data of another, or of no buffer that exists."""
    graph, number, _ = tensor_at(draw, model)
    count = len(model.buffers)
    buffer = draw.randrange(max(1, count)) if draw.random() < 0.85 else draw.choice((count, 2**31))
    return with_tensor(model, graph, number, buffer=buffer)
