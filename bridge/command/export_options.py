"""The options of the verb ``export``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tflite_ort.command.arguments import Hybrid
from tflite_ort.command.terminal import new_console, new_table
from tflite_ort.export.presets import PRESETS, columns, preset_of
from tflite_ort.opmap.onnx_graph.opsets import IR_VERSIONS


class Weights(StrEnum):
    """How an exported file stores quantized weights."""

    UINT8 = "uint8"
    INT8 = "int8"


class LstmClip(StrEnum):
    """What becomes of the clip of the cell states of LSTMs."""

    KEEP = "keep"
    IGNORE = "ignore"


class CustomOps(StrEnum):
    """What becomes of custom operators without a translation."""

    DOMAIN = "domain"


def _destination(name: str | None) -> str | None:
    """The name of a row of `PRESETS`; ``help`` prints them.

    Raises:
        Exit: they are printed.
    """
    if name == "help":
        told = [columns(each) for each in PRESETS]
        table = new_table(*told[0])
        for row in told:
            table.add_row(*row.values())
        new_console().print(table)
        raise typer.Exit
    try:
        preset_of(name)
    except ValueError as error:
        text = str(error).removeprefix("for_ ")
        raise typer.BadParameter(text, param_hint="--for") from error
    return name


For = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="NAME",
        help="What reads the file: the form of the file is what that needs. --for help lists all.",
        is_eager=True,
        callback=_destination,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SIZES",
        help="An input's shape, as image=batch,224,224,3: a name or ? leaves a size open.",
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|NUMBER",
        help="Put a batch in front of every input and output: of a size with this name, or of "
        "this number.",
    ),
]
CustomOpsOption = Annotated[
    CustomOps | None,
    typer.Option(
        help="domain: write what has no translation as nodes of the domain tflite.custom."
    ),
]


WeightsOption = Annotated[
    Weights | None,
    typer.Option(
        help="Type of quantized weights; int8 as some accelerators need it. Without, uint8 or as "
        "--for needs it."
    ),
]
ExportHybrid = Annotated[
    Hybrid | None,
    typer.Option(
        "--hybrid",
        help="How floats meet integer weights, as of run; without, float, or as --for needs it.",
    ),
]
Out = Annotated[
    str | None,
    typer.Argument(
        metavar="OUT",
        help="The file to write, or a folder for it; without, MODEL with suffix .onnx; - is "
        "standard output. Of a bundle, and of all signatures, a folder.",
    ),
]
AllSignatures = Annotated[
    bool,
    typer.Option("--all-signatures", help="Write a file for each signature, into the folder OUT."),
]
Opset = Annotated[
    int | None,
    typer.Option(
        min=min(IR_VERSIONS),
        max=max(IR_VERSIONS),
        help="ONNX opset of the nodes; without, 21 or that of --for.",
    ),
]
Dequantize = Annotated[
    bool,
    typer.Option(
        "--dequantize", help="Floats in place of quantized values, clipped to their ranges."
    ),
]
FloatIo = Annotated[
    bool, typer.Option("--float-io", help="Floats for quantized inputs and outputs.")
]
Float16 = Annotated[
    bool, typer.Option("--float16", help="16-bit floats inside; inputs and outputs stay.")
]
Nchw = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="An input or output with its channels first; repeatable."),
]
Rename = Annotated[
    list[str] | None,
    typer.Option(metavar="OLD=NEW", help="Give an input or output another name; repeatable."),
]
LstmClipOption = Annotated[
    LstmClip,
    typer.Option(
        help="ignore: leave the clip of LSTM cell states out, which most models never reach: then "
        "each LSTM is one node."
    ),
]
StateDefaults = Annotated[
    bool,
    typer.Option(
        "--state-defaults",
        help="Let a run that is not fed a state start it; ONNX Runtime warns of such files.",
    ),
]
ExternalData = Annotated[
    bool,
    typer.Option("--external-data", help="Write the weights into a file of their own, OUT.data."),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact", help="Compute 16-bit activations exactly as TFLite does, in more nodes."
    ),
]
Stateful = Annotated[
    bool | None,
    typer.Option(
        "--stateful/--stateless",
        help="Variables as inputs and outputs, or every run starts from their first values; "
        "without, --stateless if only layers over sequences have variables.",
    ),
]
Decode = Annotated[
    bool, typer.Option("--decode", help="Let the graph end in boxes, landmarks, masks or classes.")
]
DecodeInputs = Annotated[
    bool,
    typer.Option(
        "--decode-inputs",
        help="Let each run of a decoded file say min_score, roi and the like; ONNX Runtime warns "
        "of such inputs.",
    ),
]
ImageInput = Annotated[
    bool,
    typer.Option(
        "--image-input", help="--decode, and let the graph begin at a picture of any size."
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Names of the classes, as run takes them; the file has them in its metadata.",
    ),
]
Check = Annotated[
    bool,
    typer.Option("--check", help="Run the file beside the interpreter; exit code 4 if it is off."),
]
