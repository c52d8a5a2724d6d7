"""What the instruction sets of a processor mean for graphs."""

from __future__ import annotations

import pytest

from tests.ops.test_convolution_rounded import convolution
from tests.optimised import optimised_nodes
from tflite_ort.base.records import replace
from tflite_ort.opmap.graph.costs import rounded_image_costs, rounding_costs
from tflite_ort.providers import processor
from tflite_ort.providers.traits import CPU
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.tuning import session_target as targets
from tflite_ort.tuning.session_target import session_target

SETS = {
    "avx2": (8, False),
    "avx2 avx512f avx512_vnni": (16, False),
    "avx2 avx512f avx512_vnni amx_bf16 amx_tile amx_int8": (16, True),
    "": (0, False),
}


@pytest.mark.parametrize("flags", SETS)
def test_instruction_sets(monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    monkeypatch.setattr(processor, "processor", lambda: ["model : 1", f"flags\t\t: {flags}"])
    noted = processor.blocked_channels, processor.multiplies_in_tiles, processor._flags
    for each in noted:
        each.cache_clear()
    try:
        target = session_target(CPU)
    finally:
        for each in noted:
            each.cache_clear()
    assert (target.block, target.tiles) == SETS[flags]


def test_tiles_save_more_of_a_product_of_signed_codes() -> None:
    plain = session_target(CPU)
    signed = replace(plain, weights="int8", tiles=False)
    unsigned = replace(plain, weights="uint8", tiles=False)
    for costs in (rounding_costs, rounded_image_costs):
        assert costs(replace(signed, tiles=True)).saved > costs(signed).saved
        assert costs(replace(unsigned, tiles=True)) == costs(unsigned)


@pytest.mark.skipif(exact_weight_type() != "int8", reason="weights are signed with VNNI")
@pytest.mark.parametrize("tiles", [False, True])
def test_with_tiles_smaller_layers_are_rounded(
    monkeypatch: pytest.MonkeyPatch, tiles: bool
) -> None:
    """A layer of a DenseNet: AMX multiplies it in 27 us and floats take 133 (docs/tuning_study.md),
    but without AMX the nodes that round and collect cost more than it saves."""
    monkeypatch.setattr(targets, "multiplies_in_tiles", lambda: tiles)
    layer = convolution((1, 16, 16, 128), 32, 3)
    nodes = optimised_nodes(layer.model(), hybrid="auto")
    assert nodes["Conv"] == (0 if tiles else 1)


@pytest.mark.parametrize(("depth", "convolutions"), [(256, 1), (992, 0)])
def test_weights_from_memory_are_read_as_codes(depth: int, convolutions: int) -> None:
    """Layers of two cells: of few products, but of more weights than a cache keeps."""
    nodes = optimised_nodes(convolution((1, 1, 2, depth), 128, 1).model(), hybrid="auto")
    assert nodes["Conv"] == convolutions
