"""What every operator takes: its inputs by name, and the element types that TFLite's kernels take.

A row is written like a function::

    SCATTER_ND (indices: i32, updates: f32 i8 u8, shape: i32)

An input without types takes any. `bias?` may be absent, and a last `values*` stands for all inputs
that remain. `axes[]` lists integers, of every type where none is named: it has two for each
dimension at most. A row may declare several operators, custom ones by their names. The rows stand
under the operators' families: the names of the files that hold their shape rules, translators and
kernels.

The types of a builtin operator's data are those that run in LiteRT's one-operator models; the
tests compare them with LiteRT. Operators whose types depend on each other (CAST, QUANTIZE,
convolutions, products, LSTMs) leave them to their kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from tflite_ort.base.optional import late
from tflite_ort.schema.file.element_types import TensorType, named_types
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.lstm import BIDIRECTIONAL_LSTM_INPUTS, LSTM_INPUTS
from tflite_ort.schema.values.made_once import MadeOnce
from tflite_ort.schema.values.view import OperatorView

with late:  # few models have operators of TensorFlow
    from tflite_ort.schema.file import flex_table
    from tflite_ort.schema.values import flex

Key = Op | str  # a builtin operator, or the name of a custom one

# What the name of each of TensorFlow's operators begins with, and what stands for all of them.
FLEX = "Flex"
ANY_FLEX = "Flex*"

# Most of what TFLite copies.
_ANY = "f32 f16 f64 bf16 i8 u8 i16 u16 i32 u32 i64 u64 bool c64"

_ROWS = {
    "activation": """
        ELU (input: f32 i8)
        HARD_SWISH LOG_SOFTMAX RELU_0_TO_1 RELU_N1_TO_1 (input: f32 i8 u8)
        RELU RELU6 LEAKY_RELU (input: f32 i8 u8 i16)
        PRELU (input: f32 i8 u8 i16, alpha)
        GELU SOFTMAX (input: f32 f16 i8 u8 i16)
        LOGISTIC TANH (input: f32 f16 bf16 i8 u8 i16)
    """,
    "comparison": """
        EQUAL NOT_EQUAL (input1: f32 f16 i8 u8 i16 i32 i64 bool str, input2)
        LESS GREATER (input1: f32 f16 bf16 i8 u8 i16 i32 i64, input2)
        LESS_EQUAL GREATER_EQUAL (input1: f32 f16 i8 u8 i16 i32 i64, input2)
        LOGICAL_NOT (input: bool)
        SELECT SELECT_V2 (condition: bool, x: any, y)
    """,
    "control_flow": """
        IF (condition, values*)
        STABLEHLO_CASE (index, values*)
        WHILE (values*)
        CALL_ONCE (variables*)
    """,
    "convolution": """
        CONV_2D DEPTHWISE_CONV_2D (input, filter, bias?)
        CONV_3D (input: f32, filter: f32, bias?)
        TRANSPOSE_CONV CONV_3D_TRANSPOSE (output_shape[], filter, input, bias?)
    """,
    "detection": """
        NON_MAX_SUPPRESSION_V4 (
            boxes: f32, scores: f32, max_output_size[]: i32, iou_threshold, score_threshold)
        NON_MAX_SUPPRESSION_V5 (
            boxes: f32, scores: f32, max_output_size[]: i32, iou_threshold, score_threshold, sigma)
    """,
    "detection_postprocess": """
        TFLite_Detection_PostProcess (
            box_encodings: f32 u8, class_predictions: f32 u8, anchors: f32 u8)
    """,
    "elementwise": """
        ABS (input: f32 i8 i16 i32)
        CEIL SQUARE (input: f32)
        COS SIN (input: f32 f16)
        EXP LOG RSQRT SQRT (input: f32 i8 i16)
        FLOOR ROUND (input: f32 f16 bf16)
        NEG (input: f32 f16 bf16 i8 i16 i32 i64)
        SIGN (input: f32 f64 i32)
        ZEROS_LIKE (input: f32 i32 i64)
        BUCKETIZE (input: f32 f64 i32 i64)
        ADD (input1: f32 f16 i8 u8 i16 i32 i64, input2)
        SUB (input1: f32 i8 u8 i16 i32 i64, input2)
        MUL (input1: f32 f16 i8 u8 i16 i32 u32 i64 c64, input2)
        DIV (input1: f32 i8 u8 i16 i32, input2)
        SQUARED_DIFFERENCE (input1: f32 i8 i32, input2)
        FLOOR_DIV (input1: f32 i8 i16 i32, input2)
        FLOOR_MOD (input1: f32 i8 i16 i32 i64, input2)
        MAXIMUM MINIMUM (input1: f32 f16 bf16 i8 u8 i16 i32 i64, input2)
        POW (input1: f32 i32, input2)
        ATAN2 (input1, input2)
        LOGICAL_AND LOGICAL_OR (input1: bool, input2)
        BITWISE_XOR RIGHT_SHIFT (input1: i8 u8 i16 u16 i32 u32, input2)
        ADD_N (values*: f32 i32)
    """,
    # TensorFlow's operators stand in `schema/file/flex_ops.tsv`; these were left custom.
    "flex.elementwise": """
        Atan ATAN Sinh (x)
    """,
    "gather_scatter": """
        GATHER (input: f32 f16 bf16 f8 i8 u8 i16 i32 i64 bool i4 str, positions: i16 i32 i64)
        GATHER_ND (params: f32 f16 bf16 f8 i8 u8 i16 i32 i64 bool str, indices: i16 i32 i64)
        SCATTER_ND (indices: i32, updates: f32 i8 u8 i32 i64 bool, shape[]: i32)
        SPARSE_TO_DENSE (indices: i32 i64, shape[], values: f32 i8 u8 i32 i64, default_value)
        ONE_HOT (indices: i32 i64, depth[]: i32 i64, on_value: f32 i8 u8 i32 i64 bool, off_value)
        SEGMENT_SUM (data: f32 i32, segment_ids: i32)
        UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_PROD (
            data: f32 i32, segment_ids: i32, num_segments[]: i32)
        UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN (
            data: f32 i32, segment_ids: i32, num_segments[]: i32)
        WHERE (condition: f32 i8 u8 i32 u32 i64 bool)
        UNIQUE (input: f32 i8 u8 i16 i32 i64)
        TOPK_V2 (input: f32 i8 u8 i16 i32 i64, k[]: i16 i32)
    """,
    "image_resizing": """
        RESIZE_BILINEAR (input: f32 i8 u8 i16, size[]: i32 i64)
        RESIZE_NEAREST_NEIGHBOR (input: f32 f16 bf16 i8 u8 i16 u16 i32 u32 bool, size[]: i32 i64)
    """,
    "linear": """
        FULLY_CONNECTED (input, filter, bias?)
        BATCH_MATMUL (x, y)
    """,
    "lookup": """
        EMBEDDING_LOOKUP (ids: i32, table)
        EMBEDDING_LOOKUP_SPARSE (ids: i32, indices: i32, dense_shape[], weights: f32, params: f32)
        HASHTABLE_LOOKUP (lookup: i32, keys: i32, values)
        LSH_PROJECTION (hash: f32, input, weight?: f32)
        SKIP_GRAM (sentence: str)
    """,
    "mediapipe": """
        Convolution2DTransposeBias (input: f32, filter: f32, bias: f32)
        MaxPoolingWithArgmax2D (input: f32)
        MaxUnpooling2D (input: f32, indices: f32 i32)
        TransformTensorBilinear (image: f32, transform)
        TransformLandmarks (landmarks: f32, transform)
        Landmarks2TransformMatrix (landmarks: f32)
        NGramHash (text: str)
        KmeansEmbeddingLookup (tokens: i32, codes: u8, codebook: f32)
    """,
    "micro_signal": """
        SignalWindow (input, weights)
        SignalFftAutoScale SignalEnergy (input: i16)
        SignalRfft SignalIrfft (input: i16 i32 f32)
        SignalFilterBank (input, weights, unweights, starts, weight_starts, widths)
        SignalFilterBankSquareRoot (input, scale_bits)
        SignalFilterBankSpectralSubtraction (input: u32)
        SignalPCAN (input, noise_estimate, gain_lut)
        SignalFilterBankLog (input)
        SignalFramer SignalStacker (input: i16)
        SignalDelay (input)
        SignalOverlapAdd (input: i16 f32)
    """,
    "normalization": """
        L2_NORMALIZATION (input: f32 i8 u8)
        LOCAL_RESPONSE_NORMALIZATION (input: f32)
    """,
    "pooling": """
        AVERAGE_POOL_2D MAX_POOL_2D (input: f32 i8 u8 i16)
        L2_POOL_2D (input: f32)
    """,
    "quantization": """
        QUANTIZE DEQUANTIZE CAST DENSIFY (input)
        FAKE_QUANT (input: f32)
    """,
    "quantization_aids": """
        NumericVerify (input, reference)
        aeq.hadamard_rotation (input)
    """,
    # `position` is how far the operator has got in its random numbers; no file has it.
    "random": """
        RANDOM_UNIFORM RANDOM_STANDARD_NORMAL (shape[]: i32, position?)
        MULTINOMIAL (logits: f32, num_samples[]: i32, position?)
    """,
    # The LSTM operators stand in `lstm.py`.
    "recurrent": """
        RNN UNIDIRECTIONAL_SEQUENCE_RNN (
            input: f32, weights: f32 i8 u8, recurrent_weights: f32 i8 u8, bias: f32,
            hidden_state: f32)
        BIDIRECTIONAL_SEQUENCE_RNN (
            input: f32, fw_weights: f32 i8 u8, fw_recurrent_weights: f32 i8 u8, fw_bias: f32,
            fw_hidden_state: f32, bw_weights: f32 i8 u8, bw_recurrent_weights: f32 i8 u8,
            bw_bias: f32, bw_hidden_state: f32, aux_input?: f32, fw_aux_weights?: f32 i8 u8,
            bw_aux_weights?: f32 i8 u8)
        SVDF (input: f32 i8, weights_feature, weights_time, bias?, state?)
    """,
    "reduction": """
        SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN (input: f32 i8 u8 i16 i32 i64 bool, axes[])
        MEAN (input: f32 i8 u8 i16 i32 i64, axes[])
        REDUCE_ANY REDUCE_ALL (input: bool, axes[])
        CUMSUM (input: f32 i32 i64, axis[])
        ARG_MAX ARG_MIN (input: f32 i8 u8 i32 bool, axis[])
        REDUCE_WINDOW (input, init, window[], strides[], dilations[])
    """,
    "reshaping": """
        RESHAPE (input, shape?)
        SQUEEZE SHAPE RANK BITCAST (input)
        EXPAND_DIMS (input, axis[])
        TRANSPOSE (input: any i4 u4, perm[])
        CONCATENATION (values*: f32 f16 bf16 f8 i8 u8 i16 i32 u32 i64 bool i4)
        PACK (values*: f32 f8 i8 u8 i16 i32 u32 i64)
        UNPACK (input: f32 f16 bf16 f8 i8 u8 i16 i32 bool)
        SPLIT (axis[]: i8 i16 i32 i64, input: f32 f8 i8 u8 i16 i32 i64)
        SPLIT_V (input: f32 f8 i8 u8 i16 i32 i64, size_splits[], axis[]: i8 i16 i32 i64)
        FILL (dims[]: i32 i64, value: any f8 str)
        RANGE (start: f32 i32 i64, limit, delta)
        SPACE_TO_DEPTH DEPTH_TO_SPACE (input: f32 i8 u8 i32 i64)
        PAD PADV2 (input: f32 f16 bf16 f8 i8 u8 i16 i32 i64 bool, paddings[]: i32 i64, value?)
        MIRROR_PAD (input: any, paddings[]: i32 i64)
    """,
    "signal": """
        RFFT2D (input: f32, fft_length[]: i32)
        REAL IMAG COMPLEX_ABS (input: c64 c128)
        AudioSpectrogram (input: f32)
        Mfcc (spectrogram: f32, sample_rate)
    """,
    "slicing": """
        SLICE (input: any str i4, begin[]: i32 i64, size[]: i32 i64)
        STRIDED_SLICE (input: any str, begin[], end[], strides[])
        DYNAMIC_UPDATE_SLICE (operand: any c128 i4, update, start[]: i32 i64)
    """,
    "stablehlo": """
        STABLEHLO_ADD STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_MINIMUM (lhs, rhs)
        STABLEHLO_AND STABLEHLO_SHIFT_LEFT (lhs, rhs)
        STABLEHLO_PAD (input, value)
        STABLEHLO_GATHER (operand, start_indices: i32 i64)
        STABLEHLO_SCATTER (operand, indices: i32 i64, updates)
        STABLEHLO_REDUCE_WINDOW (input, init)
        STABLEHLO_RNG_BIT_GENERATOR (state: u64)
    """,
    "state": """
        VAR_HANDLE HASHTABLE ()
        READ_VARIABLE (variable)
        ASSIGN_VARIABLE (variable, value)
        HASHTABLE_FIND (table, keys, default)
        HASHTABLE_IMPORT (table, keys, values)
        HASHTABLE_SIZE (table)
    """,
    "tiling": """
        TILE (input: any str, multiples[]: i32 i64)
        BROADCAST_TO (input: any f8 c128 i4 u4, shape[]: i32 i64)
        BROADCAST_ARGS (a[], b[])
        REVERSE_V2 (input: f32 f16 bf16 f8 i8 u8 i16 i32 i64 bool, axes[])
        REVERSE_SEQUENCE (input: f32 u8 i16 i32 i64, lengths)
        MATRIX_DIAG (diagonal: f32 i8 u8 i16 i32 u32 i64)
        MATRIX_SET_DIAG (input: f32 i8 u8 i16 i32 u32 i64, diagonal)
        DILATE (input, dilations[], padding)
        SPACE_TO_BATCH_ND (input: any, block_shape[]: i32 i64, paddings[]: i32 i64)
        BATCH_TO_SPACE_ND (input: any, block_shape[]: i32 i64, crops[]: i32 i64)
    """,
    "tokenizers": """
        TFText>WhitespaceTokenizeWithOffsetsV2 (input_values: str, input_config: str)
        FastWordpieceTokenizeWithOffsets (input_values: str, wp_model: u8)
        TFText>FastWordpieceDetokenize (input_values: i32, input_row_splits: i64, wp_model: u8)
        FastBertNormalize (input_values: str, fast_bert_normalizer_model: u8)
        TFText>NgramsStringJoin (input_values: str, input_row_splits*: i64)
        TFText>RoundRobinTrim TFText>RoundRobinGenerateMasks (max_sequence_length: i32, tensors*)
        TFText>ByteSplitWithOffsets (input_values: str)
        TFText>ByteSplitByOffsets (input_values: str, input_start_offsets: i32,
            input_end_offsets: i32, input_row_splits: i64)
        TFText>Utf8Binarize (input_tokens: str)
        TFText>FastSentencepieceTokenize (
            sp_model: u8, input: str, nbest_size: i32, alpha: f32,
            add_bos: bool, add_eos: bool, reverse: bool)
        TFText>FastSentencepieceDetokenize (sp_model: u8, input_values: i32, input_splits: i32 i64)
        RaggedTensorToTensor (
            shape: i32 i64, values: i32 i64 f32, default_value: i32 i64 f32, partitions*)
    """,
}

# The types of the filter of a convolution or a product, by those of its input.
FILTER_TYPES = {
    TensorType.FLOAT32: named_types("f32 i8 i4 i2"),
    TensorType.UINT8: named_types("u8"),
    TensorType.INT8: named_types("i8 i4 i2"),
    TensorType.INT16: named_types("i16 i8 i4 i2"),
}
# The types of a bias, by those of the input.
BIAS_TYPES = {
    TensorType.FLOAT32: named_types("f32"),
    TensorType.INT8: named_types("i32"),
    TensorType.UINT8: named_types("i32"),
    TensorType.INT16: named_types("i32 i64"),
}

# Which types of inputs TFLite's kernels take together, where the data's type is not enough: of the
# inputs in their order, one form a line.
_FORMS = {
    Op.SVDF: (
        "f32, f32, f32, f32, f32",
        "f32, i8 u8, i8 u8, f32, f32",
        "i8, i8, i16, i32, i16",
        "i8, i8, i8, i32, i8",
    ),
}

_ROW = re.compile(r"([^()]+)\(([^()]*)\)")


def is_flex(key: object) -> bool:
    """Whether `key` is the name that a model has for an operator of TensorFlow."""
    return isinstance(key, str) and key.startswith(FLEX)


def _flex_inputs(key: Key) -> Inputs | None:
    return flex.flex_inputs(str(key)) if is_flex(key) else None


# The family of every operator, and its inputs. Both know TensorFlow's operators too, without
# listing them: see `family_of`.
FAMILIES: dict[Key, str] = {}
_INPUTS: dict[Key, Callable[[], Inputs]] = {}
INPUTS: Mapping[Key, Inputs] = MadeOnce(_INPUTS, _flex_inputs)


def _rows() -> Iterator[tuple[str, str, Callable[[], Inputs]]]:
    """(family, operator, inputs) of every row."""
    for family, rows in _ROWS.items():
        for names, inputs in _ROW.findall(rows):
            declared = partial(_parsed, inputs)
            for name in names.split():
                yield family, name, declared
    for name in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"):
        yield "recurrent", name, partial(Inputs.of, LSTM_INPUTS)
    inputs_of_both = partial(Inputs.of, BIDIRECTIONAL_LSTM_INPUTS)
    yield "recurrent", "BIDIRECTIONAL_SEQUENCE_LSTM", inputs_of_both


def _parsed(inputs: str) -> Inputs:
    return Inputs.parse(inputs.replace("any", _ANY))


for _family, _name, _inputs in _rows():
    _key = Op.__members__.get(_name, _name)
    if _key in _INPUTS:
        raise ValueError(f"{_name} is declared twice")
    FAMILIES[_key], _INPUTS[_key] = _family, _inputs


def family_of(key: Key) -> str | None:
    """The family of an operator: the name of the files, such as ``pooling`` or ``flex.lists``, that
    have its shape rule, translator and kernel. None where there is no such operator."""
    found = FAMILIES.get(key)
    if found is None and is_flex(key):
        family = flex_table.family_of(str(key).removeprefix(FLEX))
        return f"flex.{family}" if family else None
    return found


def flex_names() -> list[Key]:
    """TensorFlow's operators as a model names them."""
    return [FLEX + name for name in flex_table.names()]


