"""When products of 8-bit weights are faster with rounded activations, by kind of CPU.

A product of codes is faster than one of floats, but nodes have to round the activations first, and
scale the sums afterwards. Their time is counted in products: in how many of them saves as much.
"""

from __future__ import annotations

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Target


@record
class RoundingCosts:
    """What rounding takes, in products; and with how many weights codes are faster.

    Args:
        rows: the nodes that round several rows.
        scaling: the nodes that scale the sums of several rows.
        number: reading or writing a number in these nodes.
        image: the nodes that round an image.
        collected: a byte of an image that is collected, and a result in another layout.
        row_weights: a single row is rounded for so many weights and more.
        rounded_weights: with `hybrid="dynamic"` and `"xnnpack"`, which round always, so many
            weights and more are multiplied as codes, fewer as floats.
        digit_weights: a single row is multiplied in digits by so many weights and more.
        block_rows: up to so many rows are rounded for 4-bit weights that have scales in blocks.
    """

    rows: int
    scaling: int
    number: int
    image: int
    collected: int
    row_weights: int
    rounded_weights: int
    digit_weights: int
    block_rows: int


# By the type of weights that the CPU multiplies exactly and fast, see `Target`. x86 with VNNI saves
# more by 8 bits than x86 without. Measured with 2 to 1,000 rows and 24 to 1,536 columns:
# `python -m benchmarks.rounding_costs`.
COSTS = {
    "int8": RoundingCosts(
        rows=360_000,
        scaling=180_000,
        number=34,
        image=1_000_000,
        collected=34,
        row_weights=2**16,
        rounded_weights=0,
        digit_weights=2**18,
        block_rows=1,
    ),
    "uint8": RoundingCosts(
        rows=300_000,
        scaling=0,
        number=95,
        image=1_300_000,
        collected=50,
        row_weights=2**16,
        rounded_weights=2**16,
        digit_weights=2**19,
        block_rows=16,
    ),
}


def rounding_costs(target: Target) -> RoundingCosts:
    """The costs on the CPU that the graph is made for."""
    return COSTS[target.weights]
