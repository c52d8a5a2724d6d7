"""A model of one custom operator, and a kernel that records its calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import Node, T
from tests.ops.custom_op import custom_model
from tests.subgraph_models import Sub, model_of
from tflite_ort import BuiltinOpResolver, Interpreter, MutableOpResolver, Registration
from tflite_ort.opmap import Graph
from tflite_ort.schema import Op, OperatorView, ReducerOptions, TensorType, WhileOptions

Array = npt.NDArray[Any]

X = np.array([1, 2, 4], np.float32)
ONE = custom_model("Own", [T((3,))], [T((3,))])


class Recorder:
    """y = 2 x in TFLite's life cycle. `calls` lists the calls in their order.

    Args:
        failing: the call that raises.
    """

    def __init__(self, failing: str = "") -> None:
        self.calls: list[str] = []
        self.failing = failing
        self.freed: list[Any] = []

    def init(self, custom_options: bytes) -> Any:
        self._record("init")
        return {"options": custom_options}

    def prepare(self, context: Any, node: Any) -> None:
        self._record("prepare")
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(self, context: Any, node: Any) -> None:
        self._record("invoke")
        np.multiply(node.inputs[0].data, 2, out=node.outputs[0].data)

    def free(self, state: Any) -> None:
        self.freed.append(state)
        self._record("free")

    def _record(self, call: str) -> None:
        self.calls.append(call)
        if call == self.failing:
            raise OSError(f"no {call} today")

    def counts(self) -> list[int]:
        return [self.calls.count(call) for call in ("init", "prepare", "invoke", "free")]


def resolver_of(registration: Registration, name: str = "Own", *versions: int) -> MutableOpResolver:
    resolver = BuiltinOpResolver()
    resolver.add_custom(name, registration, *versions)
    return resolver


def opened(model: bytes, registration: Registration, **arguments: Any) -> Interpreter:
    return Interpreter(model_content=model, resolver=resolver_of(registration), **arguments)


def invoked(interpreter: Interpreter, *feeds: Array) -> list[Array]:
    """The outputs for `feeds`. Inputs take the shapes of `feeds`."""
    details = interpreter.get_input_details()
    for detail, array in zip(details, feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def places(interpreter: Interpreter) -> list[str]:
    return [row.runs_on for row in interpreter.delegation()]


def translated_double(op: OperatorView[Any], g: Graph) -> None:
    x = g.read(op.present_inputs()[0])
    g.write(op.output, g.op("Add", x, x))


def doubling_until_a_hundred() -> bytes:
    """A loop that doubles the values by the custom operator while their sum is below 100."""
    values, single = T((3,)), T(())
    main = Sub(
        {"x": values, "y": values},
        [Node(Op.WHILE, ["x"], ["y"], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))],
        ["x"],
        ["y"],
    )
    tensors = {
        "x": values,
        "axis": T.constant(np.array([0], np.int32)),
        "sum": single,
        "limit": T.constant(np.array(100, np.float32)),
        "less": T((), TensorType.BOOL),
    }
    summed = Node(Op.SUM, ["x", "axis"], ["sum"], ReducerOptions())
    less = Node(Op.LESS, ["sum", "limit"], ["less"])
    body = Sub(
        {"x": values, "y": values},
        [Node("Own", ["x"], ["y"])],
        ["x"],
        ["y"],
    )
    return model_of(main, Sub(tensors, [summed, less], ["x"], ["less"]), body)
