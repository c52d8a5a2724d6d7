"""Kinds of networks, and the facts by which a network's kind is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import Projection
from tflite_ort.decode.nodes import Nodes
from tflite_ort.decode.picture_input import PictureInput, picture_layout, prepared
from tflite_ort.decode.pixel_range import pixel_range
from tflite_ort.schema import Model, Op, SubGraph
from tflite_ort.schema.file.model_metadata import SubGraphMetadata, TensorMetadata

Shape = tuple[int, ...]
# Operators that leave values as they are, except for rounding.
_FORMS = frozenset({Op.DEQUANTIZE, Op.QUANTIZE, Op.RESHAPE, Op.SQUEEZE})
# A network that says what belongs to which class, or to a point of the picture.
SEGMENTATION, INTERACTIVE = "segmentation", "interactive segmentation"
# Writes the nodes after a network, given the names of its outputs.
Build = Callable[[Nodes, list[str], Projection], Outputs]
# Writes the nodes that make its inputs, given their names, from other inputs.
Begin = Callable[[Nodes, list[str]], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a network is, and what comes before and after it.

    Args:
        name: such as ``"hand landmarks"``.
        build: writes the nodes after it.
        preparation: how a picture becomes its input; None where that is no picture.
        facts: what is told of it besides, as JSON.
        begin: writes the nodes before it; None where a decoded network begins at its own inputs.
        classes: how many classes its scores are of; 0 where that is not known.
    """

    name: str
    build: Build
    preparation: PictureInput | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    begin: Begin | None = None
    classes: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """What a kind is told by."""

    model: Model
    told: SubGraphMetadata
    labels: tuple[str, ...]
    wanted: str = ""

    @property
    def described(self) -> Sequence[TensorMetadata]:
        """What is said of the inputs."""
        return self.told.input_tensor_metadata

    @property
    def graph(self) -> SubGraph:
        return self.model.subgraphs[0]

    @property
    def input(self) -> Shape:
        return tuple(self.graph.tensors[self.graph.inputs[0]].shape)

    @property
    def outputs(self) -> list[Shape]:
        return [tuple(self.graph.tensors[index].shape) for index in self.graph.outputs]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(math.prod, self.outputs))

    @property
    def channels(self) -> int:
        """How many its picture has: three colours, and a fourth one of what a user points at. In
        MediaPipe the network for hair has that one too."""
        finds_hair = self.wanted == SEGMENTATION and self.labels[1:] == ("hair",)
        return 4 if self.wanted == INTERACTIVE or finds_hair else 3

    @property
    def picture(self) -> tuple[int, int] | None:
        """Height and width of an input that is such a picture."""
        layout = picture_layout(self.input) if len(self.input) == 4 else None
        if (
            layout is None
            or layout.channels != self.channels
            or self.input[0] != 1
            or min(self.input) <= 0
        ):
            return None
        return layout.height, layout.width

    def read_by_heads(self, outputs: int) -> list[int]:
        """The input channels of the 1 x 1 convolutions that have so many output channels."""
        shapes = [tuple(tensor.shape) for tensor in self.graph.tensors]
        heads = {shape[3] for shape in shapes if len(shape) == 4 and shape[:3] == (outputs, 1, 1)}
        return sorted(heads)

    def last(self) -> str:
        """The operator that makes the first output; of a custom one its name. Empty for none."""
        return self.maker(0) if self.outputs else ""

    def maker(self, output: int) -> str:
        """The operator that makes the values of an output, whatever form they get after it; of a
        custom one its name."""
        wanted = self.graph.outputs[output]
        for op in reversed(self.graph.operators):
            if wanted in op.outputs:
                code = self.model.operator_codes[op.opcode_index]
                if code.builtin_code in _FORMS and op.inputs and op.inputs[0] is not None:
                    wanted = op.inputs[0]
                    continue
                custom = code.builtin_code is Op.CUSTOM and code.custom_code
                return custom or code.builtin_code.name
        return ""

    def prepared(
        self,
        default: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
        known_as: str = "",
    ) -> PictureInput | None:
        """How a picture becomes the input; None where it takes no such picture.

        Args:
            default, known_as: as of `pixel_range`.
        """
        if self.picture is None:
            return None
        index = int(self.graph.inputs[0])
        told = self.described[0] if self.described else None
        found = pixel_range(self.model, 0, index, told, default, known_as)
        how = prepared(self.graph.tensors[index], found)
        return None if how is None else replace(how, height=self.picture[0], width=self.picture[1])
