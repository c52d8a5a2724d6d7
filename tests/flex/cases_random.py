"""Cases of random numbers: with seeds TensorFlow's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]

RNG = np.random.default_rng(19)
SHAPE = np.array([3, 7], np.int32)
SEED = np.array([7, -3], np.int64)
KEY, COUNTER = np.array([0x123456789ABCDEF0], np.uint64), np.array([5, 9], np.uint64)
LAST = np.array([2**64 - 2, 2**64 - 1], np.uint64)  # a counter that overflows
ALG = np.array(1, np.int32)
_REALS = ("half", "float", "double")
# What is drawn one by one, until it is taken.
REJECTED = ("GammaV2", "GammaV3", "Poisson", "BoundingBox")
CLOSE = {"half": 1e-3, "float": 2e-6, "double": 1e-12}


def drawn(name: str, *inputs: Array, note: str = "", rtol: float = 0, **given: Any) -> Case:
    exports = name.startswith("Stateless") and not name.endswith(REJECTED)
    by_numpy = {"exports": exports, "by_numpy": exports}
    return Case(name, list(map(np.asarray, inputs)), given, rtol=rtol, note=note, **by_numpy)


def stateful() -> list[Case]:
    found = []
    for type in _REALS:
        for name in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
            given = {"dtype": type, "seed": 5, "seed2": 0 if type == "float" else -77}
            found += [
                drawn(name, SHAPE, note=type, rtol=CLOSE[type], **given),
                drawn(name, SHAPE.astype(np.int64), note=type, rtol=CLOSE[type], **given),
            ]
    for dtype in (np.int32, np.int64):
        low, high = np.array(-5, dtype), np.array(9, dtype)
        found.append(drawn("RandomUniformInt", SHAPE, low, high, seed=3, seed2=4))
        edges = [np.array(getattr(np.iinfo(dtype), edge), dtype) for edge in ("min", "max")]
        found.append(drawn("RandomUniformInt", SHAPE, *edges, seed=3, seed2=4, note="wide"))
    for x in (np.arange(13), np.arange(24.0).reshape(6, 4), np.float32([[1, 2]])):
        found.append(drawn("RandomShuffle", x, seed=1, seed2=2, note=f"{x.shape}"))
    logits = RNG.standard_normal((2, 5))
    logits[0, 1] = -np.inf
    for dtype in (np.float32, np.float64):
        inputs = logits.astype(dtype), np.array(9, np.int32)
        found.append(drawn("Multinomial", *inputs, seed=8, seed2=9, output_dtype="int64"))
        found.append(
            drawn("Multinomial", *inputs, seed=8, seed2=9, output_dtype="int32", note="int32")
        )
        found.append(drawn("StatelessMultinomial", *inputs, SEED, output_dtype="int64"))
    low = np.array(4, np.int32)
    return [
        *found,
        Case("RandomUniformInt", [SHAPE, low, low], {"seed": 1}, exports=False, refused=True),
        Case("RandomUniform", [-SHAPE], {"seed": 1, "dtype": "float"}, exports=False, refused=True),
    ]


def stateless() -> list[Case]:
    found = []
    for type in _REALS:
        for name in ("RandomUniform", "RandomNormal", "TruncatedNormal"):
            given = {"dtype": type, "rtol": CLOSE[type]}
            found += [
                drawn(f"Stateless{name}", SHAPE, SEED, note=type, **given),
                drawn(f"Stateless{name}V2", SHAPE, KEY, COUNTER, ALG, note=type, **given),
            ]
    name = "StatelessRandomUniformV2"
    found += [
        drawn(name, SHAPE, KEY, LAST, ALG, dtype="float", note="last"),
        drawn(name, SHAPE, KEY, COUNTER, np.array(3, np.int32), dtype="float", note="any"),
    ]
    name = "StatelessRandomUniformFullInt"
    for type in ("int32", "int64", "uint32", "uint64"):
        found += [
            drawn(name, SHAPE, SEED, dtype=type, note=type),
            drawn(f"{name}V2", SHAPE, KEY, COUNTER, ALG, dtype=type, note=type),
        ]
        low, high = np.array(3, type), np.array(200, type)
        if type.startswith("int"):  # TensorFlow's CPU has no others
            found.append(drawn("StatelessRandomUniformIntV2", SHAPE, KEY, COUNTER, ALG, low, high))
            less = np.array(-6, type)
            found.append(drawn("StatelessRandomUniformInt", SHAPE, SEED, less, high))
    for seed in (SEED, SEED.astype(np.int32)):
        found.append(drawn("StatelessRandomGetKeyCounter", seed))
        found.append(drawn("StatelessRandomGetKeyCounterAlg", seed))
    bad = np.array(2, np.int32)
    threefry = Case(
        "StatelessRandomUniformV2",
        [SHAPE, KEY, COUNTER, bad],
        {"dtype": "float"},
        exports=False,
        refused=True,
    )
    return [*found, drawn("StatelessRandomGetAlg"), threefry]


def rejections() -> list[Case]:
    found = []
    for type in (np.float32, np.float64):
        alpha = np.array([0.3, 1, 2.5, 40], type)
        found += [
            drawn("RandomGamma", SHAPE, alpha, seed=2, seed2=3, rtol=2e-6),
            drawn("StatelessRandomGammaV2", np.array([5, 4], np.int32), SEED, alpha, rtol=2e-6),
        ]
        inputs = np.array([2, 3, 4], np.int32), KEY, COUNTER, ALG, alpha
        found.append(drawn("StatelessRandomGammaV3", *inputs, rtol=2e-6))
        rate = np.array([0.3, 9, 12, 300], type)
        found += [
            drawn("RandomPoissonV2", SHAPE, rate, seed=2, seed2=3, dtype="int64"),
            drawn("RandomPoissonV2", SHAPE, rate, seed=2, seed2=3, dtype="float", note="float"),
        ]
        inputs = np.array([6, 4], np.int32), SEED, rate
        found.append(drawn("StatelessRandomPoisson", *inputs, dtype="int32"))
    return found


def boxes() -> list[Case]:
    """Parts of images, of several seeds, which take other ways."""
    some = np.float32([[[0.1, 0.2, 0.6, 0.7], [0, 0, 1, 1]]])
    none, least = np.zeros((1, 0, 4), np.float32), np.array(0.3, np.float32)
    name, found = "SampleDistortedBoundingBox", []
    ranges = ({}, {"aspect_ratio_range": [0.2, 5.0], "area_range": [0.3, 1.0]}, {"max_attempts": 2})
    for number, more in enumerate(ranges):
        for size in ([30, 40, 3], [7, 200, 3], [1, 1, 1]):
            image, note = np.array(size, np.int32), f"{number}-{size}"
            for seed in (1, 2, 3):
                told: dict[str, Any] = {**more, "note": f"{note}-{seed}"}
                seeds = np.array([seed, 9], np.int64)
                found.append(drawn(f"Stateless{name}", image, some, least, seeds, **told))
            told = {**more, "note": note, "seed": 4, "seed2": 5}
            found.append(drawn(f"{name}V2", image, some, least, **told))
            found.append(drawn(name, image, some, **told))
    image = np.array([30, 40, 3], np.int64)
    whole = {"use_image_if_no_bounding_boxes": True}
    wrong = [[image, none], [image, some + 1], [image[:2], some]]
    return [
        *found,
        drawn(f"Stateless{name}", image, none, least, SEED, **whole),
        *(
            Case(f"Stateless{name}", [*each, least, SEED], exports=False, refused=True)
            for each in wrong
        ),
    ]


CASES = [*stateful(), *stateless(), *rejections(), *boxes()]
