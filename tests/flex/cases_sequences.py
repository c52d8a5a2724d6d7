"""tf.text's operators on sequences; see `cases_tokenizers.py`."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tests.flex.cases import Array, Case, texts
from tests.flex.drawn_texts import drawn_texts

DRAW = np.random.default_rng(31)


def floats(*shape: int, ties: bool = False) -> Array:
    found = DRAW.random(shape) if not ties else DRAW.integers(0, 3, shape)
    return found.astype(np.float32)


def sequences() -> list[Case]:
    found = []
    flags = (True, False)
    for at, (viterbi, adds, ends, known) in enumerate(product(flags, flags, flags, range(4))):
        states, ties = 4, known % 2 == 1
        scores = floats(5, 7, states, ties=ties)
        side = states + ends
        allowed = DRAW.random((side, side)) < 0.6 if known >= 1 else np.zeros((0, 0), bool)
        weights = floats(side, side, ties=ties) if known >= 2 else np.zeros((0, 0), np.float32)
        dtype = np.int64 if at % 2 else np.int32
        lengths = np.array([7, 1, 0, 5, 2], dtype)
        attributes = {
            "use_viterbi": viterbi,
            "use_log_space": adds,
            "use_start_and_end_states": ends,
            "Tsplits": "int32" if at % 3 else "int64",
        }
        inputs = [scores, lengths, allowed, weights]
        found.append(Case("ConstrainedSequence", inputs, attributes, exports=False, note=f"{at}"))
    blank = [np.zeros((0, 0), bool), np.zeros((0, 0), np.float32)]
    attributes = dict.fromkeys(("use_viterbi", "use_log_space", "use_start_and_end_states"), True)
    strange = np.array([[np.nan, -np.inf, 1], [np.inf, 2, np.nan], [-np.inf] * 3], np.float32)
    for note, scores, lengths, is_refused in (
        ("two dimensions", floats(4, 3), np.array([3]), False),
        ("strange", strange, np.array([3]), False),
        ("short", floats(1, 2, 3), np.array([3]), True),
        ("few lengths", floats(2, 2, 3), np.array([1]), True),
    ):
        inputs = [scores, lengths, *blank]
        for viterbi in flags:
            own = attributes | {"use_viterbi": viterbi}
            found.append(
                Case(
                    "ConstrainedSequence",
                    inputs,
                    own,
                    exports=False,
                    note=f"{note}-{viterbi}",
                    refused=is_refused,
                )
            )
    return found


def trees() -> list[Case]:
    found = []
    for dtype, forest, ties in product((np.int32, np.float32, np.float64), (0, 1), (0, 1)):
        scores = DRAW.integers(-3, 4, (6, 7, 7)) if ties else DRAW.integers(-1000, 1000, (6, 7, 7))
        scores = scores.astype(dtype)
        if dtype is not np.int32:
            scores = scores / 7
            scores[DRAW.random(scores.shape) < (0.02 if ties else 0.1)] = -np.inf
            scores = scores.astype(dtype)
        counts = np.array([7, 1, 3, 7, 6, 2], np.int32)
        found.append(
            Case(
                "MaxSpanningTree",
                [counts, scores],
                {"forest": bool(forest)},
                exports=False,
                note=f"{forest}-{ties}",
            )
        )
    inputs = [np.array([2], np.int32), np.full((1, 2, 2), -np.inf, np.float32)]
    other = [np.array([3], np.int32), np.ones((1, 2, 2), np.float32)]
    for note, each in (
        ("no tree", inputs),
        ("too many", other),
        ("none", [other[0] * 0, other[1]]),
    ):
        found.append(Case("MaxSpanningTree", each, exports=False, refused=True, note=note))
    return found


def rouge() -> list[Case]:
    found = []
    splits = [np.array([0, 3, 3, 8, 12]), np.array([0, 4, 5, 9, 12])]
    for dtype, kind, alpha in product((np.int32, np.int64), "nst", (-1, 0.5, 0, 1)):
        numbers = DRAW.integers(0, 3, (2, 12))
        values = [each.astype(np.int32 if kind == "s" else np.int64) for each in numbers]
        if kind == "t":
            values = [texts(*(b"abc"[each : each + 1] for each in row)) for row in numbers]
        ours, theirs = splits[0].astype(dtype), splits[1].astype(dtype)
        inputs = [values[0], ours, values[1], theirs, np.float32(alpha)]
        inputs[4] = np.array(alpha, np.float32)
        found.append(Case("RougeL", inputs, exports=False, note=f"{dtype.__name__}-{kind}-{alpha}"))
    return found


def ngrams() -> list[Case]:
    words = drawn_texts(33, 12, 3, broken=True)
    found = []
    for width, separator in product((1, 2, 3, 9), ("", " ", "|\u00e4")):
        told: dict[str, Any] = {"width": width, "axis": -1, "string_separator": separator}
        for given in (words, words.reshape(3, 4), words.reshape(2, 2, 3)):
            attributes = told | {"RAGGED_RANK": 0, "Tsplits": "int64"}
            note = f"{given.ndim}-{width}-{separator!r}"
            found.append(
                Case("TFText>NgramsStringJoin", [given], attributes, exports=False, note=note)
            )
        inner, outer = np.array([0, 3, 3, 8, 12]), np.array([0, 1, 4])
        for splits in ([inner], [outer, inner]):
            note = f"ragged{len(splits)}-{width}-{separator!r}"
            attributes = told | {"RAGGED_RANK": len(splits), "Tsplits": "int64"}
            inputs = [words, *splits]
            found.append(
                Case("TFText>NgramsStringJoin", inputs, attributes, exports=False, note=note)
            )
    attributes = {"width": 2, "axis": 0, "string_separator": "", "RAGGED_RANK": 0}
    return [
        *found,
        Case(
            "TFText>NgramsStringJoin",
            [words],
            attributes | {"Tsplits": "int64"},
            exports=False,
            refused=True,
            note="axis",
        ),
    ]


def trimmed() -> list[Case]:
    found = []
    splits = [np.array(each) for each in ([0, 3, 3, 9], [0, 1, 8, 10], [0, 0, 4, 12])]
    numbers = [DRAW.integers(0, 99, each[-1]) for each in splits]
    for at, (limit, count) in enumerate(product((-1, 0, 1, 2, 5, 7, 9, 50), (1, 2, 3))):
        dtype, kind = (np.int32, np.int64)[at % 2], (np.int32, np.int64, object)[at % 3]
        values = [
            texts(*(b"%d" % number for number in each)) if kind is object else each.astype(kind)
            for each in numbers[:count]
        ]
        inputs = [
            np.array(limit, np.int32),
            *values,
            *(each.astype(dtype) for each in splits[:count]),
        ]
        names = {"int32": "int32", "int64": "int64", "object": "string"}
        told = {"N": count, "T": names[str(values[0].dtype)], "Tsplits": str(np.dtype(dtype))}
        for name in ("TFText>RoundRobinTrim", "TFText>RoundRobinGenerateMasks"):
            some = max(limit, 0) and name.endswith("Trim")
            if not some and name.endswith("Trim"):  # no tensor without elements is given
                continue
            found.append(Case(name, inputs, told, exports=False, note=f"{at}"))
    return found


CASES = [*trimmed(), *sequences(), *trees(), *rouge(), *ngrams()]
