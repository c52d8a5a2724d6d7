"""A custom operator from end to end: y = atan(x + offset), where TFLite has no operator Atan.

    python examples/atan.py

trains the offset, writes the model, registers the operator, runs the model in ONNX Runtime and in
numpy, exports it and times it. The command line finds the registration by its name:

    cd examples && tflite-ort bench atan.tflite --resolver atan:resolver
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort import BuiltinOpResolver, Interpreter, UnresolvedOperator, export_onnx
from tflite_ort.command.benchmark import Settings, measure
from tflite_ort.opmap import Graph
from tflite_ort.schema import AddOptions, ModelBuilder, Op, OperatorView

Array = npt.NDArray[Any]

X = np.array([-8, 0.5, 2, 2.2, 201], np.float32)
Y = np.array([-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458], np.float32)


# The registration: a translation for ONNX Runtime and exports, a function for numpy -------------

resolver = BuiltinOpResolver()


def translate_atan(op: OperatorView[Any], g: Graph) -> None:
    g.write(op.output, g.op("Atan", g.read(op["x"])))


@resolver.custom("Atan", translate=translate_atan, inputs=("x",))
@resolver.custom("ATAN", translate=translate_atan, inputs=("x",))
def atan(x: Array) -> Array:
    return np.arctan(x)


# The model --------------------------------------------------------------------------------------


def trained_offset(steps: int = 20) -> float:
    """The offset of least squares, by Gauss and Newton's method from 0."""
    offset = 0.0
    for _ in range(steps):
        z = X.astype(np.float64) + offset
        slope = 1 / (1 + z * z)
        offset -= float(slope @ (np.arctan(z) - Y) / (slope @ slope))
    return offset


def atan_model(offset: float, name: str = "Atan") -> bytes:
    """ADD of a constant, then the custom operator `name`."""
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", X.shape).constant("offset", np.float32(offset))
    main.tensor("sum", X.shape).tensor("y", X.shape)
    main.operator(Op.ADD, ["x", "offset"], ["sum"], AddOptions())
    main.operator(name, ["sum"], ["y"])
    main.inputs("x").outputs("y")
    return builder.write()


def run(model: str | Path, **arguments: Any) -> Array:
    """What the model makes of X."""
    with Interpreter(model, **arguments) as interpreter:
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
        interpreter.invoke()
        return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def main() -> None:
    offset = trained_offset()
    print(f"offset {offset:.6f}")
    model = Path("atan.tflite")
    model.write_bytes(atan_model(offset))
    try:
        run(model)
    except UnresolvedOperator as error:
        print(f"without a registration: {error}")
    print("ONNX Runtime:", run(model, resolver=resolver))
    print("numpy:       ", run(model, resolver=resolver, providers=[]))
    exported = export_onnx(model, "atan.onnx", resolver=resolver)
    print("exported:    ", " -> ".join(node.op_type for node in exported.graph.node))
    settings = Settings(litert=False, memory=False, resolver="atan:resolver")
    print(f"invoke:       {measure(model, 1, settings).ours.invoke_ms * 1e3:.1f} us")


if __name__ == "__main__":
    main()
