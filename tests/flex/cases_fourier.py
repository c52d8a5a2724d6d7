"""Cases of Fourier transforms and of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]

RNG = np.random.default_rng(13)
REALS: dict[str, Any] = {"complex64": np.float32, "complex128": np.float64}
# ONNX Runtime and TensorFlow transform complex64 in 32 bits.
CLOSE = {"complex64": 2e-6, "complex128": 1e-12}


def real(type: str, *shape: int) -> Array:
    return RNG.standard_normal(shape).astype(REALS[type])


def pairs(type: str, *shape: int) -> Array:
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(type)


_SHAPES = {
    1: [(2, 8), (3, 7), (2, 3, 1), (20,)],
    2: [(2, 4, 8), (3, 5)],
    3: [(2, 2, 4, 8), (3, 2, 5)],
}
# Shapes with lengths: the same, longer, shorter, no power of two.
_LENGTHS = {
    1: [((2, 8), (8,)), ((3, 7), (7,)), ((2, 17), (16,)), ((2, 10), (5,)), ((9,), (4,))],
    2: [((2, 4, 8), (4, 8)), ((6, 7), (6, 7)), ((5, 9), (4, 8)), ((5, 9), (3, 6))],
    3: [((2, 2, 4, 8), (2, 4, 8)), ((4, 3, 7), (4, 3, 6))],
}


def _ending(count: int) -> str:
    return f"{count}D" if count > 1 else ""


def transforms() -> list[Case]:
    found = []
    for type in REALS:
        for count, shapes in _SHAPES.items():
            for shape in shapes:
                for name in ("FFT", "IFFT"):
                    x = pairs(type, *shape)
                    found.append(
                        Case(name + _ending(count), [x], rtol=CLOSE[type], note=f"{shape}")
                    )
    return found


def real_transforms() -> list[Case]:
    found = []
    for type, dtype in REALS.items():
        for count, places in _LENGTHS.items():
            for shape, lengths in places:
                length, note = np.array(lengths, np.int32), f"{shape}-{lengths}"
                x = real(type, *shape)
                kinds = {"Tcomplex": type}
                half = (*shape[:-1], shape[-1] // 2 + 1)
                y = pairs(type, *half)
                back = {"Treal": "float" if dtype is np.float32 else "double"}
                found += [
                    Case(
                        f"RFFT{_ending(count)}",
                        [x, length],
                        kinds,
                        (1,),
                        rtol=CLOSE[type],
                        note=note,
                    ),
                    Case(
                        f"IRFFT{_ending(count)}",
                        [y, length],
                        back,
                        (1,),
                        rtol=CLOSE[type],
                        note=note,
                    ),
                ]
    x, length = real("complex64", 8), np.array([8], np.int32)
    return [
        *found,
        Case("RFFT", [x, length], exports=False, note="computed"),
        Case("RFFT", [x, np.array([9], np.int32)], exports=False, refused=True, note="longer"),
        Case("RFFT2D", [x, np.array([1, 8], np.int32)], refused=True),
        Case("RFFT", [x, np.array([-1], np.int32)], exports=False, refused=True),
    ]


def parts() -> list[Case]:
    found = []
    for type, dtype in REALS.items():
        x = np.array([[1 + 2j, -0.5 + 1j, 3], [-2j, -1, 1.5 - 2.5j]], type)
        out = {"Tout": "float" if dtype is np.float32 else "double"}
        close = CLOSE[type]
        found += [
            Case("Real", [x], out),
            Case("Imag", [x], out),
            Case("ComplexAbs", [x], out, rtol=close, exports=type == "complex64"),
            Case("Angle", [x], out, rtol=close),
            Case("Conj", [x]),
            Case("Complex", [x.real.copy(), x.imag.copy()], {"Tout": type}),
            Case(
                "Complex",
                [x.real.copy(), x.imag[:1].copy()],
                {"Tout": type},
                note="wide",
            ),
            Case("ConjugateTranspose", [x, np.array([1, 0], np.int32)], {}, (1,)),
        ]
    x = np.float32([[1, 2, 3]])
    return [*found, Case("ConjugateTranspose", [x, np.array([1, 0], np.int32)], {}, (1,))]


CASES = [*transforms(), *real_transforms(), *parts()]
