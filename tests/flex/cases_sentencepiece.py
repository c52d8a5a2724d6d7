"""SentencePiece's operators; see `cases_tokenizers.py`. What is drawn is not recorded."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tests.flex.cases import Case, Handle, texts
from tests.flex.drawn_texts import drawn_texts
from tests.flex.tokenizer_models import tokenizer

WORDS = texts(
    *(b"", b"hello world", b"the pieces  of the words ", b" x", b"\xff\xfe", b"<sep>split<sep>"),
    *("h\u00e9llo \u4e2d\u6587".encode(), b"42 and \xe2\x82", b"<s>", b"</s>", b"<unk>", b"a\0b"),
)
DRAWN = drawn_texts(41, 20, 6, broken=True)
FLAGS = ((False, False, False), (True, True, False), (True, False, True), (False, True, True))


def model(name: str) -> Handle:
    return Handle("SentencepieceOp", {"model": tokenizer(name).tobytes()})


def case(operator: str, *inputs: Any, note: str, refused: bool = False, **attributes: Any) -> Case:
    return Case(operator, inputs, attributes, exports=False, note=note, refused=refused)


def tokenized() -> list[Case]:
    found = []
    kinds = list(product(("int32", "string"), ("int32", "int64")))
    for at, (name, flags, offsets) in enumerate(product(("unigram", "bpe"), FLAGS, (True, False))):
        kind, splits = kinds[at % 4]
        operator = f"SentencepieceTokenize{'WithOffsets' * offsets}Op"
        rest = np.array(at % 2, np.int32), np.array(0.5, np.float32), *map(np.array, flags)
        for number, words in enumerate((WORDS, DRAWN)):
            found.append(
                case(
                    *(operator, model(name), words, *rest),
                    note=f"{name}-{at}-{number}",
                    out_type=kind,
                    Tsplits=splits,
                )
            )
        if name == "unigram":
            best = np.array(3, np.int32), *rest[1:]
            found.append(
                case(
                    *(operator, model(name), WORDS[:5], *best),
                    note=f"best-{at}",
                    out_type=kind,
                    Tsplits=splits,
                    return_nbest=True,
                )
            )
    rest = np.array(0, np.int32), np.array(0, np.float32), *map(np.array, FLAGS[1])
    bare = "SentencepieceTokenizeOp", model("bare"), WORDS, *rest
    nothing = "SentencepieceTokenizeOp", Handle("SentencepieceOp", {"model": b"x"}), WORDS, *rest
    return [
        *found,
        case(*bare, note="without an end", refused=True),
        case(*nothing, note="no model", refused=True),
    ]


def joined() -> list[Case]:
    found = []
    ids = np.array([5, 3, 9, 20, 1, 2, 0, 30, 31, 4], np.int32)
    pieces = texts(b"\xe2\x96\x81the", b"s", b"<unk>", b"", b"zzz", b"\xe2\x96\x81", b"<s>", b"x")
    for at, (name, flags) in enumerate(product(("unigram", "bpe"), FLAGS)):
        dtype = (np.int32, np.int64)[at % 2]
        splits = np.array([0, 4, 4, 10], dtype)
        given = model(name), ids, splits, *map(np.array, flags)
        found.append(case("SentencepieceDetokenizeOp", *given, note=f"{name}-{at}"))
        given = model(name), pieces, np.array([0, 3, 8], dtype), *map(np.array, flags)
        found.append(case("SentencepieceDetokenizeOp", *given, note=f"{name}-{at}"))
    wrong = (
        model("unigram"),
        np.array([1 << 20], np.int32),
        np.array([0, 1]),
        *map(np.array, FLAGS[0]),
    )
    return [*found, case("SentencepieceDetokenizeOp", *wrong, note="no piece", refused=True)]


def looked_up() -> list[Case]:
    ids = np.arange(20, dtype=np.int32).reshape(4, 5)
    pieces = texts(b"\xe2\x96\x81the", b"<unk>", b"zzz", b"\xff", b"</s>", b"").reshape(2, 3)
    return [
        each
        for name in ("unigram", "bpe")
        for each in (
            case("SentencepieceVocabSizeOp", model(name), note=name),
            case("SentencepieceIdToStringOp", model(name), ids, note=name),
            case("SentencepieceStringToIdOp", model(name), pieces, note=name),
        )
    ]


CASES = [*tokenized(), *joined(), *looked_up()]
