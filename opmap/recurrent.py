"""Recurrent layers: LSTM, RNN and their sequences in one or two directions, SVDF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.base.records import replace
from tflite_ort.opmap.cells.lstm_basic import basic_lstm
from tflite_ort.opmap.cells.lstm_float import run_cells
from tflite_ort.opmap.cells.lstm_float_run import Run
from tflite_ort.opmap.cells.lstm_float_weights import (
    read_float_weights,
    reals,
    stays_inside,
    weight_matrix,
)
from tflite_ort.opmap.cells.lstm_integer import run_integer_cell
from tflite_ort.opmap.cells.lstm_integer_weights import IntegerWeights, read_integer_weights
from tflite_ort.opmap.cells.lstm_narrow import narrow_lstm
from tflite_ort.opmap.cells.rnn_cell import RnnRun, run_rnns
from tflite_ort.opmap.cells.svdf_integer import integer_svdf, steps_after
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.float_activation import activated
from tflite_ort.opmap.idioms.fixed_point import centred_codes
from tflite_ort.opmap.idioms.hybrid import Rounding, row_rounding
from tflite_ort.opmap.idioms.hybrid_products import sum_of_products
from tflite_ort.opmap.idioms.indices import with_first
from tflite_ort.opmap.idioms.scan import Values
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    LSTMKernelType,
    LSTMOptions,
    Op,
    OperatorView,
    RNNOptions,
    SequenceRNNOptions,
    SVDFOptions,
    TensorType,
    TensorView,
    UnidirectionalSequenceLSTMOptions,
    Untranslatable,
)
from tflite_ort.schema.values.lstm import (
    BASIC_LSTM_INPUTS,
    LstmKind,
    named,
)
from tflite_ort.schema.values.sizes import has_zero, is_known, is_one

View = OperatorView[Any]
_TIME, _BATCH_MAJOR = 0, (1, 0, 2)
_WEIGHTS = (
    *("input_to_forget_weights", "fw_input_to_forget_weights"),
    *("weights", "fw_weights", "weights_feature"),
)


@translator(Op.LSTM, versions=(1, 4))
def lstm(op: OperatorView[LSTMOptions], g: Graph) -> None:
    """One step of the cell on a whole batch [B, I]."""
    kind = LstmKind.of(op)
    if op.options.kernel_type == LSTMKernelType.BASIC:
        basic_lstm(named(op, BASIC_LSTM_INPUTS), g)
    elif kind is LstmKind.NARROW:
        narrow_lstm(op, g)
    elif kind is LstmKind.INTEGER:
        integer_lstm(op, g)
    else:
        float_lstm(op, g)


def float_lstm(op: View, g: Graph) -> None:
    """Cells of floats, in one or in two directions."""
    inputs: Sequence[Values]
    if op.op is Op.BIDIRECTIONAL_SEQUENCE_LSTM:
        inputs = _inputs(op, g, "fw_aux_input_to_forget_weights")
    elif op.op is Op.LSTM:
        inputs = ([g.read(op["input"])],)
    else:
        inputs = ([_read_sequence(op, g, op["input"])],)
    prefixes = ("fw_", "bw_") if op.op is Op.BIDIRECTIONAL_SEQUENCE_LSTM else ("",)
    runs = [_run(op, g, x, each) for each, x in zip(prefixes, inputs, strict=True)]
    results = run_cells(g, runs)
    for prefix, (_, h, c) in zip(prefixes, results, strict=True):
        _write_states(op, g, prefix, h, c)
    outputs = [y for y, _, _ in results]
    if op.op is Op.BIDIRECTIONAL_SEQUENCE_LSTM:
        _write_directions(op, g, outputs)
    elif op.op is Op.LSTM:
        g.write(op.output, *outputs)
    else:
        _write_sequence(op, g, op.output, *outputs)


def integer_lstm(
    op: View,
    g: Graph,
    cell: IntegerWeights | None = None,
    *,
    doubles: bool = False,
    wide: bool = False,
) -> None:
    """A cell of codes, over a sequence or for one step. Its outputs are in the quantization of the
    output state, as TFLite has them.

    Args:
        cell: the weights, where they are read already.
        doubles, wide: as for `run_integer_cell`.
    """
    if op.op is Op.LSTM:
        axis = g.ints([_TIME])
        x, single = g.op("Unsqueeze", g.read_steps(op["input"]), axis), True
    else:
        x = _batch_second(op, g, g.read_steps(op["input"]), _steps_first(op["input"]))
        single = _is_single(op)
    if has_zero(*op["input"].shape, *op["recurrent_to_output_weights"].shape):
        raise Untranslatable("a sequence of nothing, or a cell without units")
    cell, states = cell or read_integer_weights(op), [op["output_state"], op["cell_state"]]
    rows = op["recurrent_to_output_weights"].shape
    for state, width in zip(states, reversed(rows), strict=True):
        if state.rank != 2 or state.shape[1] != width:
            raise Untranslatable(f"an integer state of shape {state.shape}, {width} to a row")
    h, c = g.read_steps(states[0]), g.read(states[1], domain=Domain.STORED)
    c = _of_batch(op, g, c, states[1])
    y, *new = run_integer_cell(g, cell, x, h, c, single=single, doubles=doubles, wide=wide)
    codes = [centred_codes(g, new[0], states[0]), new[1]]
    for state, value in zip(states, codes, strict=True):
        g.write(state, value, domain=Domain.STORED)
    if single:
        made = g.op("Unsqueeze", codes[0], g.ints([_TIME]))
    else:
        made = centred_codes(g, y, states[0])
    if op.op is Op.LSTM:
        made = g.op("Squeeze", made, g.ints([_TIME]))
    else:
        made = _batch_second(op, g, made, op.output.shape)
    g.write(op.output, made, domain=Domain.STORED)


@translator(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, versions=(1, 4))
def unidirectional_sequence_lstm(
    op: OperatorView[UnidirectionalSequenceLSTMOptions], g: Graph
) -> None:
    """LSTM, or a Scan of the step where the ONNX LSTM differs; integer cells are exact."""
    if op["input"].is_quantized:
        integer_lstm(op, g)
        return
    float_lstm(op, g)


@translator(Op.BIDIRECTIONAL_SEQUENCE_LSTM, versions=(1, 3))
def bidirectional_sequence_lstm(
    op: OperatorView[BidirectionalSequenceLSTMOptions], g: Graph
) -> None:
    """One bidirectional LSTM where that is possible, otherwise one for each direction."""
    float_lstm(op, g)


def _run(op: View, g: Graph, x: Values, prefix: str) -> Run:
    """A cell whose inputs have a prefix, over the sequence `x`."""
    cell = read_float_weights(op, prefix, _rounding(op, g))
    if has_zero(op["input"].shape[-1], cell.size):
        raise Untranslatable("a cell without inputs or units")
    h, c = op[f"{prefix}output_state"], op[f"{prefix}cell_state"]
    outputs = cell.recurrent_weights.codes.shape[1]
    if not outputs:
        raise Untranslatable("a projection to nothing")
    if has_zero(*h.shape) and not is_known(batch_of(op)):
        raise Untranslatable("a state without rows")
    steps = steps_of(op)
    if g.target.ignored_clip or stays_inside(cell, c, steps):
        cell = replace(cell, cell_clip=0.0)
    states = _of_batch(op, g, _rows(g, h, outputs), h), _rows(g, c, cell.size)
    return Run(cell, x, *states, is_one(steps), batch_of(op), steps, prefix == "bw_")


def _rounding(op: View, g: Graph) -> Rounding | None:
    """The rounding of the rows that meet the weights; all weights have one type."""
    name = next(name for name in _WEIGHTS if name in op.names)
    return row_rounding(op, g, op[name])


def _rows(g: Graph, state: TensorView, width: int) -> ir.Value:
    """A state as [B, width]; TFLite takes any shape with so many elements."""
    value = g.read(state)
    if state.rank != 2:
        return g.op("Reshape", value, g.ints([-1, width]))
    if state.shape[1] != width:
        raise Untranslatable(f"a state of shape {state.shape}, {width} to a row")
    return value


def _of_batch(op: View, g: Graph, rows: ir.Value, state: TensorView) -> ir.Value:
    """The rows [B, C] of a state, in a graph that fails where a batch of an open size has not as
    many: ONNX Runtime would repeat a single one."""
    batch = batch_of(op)
    if is_known(batch) or not is_known(*state.shape):
        return rows
    return with_first(g, rows, g.size(batch), 1)


def _write_states(op: View, g: Graph, prefix: str, h: ir.Value, c: ir.Value) -> None:
    for name, value in ((f"{prefix}output_state", h), (f"{prefix}cell_state", c)):
        state = op[name]
        g.write(state, value if state.rank == 2 else g.reshape(value, state.shape))


def _is_single(op: View) -> bool:
    """Whether the sequence is known to have one step.

    Raises:
        Untranslatable: it has none, which ONNX Runtime's Scan fails at.
    """
    steps = op["input"].shape[_time_axis(op)]
    if has_zero(steps):
        raise Untranslatable("a sequence without steps")
    return is_one(steps)


def steps_of(op: View) -> int:
    """The number of steps of a sequence; 1 of a cell without one."""
    return 1 if op.op is Op.LSTM else op["input"].shape[_time_axis(op)]


def batch_of(op: View) -> int:
    """The number of rows of a step."""
    *_, batch, second, _ = (1, *op["input"].shape)
    is_step = op["input"].rank == 2
    return second if is_step or op.options.time_major else batch


def _is_single_row(op: View) -> bool:
    """Whether the batch is known to be 1."""
    return is_one(batch_of(op))


def _time_axis(op: View) -> int:
    return 0 if op.options.time_major else 1


def _read_sequence(op: View, g: Graph, tensor: TensorView) -> ir.Value:
    """A sequence [T, B, I]; the rows [B, I] of one that is known to have one step."""
    value = g.read(tensor)
    if _is_single(op):
        return g.op("Squeeze", value, g.ints([_time_axis(op)]))
    return _batch_second(op, g, value, _steps_first(tensor))


def _steps_first(tensor: TensorView) -> Sequence[int]:
    """The sizes of a sequence [B, T, ...] as [T, B, ...]."""
    batch, steps, *others = tensor.shape
    return steps, batch, *others


def _batch_second(op: View, g: Graph, value: ir.Value, sizes: Sequence[int]) -> ir.Value:
    """A sequence of the operator as [T, B, ...], or back.

    Args:
        sizes: of the result, unless the operator is time-major.
    """
    if op.options.time_major:
        return value
    if _is_single_row(op) and is_known(*sizes):
        return g.reshape(value, sizes)
    return g.op("Transpose", value, perm=_BATCH_MAJOR)


def _write_sequence(op: View, g: Graph, tensor: TensorView, y: ir.Value) -> None:
    if _is_single(op):
        g.write(tensor, g.op("Unsqueeze", y, g.ints([_time_axis(op)])))
    else:
        g.write(tensor, _batch_second(op, g, y, tensor.shape))


def _inputs(op: View, g: Graph, auxiliary_weights: str) -> tuple[Values, Values]:
    """The inputs of the forward and of the backward direction.

    Both read an auxiliary input that has weights. One without weights is the only input of the
    backward direction.
    """
    x, auxiliary = _read_sequence(op, g, op["input"]), op.get("aux_input")
    if auxiliary is None:
        return [x], [x]
    other, count = _read_sequence(op, g, auxiliary), 1 if _is_single(op) else 2
    if not is_known(*op["input"].shape[:2], *auxiliary.shape[:2]):
        other = with_first(g, other, g.op("Shape", x, start=0, end=count), count)
    if op.get(auxiliary_weights) is None:
        return [x], [other]
    return [x, other], [x, other]


def _write_directions(op: View, g: Graph, sequences: Sequence[ir.Value]) -> None:
    if op.options.merge_outputs:
        sequences = [g.op("Concat", *sequences, axis=-1)]
    for tensor, y in zip(op.outputs, sequences, strict=True):
        _write_sequence(op, g, tensor, y)


@translator(Op.RNN, versions=(1, 3))
def rnn(op: OperatorView[RNNOptions], g: Graph) -> None:
    """One step on a whole batch [B, I]: Gemm of the input, Gemm of the state, activation."""
    ((y, h),) = run_rnns(g, [_rnn_run(op, g, [g.read(op["input"])], single=True)])
    g.write(op["hidden_state"], h)
    g.write(op.output, y)


@translator(Op.UNIDIRECTIONAL_SEQUENCE_RNN, versions=(1, 3))
def unidirectional_sequence_rnn(op: OperatorView[SequenceRNNOptions], g: Graph) -> None:
    """RNN, or a Scan of the step for activations that the ONNX RNN lacks."""
    x = _read_sequence(op, g, op["input"])
    ((y, h),) = run_rnns(g, [_rnn_run(op, g, [x], single=_is_single(op))])
    g.write(op["hidden_state"], h)
    _write_sequence(op, g, op.output, y)


@translator(Op.BIDIRECTIONAL_SEQUENCE_RNN, versions=(1, 3))
def bidirectional_sequence_rnn(op: OperatorView[BidirectionalSequenceRNNOptions], g: Graph) -> None:
    """One bidirectional RNN where that is possible, otherwise one for each direction.

    TFLite does not read a batch-major auxiliary input without weights.
    """
    _refuse_misread(op)
    single = _is_single(op)
    inputs = _inputs(op, g, "fw_aux_weights")
    if not op.options.time_major and op.get("fw_aux_weights") is None:
        inputs = inputs[0], inputs[0]
    runs = [
        _rnn_run(op, g, x, prefix, single=single, reverse=prefix == "bw_")
        for prefix, x in zip(("fw_", "bw_"), inputs, strict=True)
    ]
    results = run_rnns(g, runs)
    for prefix, (_, h) in zip(("fw_", "bw_"), results, strict=True):
        g.write(op[f"{prefix}hidden_state"], h)
    _write_directions(op, g, [y for y, _ in results])


def _refuse_misread(op: OperatorView[BidirectionalSequenceRNNOptions]) -> None:
    """Refuses cases in which TFLite's kernel reads its inputs in an unintended way."""
    hybrid, time_major = op["fw_weights"].type is not TensorType.FLOAT32, op.options.time_major
    if hybrid and time_major and not _is_single(op):
        raise Untranslatable("TFLite runs time-major hybrid sequences over and over")
    auxiliary = op.get("aux_input")
    if auxiliary is not None and (hybrid or time_major) and op.get("fw_aux_weights") is not None:
        width, expected = auxiliary.shape[2], op["input"].shape[2]
        if width != expected:
            raise Untranslatable(
                f"TFLite misreads an auxiliary input of width {width} beside {expected}"
            )


