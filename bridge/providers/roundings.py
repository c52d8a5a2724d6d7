"""How far from TFLite's the results of providers may be: rows of `traits`.

Each is a step of the provider's arithmetic, found with ``python -m benchmarks.followed`` and by
graphs of one node. The networks of ``tests/providers/test_qnn.py`` keep to them.
"""

from __future__ import annotations

from tflite_ort.providers import conditions
from tflite_ort.providers.provider_traits import Rounding
from tflite_ort.schema import TensorType

_WIDE = conditions.on(TensorType.INT16)
# Providers that compute in floats.
UNROUNDED = (
    Rounding(
        "it does not round activations of floats that meet weights of codes, as TFLite does",
        frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}),
        conditions.hybrid,
        share=0.02,
    ),
    Rounding("it adds floats in another order", frozenset({"MEAN", "SUM"}), share=1e-4),
)
# Qualcomm's NPU, in its emulator.
HTP = (
    Rounding("the last bit of its floats is its own", frozenset({"DEQUANTIZE"}), share=2.0**-20),
    Rounding(
        "halves of an 8-bit state fall otherwise, and the next steps read it",
        frozenset({"LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"}),
        quanta=2,
    ),
    Rounding(
        "logarithms of floats are 16-bit codes of all that codes can give, some steps off",
        frozenset({"LOG_SOFTMAX"}),
        conditions.on(TensorType.FLOAT32),
        share=2.0**-12,
    ),
    Rounding(
        "it drops the lowest 8 bits of sums of 16-bit codes",
        frozenset({"MEAN", "SUM"}),
        _WIDE,
        conditions.summed(1 << 8),
    ),
    Rounding(
        "it drops the lowest 8 bits of sums of 16-bit codes times 8-bit weights, and of the bias",
        frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}),
        _WIDE,
        conditions.counted(1 << 8, 1),
    ),
    Rounding(
        "it drops the lowest 16 bits of sums of 16-bit codes times 16-bit codes, and scales the "
        "sums by a number of 11 bits",
        frozenset({"BATCH_MATMUL"}),
        _WIDE,
        conditions.counted(1 << 16, 1 << 5),
    ),
    Rounding(
        "exponentials for 16-bit codes have 8 bits",
        frozenset({"SOFTMAX"}),
        _WIDE,
        conditions.part_of_one(8),
    ),
    Rounding(
        "it has a table of its own, and TFLite's own is up to 3 codes off",
        frozenset({"TANH"}),
        _WIDE,
        6,
    ),
    Rounding("its quotients of 16-bit codes have 10 bits", frozenset({"DIV"}), _WIDE, 1 << 6),
    Rounding("the scale from 16-bit codes to others has 11 bits", where=_WIDE, quanta=1 << 4),
    Rounding(
        "of 8-bit weights less their zero point it scales the channels that need more bits",
        frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}),
        quanta=conditions.narrowed_weights,
    ),
    Rounding(
        "of an operator and of a sum or concatenation behind it it makes one step, which does not "
        "clip what is between them",
        frozenset({"ADD", "CONCATENATION", "SUB"}),
        clips=False,
    ),
)
