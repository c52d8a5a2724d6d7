"""Models of a batch of samples, made from models of one sample by a rule for each operator.

`transformation` follows the operators; `graph` says in which forms a batch of a tensor stands;
`registry` holds the rules, which the other modules register; `sample_loop` runs what has no rule
sample by sample.
"""

from __future__ import annotations

from tflite_ort.batching import elementwise, layers, recurrent, reshaping, slicing, state

__all__ = ["elementwise", "layers", "recurrent", "reshaping", "slicing", "state"]
