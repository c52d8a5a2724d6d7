"""Batches compared with single runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import assert_close
from tflite_ort import Interpreter, WellKnownOpResolver

Array = npt.NDArray[Any]
Sample = Sequence[Array]


def opened(model: bytes, **arguments: Any) -> Interpreter:
    """An interpreter that is ready; in numpy unless `providers` says otherwise."""
    given = {"providers": [], "resolver": WellKnownOpResolver(), **arguments}
    interpreter = Interpreter(model_content=model, **given)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, inputs: Sample) -> list[Array]:
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return [np.asarray(interpreter.get_tensor(each["index"])) for each in details]


def joined(samples: Sequence[Array]) -> Array:
    """Inputs or outputs of samples as a batch has them."""
    leads = samples[0].ndim > 0 and samples[0].shape[0] == 1
    return np.concatenate(samples) if leads else np.stack(samples)


def batch_of(samples: Sequence[Sample]) -> list[Array]:
    return [joined(each) for each in zip(*samples, strict=True)]


def singles(model: bytes, samples: Sequence[Sample], **arguments: Any) -> list[Array]:
    """The outputs of the samples one by one, each from a start of its own, as a batch has them."""
    with opened(model, **arguments) as interpreter:
        rows = []
        for sample in samples:
            rows.append(run(interpreter, sample))
            interpreter.reset_all_variables()
    return batch_of(rows)


def assert_batched(
    model: bytes, samples: Sequence[Sample], quanta: int = 0, rtol: float = 1e-5, **arguments: Any
) -> list[Array]:
    """A batch of these samples gives what each of them gives alone, which is returned.

    Raises:
        Unbatchable: there is no batch of this model.
    """
    with opened(model, batch=len(samples), **arguments) as interpreter:
        want = singles(model, samples, **arguments)
        got = run(interpreter, batch_of(samples))
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.dtype == b.dtype
        assert_close(a, b, quanta, rtol, f"output {number}")
    return want
