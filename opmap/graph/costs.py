"""What work takes that rules weigh, in microseconds on one thread.

These are rough times, of a processor with VNNI where nothing else is said. Of the lowerings of an
operator a table knows more, which a program fits to measured times: `bridge/tuning/costs.json`, in
microseconds too.
"""

from __future__ import annotations

from typing import NamedTuple

from tflite_ort.base.records import record
from tflite_ort.opmap.graph.forms import Target

# A product of a layer, and of a depthwise one, which collects its inputs: of codes, of floats.
PRODUCTS, DEPTHWISE_PRODUCTS = (3.7e-6, 8.4e-6), (3.5e-5, 3.2e-5)
# A weight that is read, and an element that is made.
WEIGHT, ELEMENT = 3e-5, 1e-4
# To share a layer between two threads; one of less time stays on one thread.
HANDED_OVER, SHARED = 1.65, 0.3


class SymmetricCosts(NamedTuple):
    """Of quantised convolutions whose weights have the zero point 0.

    Attributes:
        saved: of a product of a depthwise layer.
        nodes: what a node takes.
        cell, input_cell: what the small layers take for a cell of the result, and of the input.
    """

    saved: float = 4.2e-5
    nodes: float = 6.0
    cell: float = 0.024
    input_cell: float = 0.002


class PairedCosts(NamedTuple):
    """Of signed weights without VNNI, on a Zen 3.

    Attributes:
        saved_result, saved_product: what they save of a result, and of a product.
        result, product: what these take with them.
        depthwise_product, element: a product of a depthwise layer, an element of another map.
        search, search_weight: to look for an order, for each map and for each weight.
    """

    saved_result: float = 2e-4
    saved_product: float = 4.5e-6
    result: float = 2.4e-4
    product: float = 1.25e-5
    depthwise_product: float = 9e-5
    element: float = 1.5e-4
    search: float = 300.0
    search_weight: float = 0.025


class RowCosts(NamedTuple):
    """Of rows that are not computed: a product of floats, an element of another operator, and a
    slice."""

    product: float = PRODUCTS[1]
    element: float = 20 * PRODUCTS[1]
    cut: float = 100_000 * PRODUCTS[1]


@record
class RoundingCosts:
    """When products of 8-bit weights are faster with rounded activations.

    A product of codes is faster than one of floats, but nodes have to round the activations first,
    and scale the sums afterwards. Their time is counted in products: in how many of them saves as
    much. With VNNI one saves the difference of `PRODUCTS`.

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
