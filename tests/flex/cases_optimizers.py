"""Cases of optimizers: one step, and what the variables hold then."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case
from tflite_ort.schema.file.flex_table import flex_operator
from tflite_ort.schema.values.optimizers import DENSE, SPARSE

Array = npt.NDArray[Any]
# Numbers of steps, by TensorFlow's names.
NUMBERS = {
    "alpha": 0.3,
    "beta": 0.85,
    "beta1": 0.9,
    "beta1_power": 0.81,
    "beta2": 0.99,
    "beta2_power": 0.97,
    "epsilon": 1e-3,
    "l1": 0.2,
    "l2": 0.15,
    "l2_shrinkage": 0.05,
    "logbase": 0.7,
    "lr": 0.1,
    "lr_power": -0.5,
    "momentum": 0.8,
    "rho": 0.9,
    "sign_decay": 0.6,
}
ROWS = np.int64([3, 0, 3, 3])


def step(name: str, dtype: npt.DTypeLike = np.float32, note: str = "", **more: Any) -> Case:
    """A step of variables of 5 by 4; those that hold squares are above 0."""
    draw, operator = np.random.default_rng(len(name)), flex_operator(name)
    assert operator is not None
    changed = {key: more.pop(key) for key in list(more) if key in NUMBERS}
    known = {key: more.pop(key) for key in ("exports", "rtol") if key in more}
    sparse, inputs, variables = "Sparse" in name, [], 0
    for each in operator.inputs:
        if each.type == "resource":
            low = -1 if each.name in ("var", "m", "mom", "mg", "linear") else 0.5
            inputs.append(draw.uniform(low, 2, (5, 4)).astype(dtype))
            variables += 1
        elif each.name in ("grad", "delta"):
            inputs.append(draw.uniform(-1, 1, (4 if sparse else 5, 4)).astype(dtype))
        elif each.name == "indices":
            inputs.append(ROWS)
        elif each.name == "global_step":
            inputs.append(np.array(3, np.int64))
        else:
            inputs.append(np.array({**NUMBERS, **changed}[each.name], dtype))
    known = {"exports": not sparse, "rtol": 2e-6, **known}
    return Case(name, inputs, more, variables=variables, note=note, **known)


NESTEROV = ("Adam", "KerasMomentum", "Momentum")
ALL = (*DENSE, *SPARSE)

# TensorFlow's kernels of proximal steps and dual averaging take no half, and those of Ftrl round it
# at each step.
NO_HALF = ("Proximal", "AdagradDA", "Ftrl")
HALVES = [name for name in DENSE if not any(each in name for each in NO_HALF)]

CASES = [
    *(step(name) for name in ALL),
    *(step(name, np.float64, rtol=1e-12) for name in ALL),
    *(step(name, np.float16, rtol=4e-3) for name in HALVES),
    *(step(f"ResourceApply{name}", note="nesterov", use_nesterov=True) for name in NESTEROV),
    *(step(f"ResourceApply{n}", note="kept", update_slots=False) for n in ("Adagrad", "AdagradV2")),
    *(step(n, note="rate", multiply_linear_by_lr=True) for n in ALL if "Ftrl" in n),
    *(step(n, note="power", lr_power=-0.7) for n in ALL if "Ftrl" in n),
    *(step(n, note="no_l1", l1=0) for n in ALL if "Proximal" in n or "AdagradDA" in n),
]
