"""The steps of TensorFlow's optimizers, for arrays and for values of a graph.

A step takes functions of the names of numpy's, the inputs by TensorFlow's names, and the
attributes. It returns what the variables are afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Given = Mapping[str, Any]
Step = Callable[[Any, Given, Given], tuple[Any, ...]]


def _gradient_descent(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    return (x["var"] - x["delta"] * x["alpha"],)


def _proximal(m: Any, value: Any, rate: Any, x: Given) -> Any:
    """`value` moved towards 0."""
    less = m.maximum(m.abs(value) - rate * x["l1"], 0)
    return m.sign(value) * less / (1 + x["l2"] * rate)


def _proximal_gradient_descent(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    gradient = x["delta"] if "delta" in x else x["grad"]
    return (_proximal(m, x["var"] - gradient * x["alpha"], x["alpha"], x),)


def _momentum(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    accum = x["accum"] * x["momentum"] + x["grad"]
    if node["use_nesterov"]:
        return x["var"] - (x["grad"] * x["lr"] + accum * x["momentum"] * x["lr"]), accum
    return x["var"] - accum * x["lr"], accum


def _keras_momentum(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    step = x["grad"] * x["lr"]
    accum = x["accum"] * x["momentum"] - step
    if node["use_nesterov"]:
        return x["var"] + (accum * x["momentum"] - step), accum
    return x["var"] + accum, accum


def _moments(m: Any, x: Given) -> tuple[Any, Any, Any]:
    """The rate, and both moments."""
    rate = x["lr"] * m.sqrt(1 - x["beta2_power"]) / (1 - x["beta1_power"])
    first = x["m"] + (x["grad"] - x["m"]) * (1 - x["beta1"])
    second = x["v"] + (x["grad"] * x["grad"] - x["v"]) * (1 - x["beta2"])
    return rate, first, second


def _adam(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    rate, first, second = _moments(m, x)
    part = first
    if node["use_nesterov"]:
        part = x["grad"] * (1 - x["beta1"]) + x["beta1"] * first
    return x["var"] - part * rate / (m.sqrt(second) + x["epsilon"]), first, second


def _amsgrad(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    rate, first, second = _moments(m, x)
    most = m.maximum(x["vhat"], second)
    return x["var"] - first * rate / (m.sqrt(most) + x["epsilon"]), first, second, most


def _ada_max(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    first = x["m"] + (x["grad"] - x["m"]) * (1 - x["beta1"])
    most = m.maximum(x["beta2"] * x["v"], m.abs(x["grad"]))
    rate = x["lr"] / (1 - x["beta1_power"])
    return x["var"] - rate * (first / (most + x["epsilon"])), first, most


def _squares(x: Given, node: Given) -> Any:
    """The sum of the squares of all gradients."""
    return x["accum"] + x["grad"] * x["grad"] if node.get("update_slots", True) else x["accum"]


def _adagrad(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    accum = _squares(x, node)
    return x["var"] - x["grad"] * x["lr"] / m.sqrt(accum), accum


def _adagrad_v2(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    accum = _squares(x, node)
    return x["var"] - x["grad"] * x["lr"] / (m.sqrt(accum) + x["epsilon"]), accum


def _proximal_adagrad(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    accum = _squares(x, node)
    rate = x["lr"] / m.sqrt(accum)
    return _proximal(m, x["var"] - x["grad"] * rate, rate, x), accum


def _dual_averaging(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    total = x["gradient_accumulator"] + x["grad"]
    squares = x["gradient_squared_accumulator"] + x["grad"] * x["grad"]
    less = m.maximum(m.abs(total) - x["global_step"] * x["l1"], 0)
    below = x["l2"] * x["global_step"] * x["lr"] + m.sqrt(squares)
    return 0 - x["lr"] * m.sign(total) * less / below, total, squares


def _adadelta(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    accum = x["accum"] * x["rho"] + x["grad"] * x["grad"] * (1 - x["rho"])
    update = m.sqrt(x["accum_update"] + x["epsilon"]) / m.sqrt(accum + x["epsilon"]) * x["grad"]
    updates = x["accum_update"] * x["rho"] + update * update * (1 - x["rho"])
    return x["var"] - update * x["lr"], accum, updates


def _rms_prop(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    squares = x["ms"] + (x["grad"] * x["grad"] - x["ms"]) * (1 - x["rho"])
    moved = x["mom"] * x["momentum"] + x["grad"] * x["lr"] / m.sqrt(squares + x["epsilon"])
    return x["var"] - moved, squares, moved


def _centered_rms_prop(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    squares = x["ms"] + (x["grad"] * x["grad"] - x["ms"]) * (1 - x["rho"])
    mean = x["mg"] + (x["grad"] - x["mg"]) * (1 - x["rho"])
    spread = squares - mean * mean + x["epsilon"]
    moved = x["mom"] * x["momentum"] + x["grad"] * x["lr"] / m.sqrt(spread)
    return x["var"] - moved, mean, squares, moved


def _signs(m: Any, x: Given) -> tuple[Any, Any]:
    first = x["m"] * x["beta"] + x["grad"] * (1 - x["beta"])
    return first, m.sign(x["grad"]) * m.sign(first)


def _add_sign(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    first, signs = _signs(m, x)
    return x["var"] - x["lr"] * (x["alpha"] + x["sign_decay"] * signs) * x["grad"], first


def _power_sign(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    first, signs = _signs(m, x)
    scale = m.exp(x["logbase"] * x["sign_decay"] * signs)
    return x["var"] - x["lr"] * scale * x["grad"], first


def _ftrl(m: Any, x: Given, node: Given) -> tuple[Any, ...]:
    gradient, rate = x["grad"], x["lr"]
    if "l2_shrinkage" in x:
        gradient = gradient + 2 * x["l2_shrinkage"] * x["var"]
    accum = x["accum"] + x["grad"] * x["grad"]
    before, after = (m.power(value, 0 - x["lr_power"]) for value in (x["accum"], accum))
    if node["multiply_linear_by_lr"]:
        linear = x["linear"] + gradient * rate - (after - before) * x["var"]
        least, below = x["l1"] * rate, after + 2 * x["l2"] * rate
    else:
        linear = x["linear"] + gradient - (after - before) / rate * x["var"]
        least, below = x["l1"], after / rate + 2 * x["l2"]
    inside = m.minimum(m.maximum(linear, 0 - least), least)
    return (inside - linear) / below, accum, linear


_STEPS: dict[str, Step] = {
    "AdaMax": _ada_max,
    "Adadelta": _adadelta,
    "Adagrad": _adagrad,
    "AdagradDA": _dual_averaging,
    "AdagradV2": _adagrad_v2,
    "Adam": _adam,
    "AdamWithAmsgrad": _amsgrad,
    "AddSign": _add_sign,
    "CenteredRMSProp": _centered_rms_prop,
    "Ftrl": _ftrl,
    "FtrlV2": _ftrl,
    "GradientDescent": _gradient_descent,
    "KerasMomentum": _keras_momentum,
    "Momentum": _momentum,
    "PowerSign": _power_sign,
    "ProximalAdagrad": _proximal_adagrad,
    "ProximalGradientDescent": _proximal_gradient_descent,
    "RMSProp": _rms_prop,
}
# By TensorFlow's names; the second are of some rows alone.
DENSE = {f"ResourceApply{name}": step for name, step in _STEPS.items()}
SPARSE = {
    f"ResourceSparseApply{name}": _STEPS[name]
    for name in (
        *("Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "CenteredRMSProp", "Ftrl", "FtrlV2"),
        *("KerasMomentum", "Momentum", "ProximalAdagrad", "ProximalGradientDescent", "RMSProp"),
    )
}