# The input that holds an operator's data, where it is not the first; None where no input does.
_DATA: dict[Op, str | None] = {
    Op.RANDOM_UNIFORM: None,
    Op.RANDOM_STANDARD_NORMAL: None,
    Op.RFFT2D: None,  # complex numbers from real ones
    Op.EMBEDDING_LOOKUP: "table",
    Op.EMBEDDING_LOOKUP_SPARSE: "params",
    Op.LSH_PROJECTION: "input",
    Op.HASHTABLE_FIND: "keys",
    Op.SPLIT: "input",
    Op.FILL: "value",
    Op.SCATTER_ND: "updates",
    Op.SELECT: "x",
    Op.SELECT_V2: "x",
    Op.HASHTABLE_LOOKUP: "values",
    Op.ONE_HOT: "on_value",
    Op.SPARSE_TO_DENSE: "values",
}


def data_input(op: Op) -> int:
    """The position of the input that holds an operator's data; the first where none does."""
    name = _DATA.get(op)
    return 0 if name is None else INPUTS[op].names.index(name)


def data_types(op: Op) -> frozenset[TensorType] | None:
    """The types that TFLite takes an operator's data in; None where the table does not tell."""
    if op not in INPUTS or _DATA.get(op, "first") is None:
        return None
    inputs, data = INPUTS[op], data_input(op)
    return None if data in inputs.lists else inputs.types.get(data)


