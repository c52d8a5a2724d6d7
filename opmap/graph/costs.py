"""What work takes on one thread, in microseconds: one table, for rules and for the tuner.

The table is `costs.json`. A section that is called after a kind of CPU, such as ``"x86_64 int8"``,
is about the nodes of lowerings: `python -m benchmarks.lowerings fit` fits it to measured times. The
other sections are rough times, of a processor with VNNI where nothing else is said. A class of this
file says what the numbers of such a section mean.
"""

from __future__ import annotations

import ast
import math
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from tflite_ort.base.shipped import shipped
from tflite_ort.opmap.graph.choices import Chooser, Lowering, plainest
from tflite_ort.opmap.graph.forms import Target
from tflite_ort.schema import OperatorView

_MACHINES = {"AMD64": "x86_64", "arm64": "aarch64"}
# Another lowering than the first has to be better by this factor, or the model may be wrong.
_MARGIN = 0.93


class LayerCosts(NamedTuple):
    """Layers, and what it takes to share one between two threads.

    Attributes:
        code_product, float_product: a product of a layer.
        code_depthwise, float_depthwise: a product of a depthwise layer, which collects its inputs.
        weight: a weight that is read.
        element: an element that is made.
        handed_over: to hand a layer over to another thread, and to wait for it.
        shared: a layer that takes less stays on one thread.
        slice: a node that slices rows.
        row_element: an element of an operator that is no product.
    """

    code_product: float
    float_product: float
    code_depthwise: float
    float_depthwise: float
    weight: float
    element: float
    handed_over: float
    shared: float
    slice: float
    row_element: float


class SymmetricCosts(NamedTuple):
    """Quantized convolutions whose weights have the zero point 0.

    Attributes:
        saved: what such weights save of a product of a depthwise layer.
        nodes: the further nodes.
        cell, input_cell: the small layers, by cell of the result and by cell of the input.
    """

    saved: float
    nodes: float
    cell: float
    input_cell: float


class TileCosts(NamedTuple):
    """Quantized convolutions in tiles (AMX) beside those by weights of the zero point 0.

    A fit to 1,154 layers of 16 to 2,048 channels, 1 to 1,024 cells and windows of 1 to 25 cells. A
    result costs a third more than in the fit, with which half as many layers lose time.

    Attributes:
        saved: what tiles save of a product.
        weight: to read a weight.
        collected: to collect a number of a window, where these are more than cells side by side.
        result: to scale a sum.
    """

    saved: float
    weight: float
    collected: float
    result: float


class WideningCosts(NamedTuple):
    """Maps of floats that get channels of zeros up to a block, measured with AVX-512.

    Attributes:
        node: a node that moves a map out of blocks.
        moved: a number that it moves.
        read: what it takes longer to read a number unblocked, by block of results.
        product: a number times its weights for a block of results.
    """

    node: float
    moved: float
    read: float
    product: float


class PairedCosts(NamedTuple):
    """Signed weights without VNNI, on a Zen 3.

    Attributes:
        saved_result, saved_product: what they save of a result, and of a product.
        result, product: a result and a product by them.
        depthwise_product: a product of a depthwise layer.
        element: an element of another map.
        search, search_weight: to look for an order, by map and by weight.
    """

    saved_result: float
    saved_product: float
    result: float
    product: float
    depthwise_product: float
    element: float
    search: float
    search_weight: float


class RoundingCosts(NamedTuple):
    """Products of 8-bit weights with rounded activations.

    A product of codes is faster than one of floats. But nodes have to round the activations first,
    and to scale the sums afterwards. How many products make up for these nodes was measured, with 2
    to 1,000 rows and 24 to 1,536 columns (`python -m benchmarks.rounding_costs`). The times are
    these numbers, times what a product saves with VNNI.

    Attributes:
        saved: what codes save of a product.
        rows: the nodes that round several rows.
        scaling: the nodes that scale the sums of several rows.
        number: to read or write a number in these nodes.
        row: the nodes that round a single row.
        always: the same with `hybrid="dynamic"` and `"xnnpack"`, which round the row in any case.
        digits: the nodes of a single row in digits.
    """

    saved: float
    rows: float
    scaling: float
    number: float
    row: float
    always: float
    digits: float

    def pay_for_row(self, weights: int) -> bool:
        """Whether so many weights as codes make up for rounding a single row."""
        return weights * self.saved >= self.row


