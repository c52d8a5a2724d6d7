"""What graphs are made for, on this machine."""

from __future__ import annotations

from tflite_ort.base.records import replace
from tflite_ort.opmap import Target
from tflite_ort.opmap.graph.costs import modelled_chooser
from tflite_ort.providers.processor import blocked_channels, multiplies_in_tiles
from tflite_ort.providers.traits import traits_of
from tflite_ort.providers.trials import exact_weight_type


def session_target(provider: str) -> Target:
    """What graphs for a provider are made for: its traits, and what its kernels do on this
    processor."""
    traits = traits_of(provider)
    weights = exact_weight_type() if traits.exact_weights else traits.target.weights
    target = replace(traits.target, weights=weights)
    if not target.cpu_kernels:
        return target
    chooser, tiles = modelled_chooser(weights), multiplies_in_tiles()
    return replace(target, block=blocked_channels(), tiles=tiles, choose=chooser)
