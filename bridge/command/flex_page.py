"""Makes docs/flex.md: ``python -m tflite_ort.command.flex_page > docs/flex.md``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tflite_ort.fallback_kernels import custom_kernel
from tflite_ort.opmap import custom_translator
from tflite_ort.schema.file import flex_table
from tflite_ort.schema.flex.rewriting import is_replaced
from tflite_ort.schema.values.operators import FLEX

_HEAD = """# TensorFlow's operators (Flex)

A model that was converted with `SELECT_TF_OPS` has TensorFlow's own operators, as custom operators
called `Flex<name>`. They run here without TensorFlow and without a resolver, and `export_onnx`
exports those that ONNX can say. `tflite-ort inspect MODEL` and `Interpreter.delegation()` show
where each runs.

```python
from tflite_ort import Interpreter, export_onnx

interpreter = Interpreter("model.tflite")
export_onnx("model.tflite", "model.onnx")
```

A refusal names the operator, the type or the attribute that is missing. An operator that is not
here yet can be [registered](custom_operators.md); what you register comes first.

## How they run

- **As TFLite's own operators.** Where one or a few of TFLite's operators compute the same, they
  take its place when the model is opened. They have all that TFLite's operators have: kernels,
  translations, patterns. They take more types than in a TFLite file.
- **With a kernel of their own**, in numpy, and most with a translation to ONNX. ONNX Runtime has
  many nodes for float, double, int32 and int64 alone. Integers of other sizes are computed in a
  wider type and wrap; 16-bit floats are computed in 32 bits and rounded once, as in TensorFlow.
- **Lists** (`TensorList`), in which Keras' RNNs, `map_fn`, `scan` and `TensorArray` keep what each
  iteration makes, become tensors with one dimension more before anything is translated. So an LSTM
  with an open batch becomes one LSTM node of ONNX, as one with batch 1 does. All elements of a
  list have to have one shape. A list of lists, or one that enters or leaves the model, is refused.
  `TensorArrayV3` and its kind become lists too.
- **Tables** that change are variables that hold a table. Maps, ragged tensors and optional values
  that are one value are such in numpy alone.
- **Datasets** that are made and reduced in the model become loops. A batch has to be of elements
  whose shapes the file tells.
- **Random numbers** that follow from seeds alone are TensorFlow's, bit for bit, in exports too;
  those of gamma and Poisson distributions do not export.
- **Variables**: an optimizer, and what else changes a variable, is computed from what the variables
  hold, and what it gives is assigned to them. **Checkpoints** are TensorFlow's own, of files that
  the model is given as an input: see [training](training.md). Other files are read and written in
  the same way.
- **tf.text**: tokenizers, normal forms and SentencePiece, in numpy. Scripts and marks of sentences
  (`regex`), and SentencePiece, in a process of its own, need `pip install 'tflite-ort[text]'`.
  Operators that the Flex delegate allows only by `experimental_select_user_tf_ops` run too. The
  [WellKnownOpResolver](custom_operators.md) has those that stayed custom operators of TFLite.

The node that a model has for an operator is held against TensorFlow's definition (of TensorFlow
2.21): inputs, outputs, types and attributes. An attribute that the definition does not have is
refused, unless its name begins with `_`.

`Assert`, `Print` and `PrintV2` check and print in the interpreter. An exported file has no nodes
for them, nor for the texts that only they read: it neither checks nor prints.

An exported file takes and gives texts of UTF-8 alone. It replaces single characters of ASCII, or
runs of them, as `TextVectorization` does, and no other matches of regular expressions. Inverses,
factors and triangular solves are loops of ONNX nodes in an exported file; the interpreter leaves
them to numpy.

Models whose file leaves the batch open run with `batch=` as they are, if no operator mixes samples
([batches](batches.md)).

## How close

Each case of `tests/flex` has the answer of TensorFlow 2.18.1, the last one with a Flex delegate:
integers and texts are equal, float32 within 2e-6 of the largest. `.ci/flex` asks TensorFlow anew.
Known differences:

- tf.text 2.18.1 has Unicode 12.1. Here characters are what Python's `unicodedata` and `regex` say,
  which know later ones.
- What `SentencepieceTokenizeOp` draws (`nbest_size` other than 0 and 1) is drawn anew each time.
- `NormalizeUTF8WithOffsetsMap` gives its texts; nothing reads its map.
- TensorFlow 2.18.1 writes zeros for `Round` of int32 and int64; here integers stay as they are.
- What a complex number divided by 0 is differs between numpy and TensorFlow.
- A JPEG whose colours are sampled in other ways than by 1 x 1, 2 x 1 and 2 x 2 pixels is refused,
  but with `dct_method="INTEGER_ACCURATE"`.
