"""What a package adds to tflite-ort: its entry points in pyproject.toml name the three below.

pip install examples/package
tflite-ort run model.tflite picture.jpg --resolver tflite_ort:InstalledOpResolver
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort import MutableOpResolver, Registration
from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import Projection
from tflite_ort.decode.networks import Kind, Network
from tflite_ort.decode.nodes import Nodes
from tflite_ort.providers.traits import ProviderTraits

# Of a provider that the library has no row for: nothing special is known of it.
TRAITS = ProviderTraits(host_memory=True)


def double(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A custom operator, as a function of numpy arrays."""
    return x * np.float32(2)


def add_operators(resolver: MutableOpResolver) -> None:
    """Called with a resolver, to which it adds operators."""
    resolver.add_custom("ExampleDouble", Registration(function=double))


def brightness(network: Network) -> Kind | None:
    """Called with each network: what it is, or None. This one knows networks that give how dark and
    how bright a picture is, one after the other."""
    if network.picture is None or network.outputs != [(1, 2)]:
        return None

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        scores = nodes.op("Softmax", nodes.reshape(raw[0], 2), axis=0)
        best, places = nodes.ops("TopK", scores, np.array([2]), outputs=2)
        return {"scores": (best, np.float32, [2]), "classes": (places, np.int64, [2])}

    return Kind("brightness", build, network.prepared())
