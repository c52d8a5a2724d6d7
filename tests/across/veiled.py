"""Cases whose shapes are unknown until they run: a computed RESHAPE comes before each input."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from tests.one_op import Array, Case, Node, T, assert_close, distance, graph_model, ours
from tests.oracle import litert
from tests.placements import where
from tflite_ort import Interpreter
from tflite_ort.schema import Op, PackOptions, TensorType, read_model

INT32 = TensorType.INT32


def veiled(case: Case, open: Collection[int] | None = None) -> tuple[bytes, list[Array]]:
    """A model in which no size of the computed inputs is known, and its feeds.

    Args:
        open: the axes whose size stays unknown. A second RESHAPE tells the sizes of the others.
    """
    tensors: dict[str, T] = {}
    feeds: dict[str, Array] = {}
    nodes: list[Node] = []
    given = iter(case.arrays(np.random.default_rng(0)))
    for i, t in enumerate(case.inputs):
        if t is None or t.is_constant or not t.shape:
            tensors |= {} if t is None else {f"in{i}": t}
            feeds |= {} if t is None or t.is_constant else {f"in{i}": next(given)}
            continue
        tensors |= {f"raw{i}": t, f"shape{i}": T((len(t.shape),), INT32), f"in{i}": t}
        feeds |= {f"raw{i}": next(given), f"shape{i}": np.array(t.shape, np.int32)}
        hidden = f"in{i}" if open is None else f"hidden{i}"
        nodes.append(Node(Op.RESHAPE, [f"raw{i}", f"shape{i}"], [hidden]))
        if open is not None:
            sizes = {f"size{i}_{axis}": np.array(n, np.int32) for axis, n in enumerate(t.shape)}
            computed = {f"size{i}_{axis}" for axis in open}
            tensors |= {name: T.constant(n) for name, n in sizes.items()}
            tensors |= {name: T((), INT32) for name in computed & sizes.keys()}
            tensors |= {hidden: t, f"told{i}": T((len(t.shape),), INT32)}
            feeds |= {name: n for name, n in sizes.items() if name in computed}
            options = PackOptions(values_count=len(sizes))
            nodes.append(Node(Op.PACK, list(sizes), [f"told{i}"], options))
            nodes.append(Node(Op.RESHAPE, [hidden, f"told{i}"], [f"in{i}"]))
    inputs = [None if t is None else f"in{i}" for i, t in enumerate(case.inputs)]
    return _model(case, tensors, nodes, inputs), _in_order(tensors, feeds)


def with_computed_lists(case: Case) -> tuple[bytes, list[Array]]:
    """A model whose integer constants (axes, shapes) became inputs, and its feeds."""
    tensors: dict[str, T] = {}
    feeds: dict[str, Array] = {}
    given = iter(case.arrays(np.random.default_rng(0)))
    for i, t in enumerate(case.inputs):
        if t is None:
            continue
        listed = t.data is not None and t.data.dtype.kind == "i" and t.scale is None
        tensors[f"in{i}"] = replace(t, data=None) if listed else t
        if listed:
            feeds[f"in{i}"] = np.asarray(t.data)
        elif not t.is_constant:
            feeds[f"in{i}"] = next(given)
    inputs = [None if t is None else f"in{i}" for i, t in enumerate(case.inputs)]
    return _model(case, tensors, [], inputs), _in_order(tensors, feeds)


def _model(case: Case, tensors: dict[str, T], nodes: list[Node], inputs: list[str | None]) -> bytes:
    results = [f"out{i}" for i in range(len(case.outputs))]
    tensors |= dict(zip(results, case.outputs, strict=True))
    nodes = [*nodes, Node(case.op, inputs, results, case.options, case.version)]
    return graph_model(tensors, nodes, results)


def _in_order(tensors: Iterable[str], feeds: dict[str, Array]) -> list[Array]:
    return [feeds[name] for name in tensors if name in feeds]


def check_model(case: Case, model: bytes, feeds: list[Array]) -> str:
    """Compare ONNX Runtime and the numpy kernels with LiteRT. Returns where the operator ran."""
    expected = litert(model, feeds, case.reference)
    by_numpy, _ = ours(model, feeds, providers=[])
    for want, got in zip(expected, by_numpy, strict=True):
        assert_close(got, want, 0, case.rtol, f"{case.name}: numpy")
    by_ort, _ = ours(model, feeds)
    default = litert(model, feeds)
    for want, other, got in zip(default, expected, by_ort, strict=True):
        nearest = want if distance(got, want) <= distance(got, other) else other
        assert_close(got, nearest, case.quanta, case.rtol, f"{case.name}: ORT")
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    return where(interpreter.delegation()[-1])


def emptied(model: bytes, feeds: Sequence[Array]) -> list[Array]:
    """The feeds of a `veiled` model whose first axis is open, with size 0 along that axis."""
    graph = read_model(model).subgraphs[0]
    names = [graph.tensors[index].name for index in graph.inputs]
    return [_emptied(name, feed) for name, feed in zip(names, feeds, strict=True)]


def _emptied(name: str, feed: Array) -> Array:
    if name.startswith("raw"):
        return feed[:0]
    if name.startswith("shape"):
        return np.array((0, *feed[1:]), feed.dtype)
    return np.zeros_like(feed) if name.startswith("size") else feed