- TensorFlow 2.18.1's `FusedPadConv2D` is right for the first image of a batch alone; here it is
  right for all.
- TensorFlow leaves the moments of `FusedBatchNorm` unwritten in inference; here they are those that
  it is given.
- `TensorMapStackKeys` and `LookupTableExportV2` give keys in the order in which they came;
  TensorFlow's order is that of hashes.
- `EncodePng` writes TensorFlow's bytes, but for `compression=0` of more than 64 KB. `EncodeJpeg`
  does where Pillow has libjpeg-turbo. `DecodeAndCropJpeg` refuses a part at whose edge TensorFlow
  makes the colours of the part alone.
- `TopKV2` with `sorted=False` has the order of a heap in TensorFlow, and is sorted here.
- Pools of the largest, and their gradients, pass over NaN in TensorFlow; ONNX Runtime may give NaN.
- The interpreter of TensorFlow 2.18.1 has no gradients of convolutions with dilations or groups;
  here they are computed.
- `Cholesky` of a matrix that is not positive definite, and `MatrixTriangularSolve` with a zero on
  the diagonal, are refused; TensorFlow gives NaN or infinity.

## How to add an operator

An operator belongs to a family, which the table below tells. `FAMILY` is that name. TensorFlow's
definitions are in `schema/file/flex_ops.tsv`, which `python -m tests.flex.facts` makes; there are
no rows to write.

1. If TFLite's operators compute the same, write what takes its place in `schema/flex/FAMILY.py`:

   ```python
   @rewriting("Transpose")
   def transpose(site: Site) -> bool:
       site.emit(Op.TRANSPOSE, site.inputs, site.outputs)
       return True
   ```

   `site.node["name"]` is an attribute, `site.input("x")` and `site.all("values")` are inputs,
   `site.constant(index)` the values of one that stands in the file, `site.through(...)` the result
   of one operator more. Return False where it is not the same: for types, say, for which TFLite
   computes something else. An operator that stays, with other inputs and outputs
   (`site.stay(...)`), is registered with `stays=True`. `refuse_rest("FAMILY")`, the last line of
   `fallback_kernels/flex/FAMILY.py`, lets such operators be refused with their types, unless they
   have a kernel.
2. Otherwise write a shape rule in `schema/shapes/flex/FAMILY.py` (`@flex_rule("Name")`), a kernel
   in `fallback_kernels/flex/FAMILY.py` (`@flex_kernel("Name")`) and a translator in
   `opmap/flex/FAMILY.py` (`@flex_translator("Name")`), in the forms of TFLite's operators.
   `op["x"]` is an input by TensorFlow's name, `node_of(op)["name"]` an attribute with its default,
   `node_of(op).inputs(inputs, "values")` the arrays of an input that stands for several. Types and
   numbers of inputs are checked before. `read_computed` and `write_computed` of
   `opmap/flex/elementwise.py` read and write every type in the one that ONNX Runtime computes.
3. Write cases in `tests/flex/cases_FAMILY.py`: a list `CASES` of `Case("Name", [arrays],
   {attributes})`, with every type, the edges of each, and what TensorFlow refuses
   (`refused=True`). Record what TensorFlow answers, with a Python that has TensorFlow 2.18.1:
   `TENSORFLOW_PYTHON=... python -m tests.flex.record FAMILY`. `pytest tests/flex/test_cases.py`
   runs them in numpy, in ONNX Runtime and as exported files.
4. `python -m tflite_ort.command.flex_page > docs/flex.md`.

