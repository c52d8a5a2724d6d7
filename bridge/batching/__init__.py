"""Models of a batch of samples, made from models of one sample by a rule for each operator.

`transformation` follows the operators; `graph` says in which forms a batch of a tensor stands;
`registry` holds the rules, which the other modules register; `sample_loop` runs what has no rule
sample by sample. `sample_axes` keeps models as they are whose file leaves the number of samples
open, if `proofs` has one for each operator.
"""

from __future__ import annotations

from tflite_ort.batching import elementwise, layers, recurrent, reshaping, slicing, state

__all__ = ["elementwise", "layers", "recurrent", "reshaping", "slicing", "state"]
