"""Which tensors stay in a device's memory between sessions; no device is needed for that."""

from __future__ import annotations

from collections.abc import Callable

from tests.one_op import Node, T, graph_model
from tests.test_partition import SHAPE, branches, chain
from tflite_ort.fallback_kernels import kernel
from tflite_ort.plan.build import with_places
from tflite_ort.plan.partition import NUMPY, partitions
from tflite_ort.providers.provider import DeviceMemory, Provider
from tflite_ort.providers.traits import CPU
from tflite_ort.providers.trials import device_memory
from tflite_ort.schema import (
    AddOptions,
    AssignVariableOptions,
    GatherNdOptions,
    MulOptions,
    Op,
    ReadVariableOptions,
    TensorType,
    VarHandleOptions,
    WhereOptions,
    read_model,
)
from tflite_ort.specialize.specialization import specialize

DEVICE = "device"


def skip() -> bytes:
    """(x + y) * y + (x + y), where the sum is read on both sides of the product."""
    tensors = {name: T(SHAPE) for name in ("x", "y", "sum", "product", "result")}
    nodes = [
        Node(Op.ADD, ["x", "y"], ["sum"], AddOptions()),
        Node(Op.MUL, ["sum", "y"], ["product"], MulOptions()),
        Node(Op.ADD, ["product", "sum"], ["result"], AddOptions()),
    ]
    return graph_model(tensors, nodes, ["result"])


def placed(
    model: bytes, backend_of: Callable[[Op], str], results: tuple[str, ...] = ()
) -> list[tuple[str, set[str], list[str]]]:
    """Of each partition the backend, what is on the device and what is copied beside, by name."""
    source = read_model(model)
    graph = specialize(source, 0, {}, kernel)
    memories = {DEVICE: DeviceMemory("gpu", 0), CPU: None}
    wanted = [t.index for t in graph.tensors if t.name in results] + list(graph.outputs)
    parts = partitions(
        graph.operators, {op.index: backend_of(op.op) for op in graph.operators}, wanted
    )
    return [
        (part.backend, {graph.tensors[i].name for i in part.places}, [t.name for t in part.copies])
        for part in with_places(parts, wanted, graph.variables, memories.get)
    ]


def without_mul(op: Op) -> str:
    return NUMPY if op is Op.MUL else DEVICE


def test_what_the_next_session_reads_stays_on_the_device() -> None:
    first, middle, last = placed(branches(), without_mul)
    assert first == (DEVICE, {"right2"}, [])
    assert middle == (NUMPY, set(), [])
    assert last == (DEVICE, {"right2"}, [])


def test_what_a_kernel_reads_too_is_copied_beside() -> None:
    first, middle, last = placed(skip(), without_mul)
    assert first == (DEVICE, {"sum"}, ["sum"])
    assert middle == (NUMPY, set(), [])
    assert last == (DEVICE, {"sum"}, [])


def test_what_is_wanted_at_the_end_too_is_copied_beside() -> None:
    first, _, last = placed(branches(), without_mul, results=("right2",))
    assert first == (DEVICE, {"right2"}, ["right2"])
    assert last == (DEVICE, {"right2"}, [])


def test_what_only_other_runners_read_does_not_stay() -> None:
    assert [places for _, places, _ in placed(chain(), without_mul)] == [set(), set(), set()]


def test_another_delegate_reads_the_copy() -> None:
    first, middle, last = placed(skip(), lambda op: CPU if op is Op.MUL else DEVICE)
    assert first == (DEVICE, {"sum"}, ["sum"])
    assert middle == (CPU, set(), [])
    assert last == (DEVICE, {"sum"}, [])


def test_the_cpu_has_no_memory_of_its_own() -> None:
    backends = placed(skip(), lambda op: NUMPY if op is Op.MUL else CPU)
    assert backends == [(CPU, set(), []), (NUMPY, set(), []), (CPU, set(), [])]
    assert device_memory(Provider(CPU)) is None


def test_a_session_that_is_not_bound_reads_the_copy() -> None:
    """How many rows the last partition is given is known at the run alone."""
    tensors = {name: T(SHAPE) for name in ("x", "y", "sum", "product", "result")}
    tensors |= {"places": T((6, 2), TensorType.INT64), "picked": T((6,))}
    nodes = [
        Node(Op.ADD, ["x", "y"], ["sum"], AddOptions()),
        Node(Op.WHERE, ["sum"], ["places"], WhereOptions()),
        Node(Op.GATHER_ND, ["sum", "places"], ["picked"], GatherNdOptions()),
    ]
    backends = placed(
        graph_model(tensors, nodes, ["picked"]), lambda op: NUMPY if op is Op.WHERE else DEVICE
    )
    assert [places for _, places, _ in backends] == [set(), set(), set()]


def test_variables_stay_in_the_memory_of_the_host() -> None:
    """The sum is written to a variable, which a session reads after a kernel has run."""
    resource = {"type": TensorType.RESOURCE}
    tensors = {name: T(SHAPE) for name in ("x", "sum", "product", "read", "result")}
    tensors |= {"variable": T((1,), **resource)}
    nodes = [
        Node(Op.VAR_HANDLE, [], ["variable"], VarHandleOptions(container="", shared_name="v")),
        Node(Op.ASSIGN_VARIABLE, ["variable", "x"], [], AssignVariableOptions()),
        Node(Op.MUL, ["x", "x"], ["product"], MulOptions()),
        Node(Op.READ_VARIABLE, ["variable"], ["read"], ReadVariableOptions()),
        Node(Op.ADD, ["read", "product"], ["result"], AddOptions()),
    ]
    backends = placed(graph_model(tensors, nodes, ["result"]), without_mul)
    assert all(not places for _, places, _ in backends)