class RoundedImageCosts(NamedTuple):
    """Convolutions of float images and 8-bit filters in 8 bits.

    With `tiles` (AMX) they were measured with 8 to 1,024 channels and windows of 1 to 25 cells, as
    least times of layers beside layers in floats, and then brought down until ten drawn networks
    took least: the changes of layout around a layer are in `number` and `result`, and neighbours
    share them.

    Attributes:
        saved: what codes save of a product.
        weight: what they save of a weight that is read from memory, a quarter of the bytes.
        cached: so many weights of a layer are not.
        nodes: the further nodes.
        number: to round a number of the image.
        run: to collect a run of bytes that a window reads.
        byte: to collect one of these bytes.
        result: to make a result of a sum of codes, and to move it to another layout.
        channels_last: the share of all this for an image that stands channels-last only, which a
            layer in floats would move.
    """

    saved: float
    weight: float
    cached: float
    nodes: float
    number: float
    run: float
    byte: float
    result: float
    channels_last: float


@cache
def table() -> dict[str, dict[str, float]]:
    """Microseconds by section of the table, and by what is counted."""
    # Texts and numbers in JSON are such in Python, and numpy has imported `ast` already.
    sections: dict[str, dict[str, float]] = ast.literal_eval(
        shipped("tflite_ort.opmap.graph", "costs.json").decode()
    )
    return sections


def layer_costs() -> LayerCosts:
    """The costs of layers."""
    return LayerCosts(**table()["layers"])


def symmetric_costs() -> SymmetricCosts:
    """The costs of weights around 0."""
    return SymmetricCosts(**table()["symmetric weights"])


def tile_costs() -> TileCosts:
    """The costs of layers in tiles."""
    return TileCosts(**table()["weights in tiles"])


def widening_costs() -> WideningCosts:
    """The costs of channels of zeros."""
    return WideningCosts(**table()["channels of zeros"])


def paired_costs() -> PairedCosts:
    """The costs of signed weights in pairs."""
    return PairedCosts(**table()["paired weights"])


def rounding_costs(target: Target) -> RoundingCosts:
    """The costs of rounded activations, by how the CPU multiplies codes: x86 with VNNI saves more
    by 8 bits than x86 without, and with tiles still more."""
    return RoundingCosts(**table()[f"rounding {_products(target)}"])


def rounded_image_costs(target: Target) -> RoundedImageCosts:
    """The costs of convolutions of rounded images, by the same."""
    return RoundedImageCosts(**table()[f"rounded images {_products(target)}"])


def _products(target: Target) -> str:
    """How the CPU multiplies codes exactly and fast: with a type of weights, or tiles of int8."""
    return "tiles" if target.tiles and target.weights == "int8" else target.weights


def kind_of_cpu(weights: str) -> str:
    """The kind of this CPU that the model distinguishes, such as ``"x86_64 int8"``.

    Args:
        weights: the type of weights that it multiplies exactly and fast.
    """
    machine = platform.machine()
    return f"{_MACHINES.get(machine, machine)} {weights}"


@cache
def modelled_chooser(weights: str) -> Chooser:
    """Takes the lowering that costs least by the table; the first one on a kind of CPU on which
    nothing was measured."""
    costs = table().get(kind_of_cpu(weights))
    if costs is None:
        return plainest

    def choose(op: OperatorView[Any], lowerings: Sequence[Lowering]) -> str:
        return cheapest(lowerings, costs).name

    return choose


def cheapest(lowerings: Sequence[Lowering], costs: Mapping[str, float]) -> Lowering:
    """The lowering with the least cost; the first one unless another is clearly better."""
    times = [cost_of(lowering, costs) for lowering in lowerings]
    least = min(times)
    return lowerings[times.index(least)] if least < _MARGIN * times[0] else lowerings[0]


def by_cost(lowerings: Sequence[Lowering], weights: str) -> list[Lowering]:
    """The lowerings, the cheapest by the table first; as they are where it has no times."""
    costs = table().get(kind_of_cpu(weights))
    if costs is None:
        return list(lowerings)
    return sorted(lowerings, key=lambda lowering: cost_of(lowering, costs))


def cost_of(lowering: Lowering, costs: Mapping[str, float]) -> float:
    """Microseconds by the table; infinite for work that it has no cost of."""
    try:
        return sum([costs[what] * amount for what, amount in lowering.work.items()])
    except KeyError:
        return math.inf
