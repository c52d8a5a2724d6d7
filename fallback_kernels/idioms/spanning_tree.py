"""The tree of arcs of the greatest sum that reaches every node of a graph: Tarjan's algorithm for
dense graphs, with ties and rounding as in tf.text.

Node 0 is put before the others: its arcs are the choices of a root.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.registry import Array
from tflite_ort.schema import KernelError

Integers = npt.NDArray[np.int64]
_MOST_NODES = 32766
_NONE = -1


def best_sources(scores: Array, *, forest: bool) -> Integers:
    """[N]: the node from which each is reached; a root is reached from itself.

    Args:
        scores: [N, N] of arcs to a row's node from a column's; those to itself are of roots. What
            is not finite is no arc.
        forest: there may be several roots.

    Raises:
        KernelError: there is no such tree, or more nodes than there can be.
    """
    count = len(scores)
    if not 0 < count <= _MOST_NODES:
        raise KernelError(f"{count} nodes, expected 1 to {_MOST_NODES}")
    graph = _Graph(scores, forest)
    graph.contract()
    found = graph.expand()
    if not forest and np.count_nonzero(found == np.arange(count)) != 1:
        raise KernelError("no tree reaches all nodes")
    return found


class _Graph:
    """Arcs by the node that they lead to, among them nodes that stand for cycles.

    Args:
        scores, exists, targets: for each node, of the arc from each first node; `targets` says to
            which of the first nodes it leads.
    """

    def __init__(self, scores: Array, forest: bool) -> None:
        count = len(scores)
        exists = np.isfinite(scores)
        with np.errstate(all="ignore"):
            penalty = self._penalty(scores, exists)
            roots = scores.diagonal().copy() if forest else scores.diagonal() - penalty
        own = np.eye(count, dtype=bool)
        columns = np.concatenate([roots[:, None], scores], axis=1)
        there = np.concatenate([exists.diagonal()[:, None], exists & ~own], axis=1)
        blank = np.zeros(count + 1, scores.dtype)
        self.scores = [blank, *columns]
        self.exists = [blank != blank, *there]
        self.targets = [np.full(count + 1, node) for node in range(count + 1)]
        self.count = count + 1
        # By first node: what is connected by the arcs chosen so far, the cycles, the node on top.
        self.weak, self.strong = np.arange(count + 1), np.arange(count + 1)
        self.top = np.arange(count + 1)
        self.into: list[int | None] = [0] * (count + 1)
        # By node, the source of the arc chosen.
        self.chosen: list[int] = [_NONE]

    @staticmethod
    def _penalty(scores: Array, exists: npt.NDArray[np.bool_]) -> Array:
        """What is taken from the score of a root, so that one root is better than two."""
        known = scores[exists]
        if not known.size:
            return np.zeros((), scores.dtype)
        kind = scores.dtype.type
        spread = known.max() - known.min()
        penalty: Array = kind(1) + kind(len(scores) + 1) * spread
        return penalty

    def contract(self) -> None:
        """Choose the best arc to each node; a cycle becomes a node, to which others lead."""
        node = 0
        while (node := node + 1) < len(self.scores):
            scores = self.scores[node]
            lowest = np.iinfo(scores.dtype).min if scores.dtype.kind == "i" else -np.inf
            usable = self.exists[node] & ((scores > lowest) | (scores.dtype.kind == "i"))
            if not usable.any():
                raise KernelError("no tree reaches all nodes")
            best = scores[usable].max()
            source = int(np.flatnonzero(usable & (scores == best))[-1])
            self.chosen.append(source)
            if source == 0:
                continue
            one, other = self.weak[source], self.weak[self.targets[node][source]]
            if one == other:
                self._contract(node)
            else:
                self.weak[self.weak == one] = other

    def _contract(self, node: int) -> None:
        cycle, made = [], len(self.scores)
        while node != made:
            source = self.chosen[node]
            target = self.targets[node][source]
            cycle.append((node, self.scores[node][source]))
            self.strong[self.strong == self.strong[source]] = self.strong[target]
            following = int(self.top[source])
            self.top[self.top == node] = made
            self.into[node] = made
            node = following
        self.into.append(0)
        scores = np.zeros(self.count, self.scores[0].dtype)
        exists = np.zeros(self.count, bool)
        targets = np.zeros(self.count, np.int64)
        outside = self.strong != self.strong[self.targets[cycle[0][0]][0]]
        with np.errstate(all="ignore"):
            for inner, score in cycle:
                offered = self.scores[inner] + -score
                better = self.exists[inner] & outside & (~exists | (scores < offered))
                scores[better] = offered[better]
                targets[better] = self.targets[inner][better]
                exists |= better
        self.scores.append(scores)
        self.exists.append(exists)
        self.targets.append(targets)

    def expand(self) -> Integers:
        """The source of each of the first nodes, numbered from 0 without the node before them."""
        chosen = enumerate(self.chosen)
        arcs = [(source, int(self.targets[node][source])) for node, source in chosen]
        for node in range(len(arcs) - 1, self.count - 1, -1):
            if self.into[node] is None:
                continue
            _, target = arcs[node]
            arcs[target] = arcs[node]
            inner = self.into[target]
            while inner is not None and inner != node:
                outer = self.into[inner]
                self.into[inner] = None
                inner = outer
        found = np.array([source for source, _ in arcs[1 : self.count]], np.int64)
        return np.where(found == 0, np.arange(self.count - 1), found - 1)
