"""tf.text's operators on sequences: states, trees, parts that two have in common."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels import tokenizers
from tflite_ort.fallback_kernels.idioms.row_splits import check_splits
from tflite_ort.fallback_kernels.idioms.spanning_tree import best_sources
from tflite_ort.fallback_kernels.idioms.state_sequences import Transitions, greedy, viterbi
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_MOST_PAIRS, _MOST_STATES = 1 << 32, 1 << 24

# Custom operators of TFLite too.
flex_kernel("TFText>NgramsStringJoin")(tokenizers.ngrams)
flex_kernel("TFText>RoundRobinTrim")(tokenizers.round_robin_trim)
flex_kernel("TFText>RoundRobinGenerateMasks")(tokenizers.round_robin_masks)


@flex_kernel("ConstrainedSequence")
def constrained_sequence(op: View, inputs: Inputs, state: State) -> Outputs:
    """The states of each sequence of scores, in a line, and their splits; -1 where none can be."""
    scores, lengths, allowed, weights = inputs
    node = node_of(op)
    if scores.ndim not in (2, 3):
        raise KernelError(f"scores have shape {list(scores.shape)}, expected 2 or 3 dimensions")
    scores = scores if scores.ndim == 3 else scores[None]
    sizes = lengths.reshape(-1).tolist()
    if len(sizes) != len(scores) or not all(0 <= size <= scores.shape[1] for size in sizes):
        raise KernelError(f"lengths {sizes[:9]} for scores {list(scores.shape)}")
    if scores.shape[2] ** 2 > _MOST_STATES:
        raise KernelError(f"{scores.shape[2]} states")
    has_ends, adds = node["use_start_and_end_states"], node["use_log_space"]
    side = scores.shape[2] + has_ends
    for name, each in (("allowed_transitions", allowed), ("transition_weights", weights)):
        if each.size and each.shape != (side, side):
            raise KernelError(f"{name} has shape {list(each.shape)}, expected {[side, side]}")
    if weights.size and not adds and not (weights >= 0).all():
        raise KernelError("a weight is negative")
    known = Transitions(
        weights if weights.size else None, allowed if allowed.size else None, has_ends, adds
    )
    find = viterbi if node["use_viterbi"] else greedy
    rows = [find(row[:size], known) for row, size in zip(scores, sizes, strict=True)]
    states = np.array([each for row in rows for each in row], np.int32)
    return states, np.cumsum([0, *sizes]).astype(op.outputs[1].dtype)


@flex_kernel("MaxSpanningTree")
def max_spanning_tree(op: View, inputs: Inputs, state: State) -> Outputs:
    """(the sum of scores, the node from which each is reached) of the best tree of each graph."""
    counts, scores = inputs
    if counts.ndim != 1 or scores.shape != (len(counts), *2 * scores.shape[-1:]):
        raise KernelError(f"scores {list(scores.shape)} of {list(counts.shape)} graphs")
    size, forest = scores.shape[1], node_of(op)["forest"]
    sums = np.zeros(len(counts), scores.dtype)
    sources = np.full((len(counts), size), -1, np.int32)
    for graph, count in enumerate(counts.tolist()):
        if count > size:
            raise KernelError(f"a graph of {count} nodes, expected at most {size}")
        found = best_sources(scores[graph, : max(count, 0), : max(count, 0)], forest=forest)
        sources[graph, :count] = found
        parts = scores[graph, np.arange(count), found]
        sums[graph] = np.cumsum(np.concatenate([sums[:1] * 0, parts]), dtype=scores.dtype)[-1]
    return sums, sources


@flex_kernel("RougeL")
def rouge_l(op: View, inputs: Inputs, state: State) -> Outputs:
    """(F, P, R) of each pair of rows: how much of one, and of the other, is the longest sequence
    that both have."""
    ours, our_splits, theirs, their_splits, alpha = inputs
    if alpha.ndim or not alpha <= 1:
        raise KernelError(f"alpha is {alpha}, expected at most 1")
    for values, splits in ((ours, our_splits), (theirs, their_splits)):
        if values.ndim != 1 or splits.ndim != 1:
            raise KernelError("values or splits are no lists")
        check_splits(splits, values)
    if len(our_splits) != len(their_splits):
        raise KernelError(f"{len(our_splits) - 1} and {len(their_splits) - 1} rows")
    bounds = zip(pairwise(our_splits.tolist()), pairwise(their_splits.tolist()), strict=True)
    rows = [
        _measures(b - a, d - c, _common(ours[a:b], theirs[c:d]), np.float32(alpha))
        for (a, b), (c, d) in bounds
    ]
    columns = np.array(rows, np.float32).reshape(-1, 3)
    return columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy()


def _common(ours: Array, theirs: Array) -> int:
    """How long the longest sequence is that both have."""
    if ours.size * theirs.size > _MOST_PAIRS:
        raise KernelError(f"rows of {ours.size} and {theirs.size} values")
    best = np.zeros(len(theirs) + 1, np.int32)
    for value in ours:
        joined = np.maximum(best[1:], best[:-1] + (theirs == value))
        best[1:] = np.maximum.accumulate(joined)
    return int(best[-1])


def _measures(ours: int, theirs: int, common: int, alpha: np.float32) -> tuple[Any, Any, Any]:
    """F, P and R, rounded to float32 where tf.text rounds."""
    f32, tiny, one = np.float32, 1e-12, np.float32(1)
    p, r = f32(common / (ours + tiny)), f32(common / (theirs + tiny))
    if alpha >= 0:
        whole = alpha * r + (one - alpha) * p
        return (p * r / whole if whole > 0 else whole), p, r
    beta = f32(float(p) / (float(r) + tiny))
    with np.errstate(over="ignore", invalid="ignore"):
        above, below = (one + beta * beta) * r * p, r + beta * beta * p
        return (above / below if below > 0 else f32(0)), p, r
