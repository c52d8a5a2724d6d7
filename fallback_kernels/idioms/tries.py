"""Tries in arrays of numbers, as darts-clone makes them: a node for each byte of a key."""

from __future__ import annotations

from collections.abc import Iterator

from tflite_ort.fallback_kernels.registry import Array
from tflite_ort.schema import KernelError

ROOT = 0
_LABEL, _HAS_VALUE, _VALUE = 0x800000FF, 0x100, 0x7FFFFFFF


class Trie:
    """Keys of bytes with a value each.

    Args:
        units: the nodes; a number says where the children of a node are.
    """

    def __init__(self, units: Array) -> None:
        if not units.size:
            raise KernelError("a trie has no nodes")
        self._units = units.data
        self._size = units.size

    def child(self, node: int, byte: int) -> int:
        """The node after `byte`; -1 where no key goes on with it.

        Raises:
            KernelError: there is no such node.
        """
        found = node ^ self._offset(node) ^ byte
        return found if found < self._size and self._units[found] & _LABEL == byte else -1

    def after(self, node: int, text: bytes) -> int:
        """The node after all of `text`, or -1."""
        for byte in text:
            node = self.child(node, byte)
            if node < 0:
                break
        return node

    def value(self, node: int) -> int:
        """The value of the key that ends at a node; -1 where none does.

        Raises:
            KernelError: there is no such node.
        """
        offset = self._offset(node)
        if not self._units[node] & _HAS_VALUE:
            return -1
        return self._unit(node ^ offset) & _VALUE

    def prefixes(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """(end, value) of the keys that `text` has from `start` on, the shortest first."""
        node = ROOT
        for at in range(start, len(text)):
            node = self.child(node, text[at])
            if node < 0:
                return
            value = self.value(node)
            if value >= 0:
                yield at + 1, value

    def _offset(self, node: int) -> int:
        unit = self._unit(node)
        return (unit >> 10) << ((unit & 0x200) >> 6)

    def _unit(self, node: int) -> int:
        if not 0 <= node < self._size:
            raise KernelError(f"a trie of {self._size} nodes has no node {node}")
        unit: int = self._units[node]
        return unit