A new family has these files: `opmap/flex/`, `fallback_kernels/flex/` and
`tests/flex/cases_FAMILY.py` always, `schema/flex/` and `schema/shapes/flex/` where needed.
"""
_EARLY = (
    "Of the package tf_sentencepiece, which ended with TensorFlow 1. No wheel has kernels for them"
)
# Why no model can need an operator; what is not named here is of TensorFlow 1.
_REASONS = {
    "TensorFlow took them out of its graphs before it had TFLite, and the converter refuses them": (
        *("AdjustContrast", "BatchNormWithGlobalNormalization"),
        *("BatchNormWithGlobalNormalizationGrad", "TileGrad"),
    ),
    "They take or give TensorFlow's types of quantized numbers (qint8, quint8, qint16, quint16, "
    "qint32). The converter refuses them, or TFLite's interpreter does: it has no such tensors": (
        *("Dequantize", "QuantizeDownAndShrinkRange", "QuantizeV2", "QuantizedAdd"),
        *("QuantizedAvgPool", "QuantizedBatchNormWithGlobalNormalization", "QuantizedBiasAdd"),
        *("QuantizedConcat", "QuantizedConv2D", "QuantizedInstanceNorm", "QuantizedMatMul"),
        *("QuantizedMaxPool", "QuantizedMul", "QuantizedRelu", "QuantizedRelu6"),
        *("QuantizedReshape", "QuantizedResizeBilinear", "RequantizationRange", "Requantize"),
    ),
    "The converter writes a constant, and an input, as a tensor. `Placeholder` stands for a handle "
    "that it cannot write, and the interpreter of TensorFlow refuses it": (
        *("Const", "Placeholder", "PlaceholderV2"),
    ),
    "TensorFlow replaces it before it runs a graph; in the interpreter it is refused": (
        "ParallelConcat",
    ),
    "It names functions that a file does not have: the interpreter of TensorFlow refuses it": (
        "Case",
    ),
    "It takes a tensor of lists, at which the interpreter of TensorFlow ends": (
        "TensorListPushBackBatch",
    ),
    "The converter reads the file, or takes it for one that is not there: a model has no such "
    "operator": ("InitializeTableFromTextFileV2",),
    "What iterators of a running TensorFlow add to a dataset; the converter refuses the operators "
    "with which these begin": (
        *("FinalizeDataset", "InitializeTableFromDataset", "ModelDataset", "OptimizeDatasetV2"),
        *("UnwrapDatasetVariant", "WrapDatasetVariant"),
    ),
}
NOT_NEEDED = frozenset(name for names in _REASONS.values() for name in names)
_OF_TENSORFLOW_1 = "Of TensorFlow 1: references, queues, sessions. No TFLite model has them"


def page() -> Iterator[str]:
    """The lines of the page."""
    yield _HEAD
    found = {name: flex_table.family_of(name) for name in flex_table.names()}
    rows = {name: _row(name) for name in found}
    allowed = [name for name in found if not _is_selected(name)]
    runs = sum(rows[name][0] for name in allowed)
    exports = sum(rows[name][1] for name in allowed)
    needed = sum(bool(found[name]) for name in allowed)
    yield "## All operators\n"
    selected = len(found) - len(allowed)
    yield (
        f"Of the {len(allowed)} names that TFLite's Flex delegate allows, a model can need "
        f"{needed}; {runs} run and {exports} export. A type that is not here yet is refused by its "
        f"name. {selected} names more are tf.text's, which an author selects: they are marked *.\n"
    )
    for family in sorted({*found.values()} - {""}):
        names = [name for name in found if found[name] == family]
        yield f"### {family}\n"
        yield from _table(names, rows)
    rest = [name for name, family in found.items() if not family and name not in NOT_NEEDED]
    early = [name for name in rest if name.startswith("Sentencepiece")]
    others = [name for name in rest if name not in early]
    yield "### Not needed\n"
    for reason, unneeded in (*_REASONS.items(), (_EARLY, early), (_OF_TENSORFLOW_1, others)):
        yield f"- {reason}: {_listed(unneeded)}."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`{'*' * _is_selected(name)}" for name in names)


def _is_selected(name: str) -> bool:
    operator = flex_table.flex_operator(name)
    return operator is not None and operator.is_selected


def _table(names: list[str], rows: dict[str, tuple[bool, bool, str]]) -> Iterator[str]:
    """The rows of a family: those that run, then the others in a line."""
    there = [name for name in names if rows[name][0]]
    if there:
        yield "| operator | exports | TensorFlow's types |"
        yield "|---|---|---|"
        for name in there:
            _, exports, types = rows[name]
            yield f"| {_listed([name])} | {'yes' if exports else 'no'} | {types} |"
        yield ""
    missing = [name for name in names if not rows[name][0]]
    if missing:
        yield f"Not here yet: {_listed(missing)}.\n"


def _row(name: str) -> tuple[bool, bool, str]:
    """Whether an operator runs, whether it exports, and the types that it takes."""
    replaced = is_replaced(name)
    runs = replaced or bool(custom_kernel.versions(FLEX + name))
    exports = replaced or bool(custom_translator.versions(FLEX + name))
    operator = flex_table.flex_operator(name)
    data = operator.attributes.get("T") if operator is not None else None
    types = " ".join(each for each in (data.allowed if data else ()) if each in _KNOWN)
    return runs, exports, types


_KNOWN = frozenset(flex_table.TENSOR_TYPES)


if __name__ == "__main__":
    print("\n".join(page()))
