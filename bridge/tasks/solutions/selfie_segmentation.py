"""`mediapipe.solutions.selfie_segmentation`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tflite_ort.tasks.network import networks
from tflite_ort.tasks.solutions.models import bundled
from tflite_ort.tasks.solutions.solution import Solution
from tflite_ort.tasks.vision_task import Frame


class SelfieSegmentation(Solution):
    """How sure each pixel is part of a person.

    Args:
        model_selection: 1 for the network for landscape pictures.
    """

    _outputs: ClassVar = ("segmentation_mask",)

    def __init__(self, model_selection: int = 0) -> None:
        super().__init__()
        kind = "_landscape" if model_selection else ""
        base = bundled({"segmenter": f"selfie_segmentation/selfie_segmentation{kind}.tflite"})
        (self._network,) = networks(base, {"segmenter": "segmentation"})

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        masks = self._network(frame.pixels, roi=frame.rect)["confidence_masks"]
        return {"segmentation_mask": np.ascontiguousarray(masks[0])}

    def reset(self) -> None:
        """There is nothing to forget."""