def _rnn_run(
    op: View, g: Graph, x: Values, prefix: str = "", *, single: bool, reverse: bool = False
) -> RnnRun:
    matrices = [weight_matrix(op, prefix + name) for name in ("weights", "aux_weights")]
    recurrent, bias = weight_matrix(op, f"{prefix}recurrent_weights"), reals(op, f"{prefix}bias")
    if recurrent is None or bias is None:
        raise Untranslatable("a cell without weights")
    if has_zero(op["input"].shape[-1], *bias.shape):
        raise Untranslatable("a cell without inputs or units")
    hidden = op[f"{prefix}hidden_state"]
    return RnnRun(
        x,
        _of_batch(op, g, g.read(hidden), hidden),
        [weights for weights in matrices if weights is not None],
        recurrent,
        bias,
        op.options.fused_activation_function,
        single,
        _is_single_row(op),
        reverse,
        _rounding(op, g),
    )


@translator(Op.SVDF, versions=(1, 4))
def svdf(op: OperatorView[SVDFOptions], g: Graph) -> None:
    """MatMul gives the newest step of the F filters; ReduceSum weights and sums their last M steps.
    B batch, U units of F / U filters: the state is [B, F, M]."""
    if has_zero(*op["weights_time"].shape):
        raise Untranslatable("no filters, or filters without steps")
    if op["input"].is_quantized:
        integer_svdf(op, g)
        return
    feature, time = weight_matrix(op, "weights_feature"), reals(op, "weights_time")
    if feature is None or time is None:
        raise Untranslatable("filters without weights")
    filters, memory = time.shape
    rounding, single_row = _rounding(op, g), _is_single_row(op)
    terms = [(g.read(op["input"]), feature)]
    made = sum_of_products(g, terms, rounding=rounding, single_row=single_row)
    tensor = op["state"]
    state = g.reshape(g.read(tensor), (-1, filters, memory))
    state = steps_after(op, g, state, g.op("Unsqueeze", made, g.ints([2])))
    g.write(tensor, g.reshape(state, (-1, filters * memory)))
    rank, steps = op.options.rank, g.op("Mul", state, g.constants.add(time, "weights_time"))
    if rank > 1:
        steps = g.reshape(steps, (-1, filters // rank, rank * memory))
    value = g.op("ReduceSum", steps, g.ints([2]), keepdims=0)
    bias = reals(op, "bias")
    value = value if bias is None else g.op("Add", value, g.constant(bias))
    g.write(op.output, activated(g, value, op.options.fused_activation_function))
