"""All rules, in the order in which they are asked.

The gains were measured with AVX-512 VNNI and AMX on one thread; `python -m benchmarks.rules`
measures them anew.
"""

from __future__ import annotations

from tflite_ort.opmap.rules import sought
from tflite_ort.opmap.rules.rule import (
    Rule,
    Stage,
    any_target,
    blocks,
    cpu,
    keeps_axes,
    paired,
    parts_layers,
    rounding,
    tiles,
)
from tflite_ort.schema import Op

_REWRITE, _LOWERING = Stage.REWRITE, Stage.LOWERING
_TESTS = "tests/rules/"
_EXACT = "exact"
_LARGEST = "3e-6 of the largest value"
_NODES, _SESSION = Stage.NODES, Stage.SESSION
_OPERATORS, _GROUPS, _TREES = Stage.OPERATORS, Stage.GROUPS, Stage.TREES

RULES: tuple[Rule, ...] = (
    Rule(
        "long runs",
        *(Stage.TARGET, "targets:long_runs", (), any_target),
        *(_EXACT, "1.25 movenet", "tests/idioms/test_long_runs.py"),
    ),
    Rule(
        "codes with channels last",
        *(Stage.TARGET, "targets:channels_last", (), cpu),
        *(_EXACT, "1.1 drawn networks", "tests/test_node_counts.py"),
    ),
    Rule(
        "codes by a table",
        *(Stage.TARGET, "targets:code_tables", (), cpu),
        *(_EXACT, "1.05 drawn networks", "tests/test_node_counts.py"),
    ),
    Rule(
        "written PRELU",
        *(_OPERATORS, "operators.written_prelu:with_prelu", sought.SLOPED, any_target),
        *("sign of a zero", "1.8 silentface", _TESTS + "test_written_prelu.py"),
    ),
    Rule(
        "written GELU",
        *(_OPERATORS, "operators.written_gelu:with_gelu"),
        *((frozenset({Op.TANH, Op.MUL, Op.ADD}),), cpu),
        *("3e-7 of each number", "2.4 a layer", _TESTS + "test_written_gelu.py"),
    ),
    Rule(
        "written upsampling",
        *(_OPERATORS, "operators.written_upsampling:with_upsampling", sought.REPEATED, any_target),
        *(_EXACT, "1.18 drawn networks", _TESTS + "test_written_upsampling.py"),
    ),
    Rule(
        "joined steps",
        *(_OPERATORS, "operators.joined_steps:with_joined_steps"),
        *((frozenset({Op.FULLY_CONNECTED, Op.PACK}),), any_target),
        *("order of float sums", "8.7 TimeDistributed", _TESTS + "test_joined_steps.py"),
    ),
    Rule(
        "needless reshapes",
        *(_OPERATORS, "operators.needless_reshapes:without_reshapes", sought.BROADCAST, any_target),
        *(_EXACT, "1.09 drawn networks", _TESTS + "test_needless_reshapes.py"),
    ),
    Rule(
        "sequences as images",
        *(_OPERATORS, "operators.sequences:with_images", sought.TIME, any_target),
        *("order of float sums", "1.67 drawn networks", _TESTS + "test_sequences.py"),
    ),
    Rule(
        "unread rows",
        *(_OPERATORS, "operators.unread_rows:without_unread_rows"),
        *((frozenset({Op.SLICE}), frozenset({Op.STRIDED_SLICE})), cpu),
        *(_EXACT, "1.26 distilbert", _TESTS + "test_unread_rows.py"),
    ),
    Rule(
        "paired cells",
        *(_GROUPS, "operators.paired_cells:paired"),
        *((frozenset({Op.UNIDIRECTIONAL_SEQUENCE_LSTM}),), cpu),
        *(_EXACT, "1.55 bidirectional LSTM of int8", _TESTS + "test_paired_cells.py"),
    ),
    Rule(
        "pooled columns",
        *(_GROUPS, "operators.pooled_columns:pooled"),
        *((frozenset({Op.MAX_POOL_2D, Op.CONV_2D}),), cpu),
        *(_EXACT, "1.16 rock_paper_scissors", _TESTS + "test_pooled_columns.py"),
    ),
    Rule(
        "unrolled cells",
        *(_GROUPS, "operators.groups:unrolled", sought.CELLS, any_target),
        *("order of float sums", "5.9 unrolled GRU and LSTM", _TESTS + "test_unrolled_cells.py"),
    ),
    Rule(
        "group norms",
        *(_TREES, "operators.group_normalization:GROUP_NORMS", sought.ROOTS[:1], any_target),
        *(_LARGEST, "1.0 stable diffusion", _TESTS + "test_group_normalization.py"),
    ),
    Rule(
        "norms",
        *(_TREES, "operators.normalization:NORMS", sought.ROOTS, any_target),
        *("2e-6 of the largest value", "1.11 bert", _TESTS + "test_normalization.py"),
    ),
    Rule(
        "sigmoid times its input",
        *(_TREES, "operators.sigmoid:SIGMOIDS", (frozenset({Op.LOGISTIC}),), any_target),
        *("1.5e-7; 4e-8 below -16", "1.80 EfficientNet-B0", _TESTS + "test_sigmoid.py"),
    ),
    Rule(
        "NEG of codes",
        *(_TREES, "operators.negated_codes:NEGATIVES"),
        *((frozenset({Op.DEQUANTIZE, Op.NEG, Op.QUANTIZE}),), cpu),
        *(_EXACT, "1.05 drawn transformers", _TESTS + "test_negated_codes.py"),
    ),
    Rule(
        "Mish",
        *(_TREES, "operators.mish:MISHES", (frozenset({Op.EXP, Op.LOG}),), cpu),
        *("3e-7 of each number", "1.13 drawn networks", _TESTS + "test_mish.py"),
    ),
    Rule(
        "SiLU of 16-bit codes",
        *(_TREES, "operators.sigmoid_codes:SILU_OF_CODES", sought.SILU, cpu),
        *(_EXACT, "1.1 EfficientNet 16x8", _TESTS + "test_sigmoid_codes.py"),
    ),
    Rule(
        "attention over a cache",
        *(_TREES, "operators.cached_attention:CACHED_ATTENTION", sought.ATTENTION, any_target),
        *(_LARGEST, "2.48 tinyllama", _TESTS + "test_cached_attention.py"),
    ),
    Rule(
        "attention",
        *(_TREES, "operators.attention:ATTENTION", sought.ATTENTION, any_target),
        *(_LARGEST, "1.08 distilbert", _TESTS + "test_attention.py"),
    ),
    Rule(
        "rotations",
        *(_TREES, "operators.rotation:ROTATIONS"),
        *((frozenset({Op.CONCATENATION, Op.MUL, Op.SLICE}),), any_target),
        *("2e-6 of the largest value", "1.07 tinyllama", _TESTS + "test_rotation.py"),
    ),
    Rule(
        "rows of a cache",
        *(_TREES, "operators.cache_rows:CACHE_ROWS", sought.CACHES, any_target),
        *(_EXACT, "caches of 4,096 steps", _TESTS + "test_cache_rows.py"),
    ),
    Rule(
        "returns",
        *(_GROUPS, "operators.groups:returned", (frozenset({Op.TRANSPOSE}),), any_target),
        *(_EXACT, "1.28 segformer", _TESTS + "test_returns.py"),
    ),
    Rule(
        "weights that meet the image",
        *(_REWRITE, "operators.reached_taps:within_image", sought.CONVOLUTIONS, any_target),
        *(_EXACT, "1.15 deeplabv3", "tests/rules/test_reached_taps.py"),
    ),
    Rule(
        "rounded images",
        *(_LOWERING, "lowerings.rounded_images:rounded_images", (Op.CONV_2D,), any_target),
        *("as `hybrid` says", "1.17 mobilevit", "tests/idioms/test_hybrid_products.py"),
    ),
    Rule(
        "PAD into a convolution",
        *(_REWRITE, "operators.absorbed_pad:without_pad", sought.CONVOLUTIONS, any_target),
        *(_EXACT, "", "tests/idioms/test_padding.py"),
    ),
    Rule(
        "PAD into a pool",
        *(_REWRITE, "operators.absorbed_pad:into_pool", (Op.MAX_POOL_2D,), any_target),
        *(_EXACT, "", "tests/idioms/test_padding.py"),
    ),
    Rule(
        "rows of few channels",
        *(_LOWERING, "lowerings.rows_of_channels:rows_of_channels", (Op.CONV_2D,), cpu),
        *("order of float sums", "1.10 networks of images", "tests/ops/test_convolution.py"),
    ),
    Rule(
        "picked channels",
        *(_LOWERING, "operators.picked_channels:over_source", sought.CONVOLUTIONS, cpu),
        *("exact for codes, order of float sums", "1.26 shufflenet"),
        "tests/rules/test_picked_channels.py",
    ),
    Rule(
        "picked channels, quantized",
        *(_LOWERING, "operators.picked_channels:requantized_source", (Op.QUANTIZE,), cpu),
        *(_EXACT, "1.26 shufflenet", "tests/rules/test_picked_channels.py"),
    ),
    Rule(
        "picked channels, moved",
        *(_LOWERING, "operators.picked_channels:moved_together", sought.PICKING, cpu),
        *(_EXACT, "1.98 shufflenet of persons", "tests/rules/test_picked_channels.py"),
    ),
    Rule(
        "wide channels",
        *(_LOWERING, "operators.wide_channels:over_wide", sought.CONVOLUTIONS, cpu),
        *(_EXACT, "1.08 deeplabv3", "tests/rules/test_wide_channels.py"),
    ),
    Rule(
        "column groups",
        *(_LOWERING, "lowerings.column_groups:column_groups", sought.CONVOLUTIONS, cpu),
        *(_EXACT, "1.46 vww", "tests/test_lowerings.py"),
    ),
    Rule(
        "depthwise multiplier",
        *(_LOWERING, "lowerings.repeated_channels:repeated_channels", (Op.DEPTHWISE_CONV_2D,), cpu),
        *(_EXACT, "up to 100 single layers of codes", "tests/ops/test_convolution.py"),
    ),
    Rule(
        "phases",
        *(_LOWERING, "lowerings.phases:in_phases", (Op.TRANSPOSE_CONV,), cpu),
        *("exact for codes, order of float sums", "1.07 unet_int8", "tests/test_lowerings.py"),
    ),
    Rule(
        "PRELU in blocks",
        *(_LOWERING, "lowerings.prelu:in_blocks", (Op.PRELU,), blocks),
        *(_EXACT, "", "tests/ops/test_activation.py"),
    ),
    Rule(
        "PRELU of one slope",
        *(_LOWERING, "lowerings.prelu:of_one_slope", (Op.PRELU,), cpu),
        *(_EXACT, "", "tests/ops/test_activation.py"),
    ),
    Rule(
        "ELU in parts",
        *(_LOWERING, "lowerings.elu_in_parts:elu_in_parts", (Op.ELU,), cpu),
        *("1.2e-7", "1.15 drawn networks", _TESTS + "test_elu_in_parts.py"),
    ),
    Rule(
        "TANH by a sigmoid",
        *(_LOWERING, "lowerings.tanh_by_sigmoid:tanh_by_sigmoid", (Op.TANH,), cpu),
        *(_EXACT, "1.14 drawn networks", _TESTS + "test_tanh_by_sigmoid.py"),
    ),
    Rule(
        "softmax of floats",
        *(_LOWERING, "lowerings.softmax_of_floats:softmax_of_floats", (Op.SOFTMAX,), cpu),
        *(_EXACT, "1.05 bert int8", "tests/test_lowerings.py"),
    ),
    Rule(
        "rows as cells",
        *(_LOWERING, "lowerings.rows_as_cells:rows_as_cells", (Op.FULLY_CONNECTED,), cpu),
        *(_EXACT, "", "tests/test_lowerings.py"),
    ),
    Rule(
        "means as layers",
        *(_LOWERING, "lowerings.pools_as_layers:pools_as_layers", (Op.AVERAGE_POOL_2D,), blocks),
        *("order of float sums", "1.13 NASNet", _TESTS + "test_pools_as_layers.py"),
    ),
    Rule(
        "sums of windows",
        *(_LOWERING, "lowerings.window_sums:window_sums", (Op.AVERAGE_POOL_2D,), cpu),
        *(_EXACT, "2.2 image_example1", "tests/test_lowerings.py"),
    ),
    Rule(
        "products of a Resize",
        *(_LOWERING, "lowerings.resizing_products:resized_by_products", (Op.RESIZE_BILINEAR,), cpu),
        *(_EXACT, "1.18 deeplabv3", "tests/rules/test_resizing_products.py"),
    ),
    Rule(
        "layout of a Resize",
        *(_LOWERING, "lowerings.resizing_products:layout_of_resize", (Op.RESIZE_BILINEAR,), cpu),
        *(_EXACT, "", "tests/ops/test_image_resizing.py"),
    ),
    Rule(
        "gathered pixels",
        *(_LOWERING, "lowerings.gathered_pixels:gathered_pixels"),
        *((Op.RESIZE_NEAREST_NEIGHBOR,), cpu),
        *(_EXACT, "1.18 drawn networks", _TESTS + "test_moved_codes.py"),
    ),
    Rule(
        "spread channels",
        *(_LOWERING, "lowerings.spread_channels:spread_channels", sought.SPREAD, cpu),
        *(_EXACT, "1.2 drawn networks", _TESTS + "test_moved_codes.py"),
    ),
    Rule(
        "unpacked tables",
        *(_LOWERING, "lowerings.unpacked_tables:unpacked_tables", (Op.EMBEDDING_LOOKUP,), cpu),
        *(_EXACT, "", "tests/ops/test_lookup.py"),
    ),
    Rule(
        "large tables of codes",
        *(_LOWERING, "lowerings.large_tables:large_tables", (Op.GATHER,), cpu),
        *(_EXACT, "memory: no copy of a table", "tests/providers/test_large_tables.py"),
    ),
    Rule(
        "GridSample",
        *(_LOWERING, "lowerings.sampled_grid:sampled_grid", ("TransformTensorBilinear",), cpu),
        *("order of float sums", "MediaPipe's face mesh with attention", "tests/test_warp.py"),
    ),
    Rule(
        "rows in codes",
        *(_LOWERING, "lowerings.coded_rows:coded_rows", (Op.FULLY_CONNECTED,), cpu),
        *("as `hybrid` says", "1.39 bert", _TESTS + "test_same_numbers.py"),
    ),
    Rule(
        "rows in doubles",
        *(_LOWERING, "lowerings.sums_in_doubles:doubled_rows", (Op.FULLY_CONNECTED,), cpu),
        *(_EXACT, "1.47 drawn networks", _TESTS + "test_sums_in_doubles.py"),
    ),
    Rule(
        "cells in doubles",
        *(_LOWERING, "lowerings.sums_in_doubles:doubled_cells", (Op.CONV_2D,), cpu),
        *(_EXACT, "1.44 drawn networks", _TESTS + "test_sums_in_doubles.py"),
    ),
    Rule(
        "rows of 4 bits",
        *(_LOWERING, "lowerings.rows_of_4_bits:rows_of_4_bits", (Op.FULLY_CONNECTED,), cpu),
        *("as `hybrid` says", "", _TESTS + "test_same_numbers.py"),
    ),
    Rule(
        "integer cells",
        *(_LOWERING, "lowerings.integer_cells:integer_cells", sought.CELLS_OF_CODES, cpu),
        *(_EXACT, "", _TESTS + "test_same_numbers.py"),
    ),
    Rule(
        "cells of codes step by step",
        *(_LOWERING, "lowerings.unrolled_codes:unrolled_lstm", sought.CELLS_OF_CODES, paired),
        *("one quantum in most", "on an NPU: LSTM", _TESTS + "test_unrolled_codes.py"),
    ),
    Rule(
        "SVDF of codes",
        *(_LOWERING, "lowerings.svdf_of_codes:svdf_of_codes", (Op.SVDF,), cpu),
        *(_EXACT, "", _TESTS + "test_same_numbers.py"),
    ),
    Rule(
        "means of codes",
        *(_LOWERING, "lowerings.code_means:code_means", (Op.MEAN, Op.SUM), cpu),
        *(_EXACT, "1.21 convnext", _TESTS + "test_code_means.py"),
    ),
    Rule(
        "moves of floats as moves of codes",
        *(_LOWERING, "lowerings.moved_codes:moved_codes", sought.MOVES, rounding),
        *(_EXACT, "on an NPU: style transfer", _TESTS + "test_moved_floats.py"),
    ),
    Rule(
        "LOG_SOFTMAX of floats as of codes",
        *(_LOWERING, "lowerings.log_softmax_of_codes:log_softmax_of_codes"),
        *((Op.LOG_SOFTMAX,), rounding),
        *("1e-4", "on an NPU: lenet", _TESTS + "test_log_softmax_of_codes.py"),
    ),
    Rule(
        "sums of 16-bit codes as products",
        *(_LOWERING, "lowerings.paired_sums:paired_sums", (Op.MEAN, Op.SUM), paired),
        *("one quantum", "on an NPU: bert with 16-bit activations", _TESTS + "test_paired_sums.py"),
    ),
    Rule(
        "SUB as a sum",
        *(_LOWERING, "lowerings.subtracted_codes:subtracted_codes", (Op.SUB,), cpu),
        *("one code, for at most 64 of all pairs", "", _TESTS + "test_same_numbers.py"),
    ),
    Rule(
        "widened by a table",
        *(_LOWERING, "lowerings.widened_by_table:widened_by_table", (Op.QUANTIZE,), cpu),
        *(_EXACT, "", _TESTS + "test_same_numbers.py"),
    ),
    Rule(
        "transforms of short rows",
        *(_LOWERING, "lowerings.short_rows:short_rows", (Op.RFFT2D,), cpu),
        *("order of float sums", "", _TESTS + "test_same_numbers.py"),
    ),
    Rule(
        "indices from the end",
        *(_NODES, "nodes.indices_from_end:read_from_end", ("Gather",), cpu),
        *(_EXACT, "1.22 drawn transformers", _TESTS + "test_indices_from_end.py"),
    ),
    Rule(
        "negated layers",
        *(_NODES, "nodes.negated_layers:negate_layers", ("Neg",), cpu),
        *("sign of a zero", "1.09 drawn networks", _TESTS + "test_negated_layers.py"),
    ),
    Rule(
        "hard sigmoids",
        *(_NODES, "nodes.hard_sigmoids:join_hard_sigmoids", ("Clip",), cpu),
        *("order of float sums", "1.19 MobileNetV3", _TESTS + "test_hard_sigmoids.py"),
    ),
    Rule(
        "blocks of channels",
        *(_NODES, "nodes.blocks:keep_blocks", ("Conv",), blocks),
        *("order of float sums", "1.33 face mesh", "tests/rules/test_blocks.py"),
    ),
    Rule(
        "elements of a table",
        *(_NODES, "nodes.table_lookups:look_up_elements", ("Gather",), cpu),
        *(_EXACT, "1.7 drawn networks", _TESTS + "test_table_lookups.py"),
    ),
    Rule(
        "joined sums",
        *(_NODES, "nodes.joined_sums:join_sums", ("Add",), cpu),
        *("order of float sums", "1.01 bert", "tests/rules/test_joined_sums.py"),
    ),
    Rule(
        "lost biases",
        *(_NODES, "nodes.lost_biases:drop_lost_biases", ("Attention",), cpu),
        *("rounds less", "1.00 bert", "tests/rules/test_lost_biases.py"),
    ),
    Rule(
        "fewer reshapes",
        *(_NODES, "nodes.fewer_reshapes:drop_reshapes", sought.RESHAPED, cpu),
        *("order of float sums", "1.06 drawn transformers", _TESTS + "test_fewer_reshapes.py"),
    ),
    Rule(
        "longer runs",
        *(_NODES, "nodes.longer_runs:lengthen_runs", sought.BROADCASTING, cpu),
        *(_EXACT, "1.4 EfficientNet 16x8", _TESTS + "test_longer_runs.py"),
    ),
    Rule(
        "pairs around codes",
        *(_NODES, "nodes.paired_codes:pair_codes", ("QuantizeLinear", "DequantizeLinear"), paired),
        *(_EXACT, "", "tests/rules/test_paired_codes.py"),
    ),
    Rule(
        "reductions keep axes",
        *(_NODES, "nodes.kept_axes:keep_axes"),
        *((*sought.REDUCING, "If", "Loop", "Scan"), keeps_axes),
        *(_EXACT, "", "tests/rules/test_kept_axes.py"),
    ),
    Rule(
        "parted layers",
        *(_NODES, "nodes.parted_layers:part_layers", sought.LAYERS, parts_layers),
        *(_EXACT, "", "tests/rules/test_parted_layers.py"),
    ),
    Rule(
        "layers of codes as one node",
        *(_SESSION, "nodes.quantized_layers:fuse_layers", ("QuantizeLinear",), cpu),
        *(_EXACT, "load: 1.23 MobileNet V2", "tests/rules/test_quantized_layers.py"),
    ),
    Rule(
        "weights around zero",
        *(_SESSION, "nodes.symmetric_layers:make_symmetric", sought.QLINEAR, cpu),
        *(_EXACT, "1.35 MobileNet V2", "tests/rules/test_symmetric_layers.py"),
    ),
    Rule(
        "layers in tiles",
        *(_SESSION, "nodes.tiled_layers:multiply_in_tiles", sought.QLINEAR, tiles),
        *(_EXACT, "1.17 ResNetV2", _TESTS + "test_tiled_layers.py"),
    ),
    Rule(
        "signed weights in pairs",
        *(_SESSION, "nodes.paired_layers:make_paired", sought.QLINEAR, cpu),
        *(_EXACT, "1.25 shufflenet, without VNNI", "tests/rules/test_paired_layers.py"),
    ),
)
