"""Operators and nodes that rules look for: a graph without them is not searched."""

from __future__ import annotations

from tflite_ort.schema import Op

TIME = (frozenset({Op.RESHAPE, Op.CONV_2D}), frozenset({Op.EXPAND_DIMS, Op.CONV_2D}))
CONVOLUTIONS = (Op.CONV_2D, Op.DEPTHWISE_CONV_2D)
QLINEAR = ("QLinearConv",)
ACTIVATIONS = (Op.TANH, Op.LOGISTIC, Op.RELU, Op.ADD)
CELLS = tuple(frozenset({Op.FULLY_CONNECTED, each}) for each in ACTIVATIONS)
SILU = (frozenset({Op.LOGISTIC, Op.MUL}),)
ATTENTION = (frozenset({Op.BATCH_MATMUL, Op.SOFTMAX}),)
CACHES = frozenset({Op.DYNAMIC_UPDATE_SLICE}), frozenset({Op.GATHER_ND, Op.REDUCE_ALL})
SIGNS = (Op.GREATER, Op.GREATER_EQUAL, Op.LESS, Op.LESS_EQUAL)
SLOPED = (frozenset({Op.NEG, Op.RELU}), *(frozenset({each, Op.MUL}) for each in SIGNS))
CELLS_OF_CODES = (Op.LSTM, Op.UNIDIRECTIONAL_SEQUENCE_LSTM)
REPEATED = frozenset({Op.RESHAPE, Op.TILE}), frozenset({Op.RESHAPE, Op.BROADCAST_TO})
BROADCAST = tuple(
    frozenset({move, each})
    for move in (Op.RESHAPE, Op.SQUEEZE)
    for each in (Op.ADD, Op.SUB, Op.MUL, Op.DIV)
)
SPREAD = (Op.DEPTH_TO_SPACE, Op.SPACE_TO_DEPTH)
PICKING = (Op.GATHER, Op.RESHAPE, Op.SLICE, Op.STRIDED_SLICE, Op.TRANSPOSE)
REDUCING = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
RESHAPED = ("Gemm", *REDUCING)
LAYERS = ("Add", "Gemm", "MatMul")
BROADCASTING = ("Add", "Div", "Greater", "GreaterOrEqual", "Max", "Min", "Mul", "Sub")
ROOTS = frozenset({Op.MEAN, Op.RSQRT}), frozenset({Op.MEAN, Op.SQRT})
MOVES = (
    *(Op.EXPAND_DIMS, Op.MIRROR_PAD, Op.PAD, Op.RESHAPE, Op.RESIZE_NEAREST_NEIGHBOR),
    *(Op.SLICE, Op.SQUEEZE, Op.STRIDED_SLICE, Op.TRANSPOSE),
)
