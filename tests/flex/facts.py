"""Makes the table of TensorFlow's operators, `schema/file/flex_ops.tsv`, of two files of facts::

    python -m tests.flex.facts ../shared/reference/flex_ops.json text_ops.json \\
        > schema/file/flex_ops.tsv

The second is of tf.text's operators, see `text_facts.py`: those that the first one does not have
are in a model if its author selected them. A line of the table is an operator: its name, its
family, what it is, and its inputs, outputs and attributes as JSON.
`tflite_ort.schema.file.flex_table` reads it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tflite_ort.command.flex_page import NOT_NEEDED

# The family of an operator by its kind; "" of those that no TFLite model can need.
KINDS = {
    "array movement": "movement",
    "audio": "audio",
    "comparison/logic/bits": "comparison",
    "control flow": "control_flow",
    "datasets/optional": "datasets",
    "elementwise math": "elementwise",
    "FFT/complex": "fourier",
    "gradients": "gradients",
    "hash tables": "tables",
    "images": "images",
    "linear algebra": "linear_algebra",
    "neural network": "layers",
    "optimisers": "optimizers",
    "parsing/serialising/files": "parsing",
    "quantisation": "quantization",
    "queue/stack/session/send-recv/internal/TF1 control & ref": "",
    "ragged": "ragged",
    "random": "random",
    "reductions/scans/segments": "reductions",
    "sparse": "sparse",
    "strings": "strings",
    "summary/print/assert/debug": "checks",
    "TensorArray (TF1)": "tensor_arrays",
    "TensorList / TensorMap": "lists",
    "tf.text/sentencepiece (not in wheel)": "tokenizers",
    "variables/resources": "variables",
}
# Operators that belong to another family than those of their kind, by what their names begin with.
OTHERS = {
    "CombinedNonMaxSuppression": "suppression",
    "NonMaxSuppression": "suppression",
    "CTC": "decoding",
    "DestroyResource": "tables",
    "TensorMap": "maps",
    "AvgPool": "pooling",
    "MaxPool": "pooling",
    "ExtractImagePatches": "pooling",
    "Dilation2D": "pooling",
    "Conv": "convolution",
    "DepthwiseConv2d": "convolution",
    "FusedPad": "convolution",
    "FusedResize": "convolution",
    "Placeholder": "movement",
    "Decode": "pictures",
    "EncodeJpeg": "pictures",
    "EncodePng": "pictures",
    "Diag": "diagonals",
    "MatrixDiag": "diagonals",
    "MatrixSetDiag": "diagonals",
    "BatchMatrixDiag": "diagonals",
    "BatchMatrixSetDiag": "diagonals",
    "Sentencepiece": "sentencepiece",
    **dict.fromkeys(("CaseFold", "FastBert", "FindSource", "NormalizeUTF8"), "normalization"),
    **dict.fromkeys(("Constrained", "MaxSpanning", "RougeL", "TFText>Ngrams"), "sequences"),
    "TFText>RoundRobin": "sequences",
}
# The same of gradients, and of what reads and writes files.
OTHER_GRADIENTS = dict.fromkeys(
    ("AvgPool", "Conv", "DepthwiseConv2d", "Dilation2D", "MaxPool"), "window_gradients"
)
OTHER_GRADIENTS["Ragged"] = "ragged"
OTHER_FILES = dict.fromkeys(("MergeV2Checkpoints", "Restore", "Save", "Sharded"), "checkpoints")
OTHER_FILES |= dict.fromkeys(("ReadFile", "WriteFile"), "checkpoints")
OTHER_FILES |= dict.fromkeys(("ParseSequence", "ParseSingleSequence"), "sequence_examples")
# Kinds that have others than `OTHERS`.
OWN: dict[str, dict[str, str]] = {
    "audio": {},
    "gradients": OTHER_GRADIENTS,
    "parsing/serialising/files": OTHER_FILES,
    "strings": {},
}


def family_of(name: str, facts: Mapping[str, Any]) -> str:
    """The file of a family; empty for an operator that no TFLite model can need, such as those of
    the package tf_sentencepiece, whose kernels ended with TensorFlow 1."""
    if facts["class"].startswith("6") or facts.get("list") == "sp" or name in NOT_NEEDED:
        return ""
    others = OWN.get(facts["kind"], OTHERS)
    starts = (family for start, family in others.items() if name.startswith(start))
    return next(starts, KINDS[facts["kind"]])


def argument(facts: Mapping[str, Any]) -> str:
    """Such as ``x:T``, ``indices:=int64``, ``values:T*N`` or ``values:*Ts``."""
    kind = facts.get("type_attr") or f"={facts['type']}" if "type_list_attr" not in facts else ""
    if "type_list_attr" in facts:
        kind = f"*{facts['type_list_attr']}"
    count = f"*{facts['number_attr']}" if "number_attr" in facts else ""
    return f"{facts['name']}:{kind}{count}"


def line(name: str, facts: Mapping[str, Any]) -> str:
    """One operator."""
    family = family_of(name, facts)
    marks = " ".join(mark for mark in ("stateful", "selected") if facts.get(mark))
    if not family or "inputs" not in facts:
        return "\t".join((name, family, marks, ""))
    attributes = {
        each["name"]: {
            key: each[key] for key in ("type", "default", "minimum", "allowed") if key in each
        }
        for each in facts["attributes"]
    }
    for each in attributes.values():
        if isinstance(each.get("allowed"), list):
            each["allowed"] = " ".join(each["allowed"])
    arguments = [" ".join(map(argument, facts[place])) for place in ("inputs", "outputs")]
    return "\t".join(
        (name, family, marks, json.dumps([*arguments, attributes], separators=(",", ":")))
    )


if __name__ == "__main__":
    own, text = (
        json.loads(Path(path).read_text(encoding="utf-8"))["operators"] for path in sys.argv[1:]
    )
    selected = {name: facts | {"selected": name not in own} for name, facts in text.items()}
    for name, facts in sorted((own | selected).items()):
        print(line(name, facts))