def key_of(op: OperatorView[Any]) -> Key:
    """What an operator in its graph is registered under."""
    return op.op if op.custom_code is None else op.custom_code


def check_inputs(op: OperatorView[Any]) -> None:
    """Refuse inputs of types that TFLite has no kernel for, lists of too many numbers, and biases
    of another type than goes with the data.

    Raises:
        ModelError: names the type, and those that are taken; or the number, and the most.
    """
    if is_flex(op.custom_code):
        flex.check_node(op)
    if op.origin or is_flex(op.custom_code):  # its types were held against its node
        return
    declared = INPUTS.get(key_of(op))
    if declared is None:
        return
    declared.check(op)
    if "bias" in declared.names and "filter" in declared.names and op.custom_code is None:
        _check_bias(declared.named(op))
    if op.op in _FORMS:
        _check_form(op)


def _check_form(op: OperatorView[Any]) -> None:
    for form in _FORMS[op.op]:
        given = zip(op.inputs, map(named_types, form.split(",")), strict=False)
        if all(tensor is None or tensor.type in taken for tensor, taken in given):
            return
    names = ", ".join("none" if tensor is None else tensor.type.name for tensor in op.inputs)
    raise ModelError(f"{op.label}: no kernel for inputs of types {names} together")


def _check_bias(op: OperatorView[Any]) -> None:
    bias, data = op.get("bias"), op.get("input")
    accepted = BIAS_TYPES.get(data.type) if data is not None and bias is not None else None
    if bias is None or data is None or accepted is None or bias.type in accepted:
        return
    names = " or ".join(type.name for type in sorted(accepted))
    raise ModelError(
        f"{op.label}: a bias of {bias.type.name} beside {data.type.name} data, expected {names}"
    )
