"""What an exported file is made for: a row for each destination.

A row says how the file is written, and what must not be in it. What is written is checked against
the row, so a file for a destination is one that it reads, or is refused with the node and a way
out. `python -m tflite_ort.command.presets_page docs/exporting.md` makes the page's table of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tflite_ort.base.records import field, record
from tflite_ort.base.suggestions import suggestion
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.opsets import OPSET
from tflite_ort.opmap.onnx_graph.value_types import value_types
from tflite_ort.opmap.onnx_graph.writing.unrolled_sequences import SEQUENCES
from tflite_ort.schema import ExportError

# Forms of quantized values.
UNSIGNED, SIGNED, PAIRED = "unsigned", "signed", "paired"
FLOATS, ROUNDED, FASTEST = "floats", "rounded", "fastest"
FORMS = {
    FASTEST: (
        "uint8 inside, and weights of the type that this CPU multiplies exactly in less time; on a "
        "CPU that would saturate, ONNX Runtime fails and names the node that says so"
    ),
    UNSIGNED: "uint8 inside, exact in ONNX Runtime on every CPU",
    SIGNED: "int8 as in the model, each between QuantizeLinear and DequantizeLinear",
    PAIRED: "unsigned inside, with one scale for each tensor, and weights signed; each node "
    "between QuantizeLinear and DequantizeLinear",
    FLOATS: "none: floats, clipped to the ranges of the codes; inputs and outputs are floats too",
    ROUNDED: (
        "as *floats*, and rounded to the numbers that codes stand for; `--dequantize` leaves the "
        "rounding out, which takes time"
    ),
}
_SYMMETRIC = "give --dequantize --float-io, which write floats"
_CUT = "tflite-ort extract writes the part of the model before it, and Interpreter runs all of it"
_CELL = (
    "give --lstm-clip ignore, if the cell state of the LSTM stays within its clip, and "
    "--dequantize, if the LSTM is quantized"
)
_BATCH = "give the sizes with --shape, or --batch with a number"


@record
class Preset:
    """How a file for one destination is written.

    Args:
        reader: what reads it, as a sentence for users.
        opset: of the nodes.
        quantization: how quantized values are written, see `FORMS`.
        fixed: sizes that the model leaves open get those that it has.
        channels_first: inputs and outputs of three dimensions and more have their channels first.
        unrolled: of LSTM, GRU and RNN, those that are written step by step.
        picked_boxes: detectors pick boxes one after the other; else by NonMaxSuppression, unless
            there is none.
        rounds_wide: a network with 16-bit codes is one of rounded floats inside.
        agreeing: a tensor of codes has one scale wherever it is read.
        channel_slopes: PRelu has one slope for each channel, or is a sum.
        bounded_tanhs: Tanh and Softplus read numbers up to 20 alone.
        wide_inputs: a GRU reads two numbers in a step at least.
        squeezed_sequences: what recurrent layers of one direction make is read by a Squeeze.
        gathered_reversals: no Slice goes backwards.
        parted_mish: no node is x * tanh(softplus(x)).
        even_pads: transposed convolutions take off as much at both ends.
        even_pools: means of pools are padded as much at both ends.
        blocks_last: DepthToSpace has the places of a block behind the channels.
        no_sums: sums of codes are means times the number of their elements.
        joined_channels: channels that are added are joined, not padded.
        provider: the nodes are those of ONNX Runtime's sessions on it.
        last_reflections: the first two axes are not reflected.
        plain: weights are initializers, never computed of narrower ones.
        cpu_kernels: nodes are those that ONNX Runtime's own kernels for the CPU run fastest.
        symmetric: zero points must be 0, and biases are floats.
        never: nodes that it does not have, with what a user can do.
        never_types: element types that it does not have.
    """

    reader: str
    opset: int = OPSET
    quantization: str = UNSIGNED
    fixed: bool = False
    channels_first: bool = False
    unrolled: frozenset[str] = frozenset()
    picked_boxes: bool = False
    rounds_wide: bool = False
    agreeing: bool = False
    channel_slopes: bool = False
    bounded_tanhs: bool = False
    wide_inputs: bool = False
    squeezed_sequences: bool = False
    gathered_reversals: bool = False
    parted_mish: bool = False
    even_pads: bool = False
    even_pools: bool = False
    blocks_last: bool = False
    no_sums: bool = False
    joined_channels: bool = False
    provider: str = ""
    last_reflections: bool = False
    plain: bool = False
    cpu_kernels: bool = False
    symmetric: bool = False
    never: Mapping[str, str] = field(default_factory=dict)
    never_types: frozenset[ir.DataType] = frozenset()

    def check(self, name: str, graph: ir.Graph) -> None:
        """Refuse a graph that the destination `name` does not read.

        Raises:
            ExportError: it names the first node that is not read, and says what to do.
        """
        for node in graph.all_nodes():
            if node.op_type in self.never and not node.domain:
                advice = self.never[node.op_type] if "LSTM" in node.name else _CUT
                raise _refusal(name, node, f"is {node.op_type}", advice)
            if self.symmetric:
                self._check_zero_point(name, node)
        if self.fixed:
            for value in graph.inputs:
                if not all(isinstance(size, int) for size in value.shape or ()):
                    raise ExportError(
                        f"a file for {name} has fixed sizes, and those of the input "
                        f"{value.name!r} are open: {_BATCH}"
                    )
        self._check_types(name, graph)

    def _check_zero_point(self, name: str, node: ir.Node) -> None:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or len(node.inputs) < 3:
            return
        zero = node.inputs[2]
        if zero is None or zero.const_value is None or not zero.const_value.array.any():
            return
        raise _refusal(name, node, f"has the zero point {_first(zero.const_value)}", _SYMMETRIC)

    def _check_types(self, name: str, graph: ir.Graph) -> None:
        if not self.never_types:
            return
        types = value_types(graph)
        for node in graph.all_nodes():
            for value in node.outputs:
                kind = types.get(id(value))
                if kind in self.never_types:
                    raise _refusal(name, node, f"is of {ir.DataType(kind).name}", _CUT)


def _first(zero: ir.Tensor) -> int:
    """The first zero point that is not 0."""
    codes = zero.array.reshape(-1)
    return int(codes[codes != 0][0])


def _refusal(name: str, node: ir.Node, what: str, advice: str) -> ExportError:
    """The error for a node that a destination does not read."""
    return ExportError(
        f"a file for {name} cannot be written: the node {node.name!r} {what}; {advice}"
    )


_NO_BODIES = dict.fromkeys(("If", "Loop", "Scan"), _CELL)
_NO_DFT = {"DFT": _CUT}
# What picks boxes; how many there are depends on data.
SELECTION = "NonMaxSuppression"
_NO_COUNTS = {SELECTION: _CUT}
# ONNX Runtime makes QuantizeLinear nodes of int8 codes that it refuses itself from opset 21 on.
_SAFE = 20
_DOUBLE = frozenset({ir.DataType.DOUBLE})

_DEFAULT = Preset("All.")
PRESETS: Mapping[str, Preset] = {
    "onnxruntime": Preset(
        "ONNX Runtime on CPUs of this kind: the graph that `Interpreter` runs here. It may have "
        "nodes of ONNX Runtime's own domain, com.microsoft.",
        quantization=FASTEST,
        cpu_kernels=True,
    ),
    "mobile": Preset(
        "ONNX Runtime on phones: the file converts to `.ort`.",
        opset=_SAFE,
        quantization=SIGNED,
        plain=True,
    ),
    "web": Preset("ONNX Runtime Web. The kernels of wasm are those of the CPU."),
    "triton": Preset("Triton's back end for ONNX Runtime; `tflite-ort triton` writes all of it."),
    "openvino": Preset(
        "OpenVINO. It multiplies in 8 bits only if the weights are signed. Networks with 16-bit "
        "codes are rounded floats inside.",
        opset=19,
        quantization=SIGNED,
        provider="OpenVINOExecutionProvider",
        rounds_wide=True,
        parted_mish=True,
        no_sums=True,
        plain=True,
    ),
    "qnn": Preset(
        "Qualcomm's NPU, by ONNX Runtime's provider. It takes no open sizes.",
        opset=_SAFE,
        quantization=PAIRED,
        fixed=True,
        plain=True,
        never=_NO_BODIES | _NO_DFT | _NO_COUNTS,
        never_types=_DOUBLE,
    ),
    "tensorrt": Preset(
        "TensorRT. It takes no zero points but 0, so a quantized model must be symmetric.",
        opset=19,
        quantization=SIGNED,
        agreeing=True,
        plain=True,
        symmetric=True,
        never=_NO_DFT,
        never_types=_DOUBLE,
    ),
    # Its softmax of codes gives the highest code for all of them.
    "tract": Preset(
        "tract, in Rust.",
        opset=17,
        quantization=ROUNDED,
        wide_inputs=True,
        plain=True,
        never=dict.fromkeys(("If", "Loop"), _CELL) | _NO_DFT,
        never_types=_DOUBLE,
    ),
    "opencv": Preset(
        "OpenCV's module `dnn`.",
        opset=17,
        quantization=ROUNDED,
        fixed=True,
        gathered_reversals=True,
        unrolled=frozenset({"RNN"}),
        picked_boxes=True,
        channel_slopes=True,
        bounded_tanhs=True,
        even_pads=True,
        plain=True,
        never=_NO_BODIES | {"RNN": _CUT},
        never_types=_DOUBLE,
    ),
    "torch": Preset(
        "PyTorch, by onnx2torch.",
        opset=17,
        quantization=ROUNDED,
        unrolled=SEQUENCES,
        even_pads=True,
        even_pools=True,
        blocks_last=True,
        last_reflections=True,
        plain=True,
        never=_NO_BODIES | _NO_DFT,
    ),
    "coreml": Preset(
        "Core ML, by onnx2torch and coremltools.",
        opset=17,
        quantization=FLOATS,
        fixed=True,
        gathered_reversals=True,
        unrolled=SEQUENCES,
        even_pads=True,
        even_pools=True,
        blocks_last=True,
        last_reflections=True,
        plain=True,
        never=_NO_BODIES | _NO_DFT | _NO_COUNTS,
        never_types=_DOUBLE,
    ),
    "ncnn": Preset(
        "ncnn, by pnnx. Pictures have their channels first.",
        opset=17,
        quantization=FLOATS,
        fixed=True,
        channels_first=True,
        squeezed_sequences=True,
        even_pads=True,
        joined_channels=True,
        plain=True,
        never=_NO_BODIES | _NO_DFT | _NO_COUNTS,
        never_types=_DOUBLE,
    ),
    "mnn": Preset(
        "MNN, by its converter.",
        opset=17,
        quantization=ROUNDED,
        fixed=True,
        plain=True,
        never=_NO_DFT,
        never_types=_DOUBLE,
    ),
    "tvm": Preset(
        "Apache TVM.",
        opset=17,
        quantization=ROUNDED,
        fixed=True,
        unrolled=SEQUENCES,
        plain=True,
        never=_NO_BODIES | _NO_DFT | _NO_COUNTS,
    ),
    "iree": Preset(
        "IREE.",
        opset=17,
        quantization=ROUNDED,
        fixed=True,
        even_pads=True,
        plain=True,
        never=_NO_COUNTS,
    ),
}


def preset_of(name: str | None) -> Preset:
    """The row of a destination; None for a file that is for no one more than for others.

    Raises:
        ValueError: there is no such destination; the message lists all.
    """
    if name is None:
        return _DEFAULT
    if name not in PRESETS:
        there = ", ".join(PRESETS)
        raise ValueError(f"for_ must be one of {there}, got {name!r}{suggestion(name, PRESETS)}")
    return PRESETS[name]


def _recurrent(row: Preset) -> str:
    steps = "steps" if row.unrolled == SEQUENCES else f"nodes; {', '.join(row.unrolled)} in steps"
    return steps if row.unrolled else "nodes"


def columns(name: str) -> dict[str, str]:
    """What the row of a destination says, as the help and the page tell it."""
    row = PRESETS[name]
    refused = [*row.never, *(kind.name.lower() for kind in sorted(row.never_types))]
    told: dict[str, Any] = {
        "name": name,
        "opset": row.opset,
        "quantized values": row.quantization,
        "open sizes": "fixed" if row.fixed else "stay open",
        "recurrent layers": _recurrent(row),
        "layout": "channels first" if row.channels_first else "as in the model",
        "never": ", ".join([*refused, *(["zero points but 0"] if row.symmetric else [])]) or "-",
        "read by": row.reader,
    }
    return {key: str(value) for key, value in told.items()}
