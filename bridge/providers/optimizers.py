"""Which of ONNX Runtime's optimisers a graph needs.

A session walks the graph once for each of fifty optimisers, which takes as long as all else that
it does. Most of them look for operators that a graph does not have. A session is told to leave
these out; what it makes of the graph is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

_QUANTIZED = frozenset({"DequantizeLinear", "QuantizeLinear"})
_POOLS = frozenset({"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"})
_LAYERS = _POOLS | {"Conv", "ConvInteger", "ConvTranspose", "FusedConv", "QLinearConv"}
_PRODUCTS = frozenset({"FusedMatMul", "MatMul", "MatMulNBits"})
# Of a MatMul and an Add the basic ones make a Gemm.
_GEMMS = frozenset({"Gemm", "MatMul"})
_ATTENTION = _PRODUCTS | {"Attention", "GroupQueryAttention", "MultiHeadAttention"}
_NORMS = frozenset(
    {"LayerNormalization", "RMSNormalization", "ReduceMean", "SkipLayerNormalization"}
)
_NORMS |= {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"}
_UNITS = frozenset({"Erf", "FastGelu", "Gelu", "QuickGelu", "Tanh"})

# By optimiser, operators of which it looks for one at least. First those that ONNX Runtime calls
# basic. What is in neither table is never left out.
_BASIC: Mapping[str, frozenset[str]] = {
    "DoubleQDQPairsRemover": _QUANTIZED,
    "MatMulAddFusion": _PRODUCTS,
    "ReshapeFusion": frozenset({"Reshape"}),
    "FreeDimensionOverrideTransformer": frozenset(),  # a session would have to be given sizes
    "GeluFusionL1": _UNITS,
    "LayerNormFusionL1": _NORMS,
    "QDQPropagationTransformer": _QUANTIZED,
    "WeightBiasQuantization": _QUANTIZED,
    "EnsureUniqueDQForNodeUnit": _QUANTIZED,
    "ConstantFoldingDQ": _QUANTIZED,
    "TransposeOptimizer": frozenset({"Transpose"}),
}
_FURTHER: Mapping[str, frozenset[str]] = {
    "Level2_RuleBasedTransformer": _QUANTIZED | _GEMMS,
    "QDQS8ToU8Transformer": _QUANTIZED,
    "QDQSelectorActionTransformer": _QUANTIZED,
    "QDQFinalCleanupTransformer": _QUANTIZED,
    "DQMatMulToMatMulNBits": _QUANTIZED,
    "DQMatMulNBitsFusion": _QUANTIZED,
    "GemmActivationFusion": _GEMMS,
    "MatMulIntegerToFloatFusion": frozenset({"MatMulInteger"}),
    "DynamicQuantizeMatMulFusion": frozenset({"DynamicQuantizeLinear"}),
    "ConvActivationFusion": _LAYERS,
    "ConvAddActivationFusion": _LAYERS,
    "NchwcTransformer": _LAYERS,
    "NhwcTransformer": _LAYERS,
    "GeluFusionL2": _UNITS,
    "BiasGeluFusion": _UNITS,
    "FastGeluFusion": _UNITS,
    "QuickGeluFusion": frozenset({"Sigmoid"}),
    "SwiGluFusion": frozenset({"Sigmoid", "QuickGelu"}),
    "LayerNormFusionL2": _NORMS,
    "SimplifiedLayerNormFusion": _NORMS,
    "SkipLayerNormFusion": _NORMS,
    "BiasSkipLayerNormFusion": _NORMS,
    "EmbedLayerNormFusion": _NORMS,
    "AttentionFusion": _ATTENTION,
    "GroupQueryAttentionFusion": _ATTENTION,
    "GroupQueryAttentionPreNormFusion": _ATTENTION,
    "GqaValueLayoutTransformer": _ATTENTION,
    "MatmulTransposeFusion": _PRODUCTS,
    "MatMulScaleFusion": _PRODUCTS,
    "MatMulActivationFusion": _PRODUCTS,
    "MatMulNBitsFusion": _PRODUCTS,
    "MatMulNBitsMlpFusion": _PRODUCTS,
    "MatMulNBitsQkvFusion": _PRODUCTS,
    "MatMulNBitsQLoRAFusion": _PRODUCTS,
    "BiasSoftmaxFusion": frozenset({"Softmax"}),
    "BiasDropoutFusion": frozenset({"Dropout"}),
    "GatherToSplitFusion": frozenset({"Gather"}),
    "GatherToSliceFusion": frozenset({"Gather"}),
    "GatherSliceToSplitFusion": frozenset({"Gather", "Slice"}),
    "SliceConcatToSpaceToDepthFusion": frozenset({"Slice"}),
}
# Further optimisers change graphs with these alone.
_LOOKED_FOR = frozenset[str]().union(*_FURTHER.values(), {"Transpose"})
# Single nodes of these become others, such as those of another layout.
_CHANGED_ALONE = _LAYERS | _QUANTIZED | (_ATTENTION - _PRODUCTS)


@lru_cache(maxsize=256)
def left_out(operators: frozenset[str]) -> frozenset[str]:
    """The optimisers that find nothing in a graph of these operators."""
    tables = (_BASIC, _FURTHER) if needs_more(operators) else (_BASIC,)
    return frozenset(
        name for table in tables for name, wanted in table.items() if not wanted & operators
    )


def keep_alone(operators: Collection[str]) -> bool:
    """Whether all leave a graph as it is that has one node, of one of these operators, which reads
    what the graph is given: there is nothing to join it with."""
    return _CHANGED_ALONE.isdisjoint(operators)


def needs_more(operators: Collection[str]) -> bool:
    """Whether any but the basic ones may change a graph of these operators."""
    return not _LOOKED_FOR.isdisjoint(operators)
