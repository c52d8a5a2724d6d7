"""tf.text's operators that split texts. TensorFlow's wheel has none of them: their answers are
recorded with a Python that has tensorflow-text 2.18.1 too."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np

from tests.flex.cases import Array, Case, table_of, texts
from tests.flex.drawn_texts import characters, drawn_texts
from tests.flex.tokenizer_models import tokenizer
from tests.flex.vocabulary import INDICATED, WORDS

EDGES = texts(b"", b" ", b"a", b" a ", b"\xe3\x80\x80a\xe3\x80\x80\xe3\x80\x80b", b"a\xffb \xff")
MIXED = drawn_texts(1, 40, broken=True)


def case(
    operator: str, *inputs: Any, note: str = "", refused: bool = False, **attributes: Any
) -> Case:
    """One whose scalars of texts stand in the file: TensorFlow's delegate loses fed ones."""
    scalars = [at for at, each in enumerate(inputs) if each.dtype == object and each.shape == ()]
    return Case(operator, inputs, attributes, scalars, exports=False, note=note, refused=refused)


def spaces() -> list[Case]:
    config = np.array(tokenizer("spaces").tobytes(), object)
    own = np.array(b"\0\0\0\0\x01\x80", object)  # a space, and a slash
    some = drawn_texts(2, 30)
    found = [
        case("TFText>WhitespaceTokenizeWithOffsetsV2", words, each, note=f"{at}")
        for at, (words, each) in enumerate(product((EDGES, MIXED, texts(b"a /b")), (config, own)))
    ]
    for at, words in enumerate((some, EDGES[:5], texts(b"a"))):
        codes, splits = characters(list(words))
        for dtype in (np.int32, np.int64):
            inputs = np.array(codes, np.int32), np.array(splits, dtype)
            found.append(
                case("WhitespaceTokenizeWithOffsets", *inputs, note=f"{at}-{dtype.__name__}")
            )
            for keep in (False, True):
                note = f"{at}-{dtype.__name__}-{keep}"
                name = "UnicodeScriptTokenizeWithOffsets"
                found.append(case(name, *inputs, note=note, keep_whitespace=keep))
    strange = np.array([97, -1, 0x110000, 0xD800, 32, 0x0300, 0x41, 0x3002, 0x10FFFF], np.int32)
    for keep in (False, True):
        inputs = strange, np.array([0, 3, len(strange)], np.int64)
        found.append(
            case("UnicodeScriptTokenizeWithOffsets", *inputs, note=f"{keep}", keep_whitespace=keep)
        )
    return found


def wordpieces() -> list[Case]:
    words = texts(
        *(
            b"unaffable",
            b"abcx",
            b"abz",
            b"hello",
            b"",
            b"##a",
            b"##",
            b"a\xff",
            b"abcbcbc",
            b"x" * 25,
        ),
        *("\u00e4\u00e4".encode(), "\u00e4\u4e2d".encode(), b"[UNK]", b"zz", b"a"),
    )
    found = []
    for at, (unknown, split, (most, rows), characters_) in enumerate(
        product((True, False), (True, False), ((100, "row_lengths"), (5, "row_splits")), (0, 2))
    ):
        options = {
            "suffix_indicator": "##",
            "max_bytes_per_word": most,
            "max_chars_per_token": characters_,
            "use_unknown_token": unknown,
            "unknown_token": "[UNK]",
            "split_unknown_characters": split,
            "output_row_partition_type": rows,
        }
        vocabulary = INDICATED if at % 3 else WORDS
        table = table_of(*(word.encode() for word in vocabulary))
        found.append(case("WordpieceTokenizeWithOffsets", words, table, note=f"{at}", **options))
    return found


def fast_wordpieces() -> list[Case]:
    words = texts(
        *(
            b"unaffable",
            b"abcx",
            b"abz",
            b"hello",
            b"",
            b"##a",
            b"##",
            b"a\xff",
            b"abcbcbc",
            b"x" * 25,
        ),
        *("\u00e4\u00e4".encode(), "\u00e4\u4e2d".encode(), b"[UNK]", b"zz", b"a"),
        *(
            b"hello world!",
            b"abc, ##a ##",
            b"...!!",
            "\u4e2d\u4e2da \u3000b".encode(),
            b"un aff\xff x",
        ),
        *(b"!" * 3, b" a" * 3, b"x" * 30 + b" a", b"a." * 4, b"a-b", b"unaffable!hello?"),
    )
    drawn = drawn_texts(5, 60, broken=True)
    found = []
    for name, given in product(("words", "texts", "indicated", "joined"), (words, drawn)):
        note = f"{name}-{len(given)}"
        found.append(case("FastWordpieceTokenizeWithOffsets", given, tokenizer(name), note=note))
    ids = np.array([1, 6, 7, 5, 4, 20, 21, 6, 3], np.int32)
    for name, splits in product(("texts", "words", "joined"), ([0, 5, 5, 9], [0, 9])):
        bounds = np.array(splits, np.int64)
        note = f"{name}-{len(splits)}"
        given = ids, bounds, tokenizer(name)
        found.append(case("TFText>FastWordpieceDetokenize", *given, note=note))
    return found


def refused() -> list[Case]:
    def one(operator: str, *inputs: Any, note: str = "") -> Case:
        return case(operator, *inputs, note=note, refused=True)

    two = np.array([0, 2], np.int64)
    return [
        one(
            *("TFText>FastWordpieceDetokenize", np.array([1, 2], np.int32), two),
            *(tokenizer("indicated"),),
            note="without a vocabulary",
        ),
        one(
            *("SplitMergeTokenizeWithOffsets", texts(b"abc"), np.array([0, 1], np.int32)),
            *(np.array([0, 2], np.int32),),
        ),
        one(
            *("TokenizerFromLogits", texts(b"abc"), np.zeros((1, 2, 2), np.float32)),
            *(np.array(True),),
        ),
        one(*("RegexSplitWithOffsets", texts(b"a"), np.array(b"(", object), np.array(b"", object))),
        fragments(texts(b"a", b""), [2], [0, 0], note="an empty token", refused=True),
    ]


def labels() -> list[Case]:
    draw, found = random.Random(7), []
    words = texts(
        *(b"", b"abc", b" a b", "\u4e2d\u6587 a".encode(), "a\u3000b\u3000".encode(), b"a\x80b"),
        *drawn_texts(8, 12),
    )
    sizes = [len(characters([word])[0]) for word in words]
    rows = [[draw.randrange(3) for _ in range(size)] for size in sizes]
    splits = np.cumsum([0, *sizes]).astype(np.int32)
    given = words, np.array([each for row in rows for each in row], np.int32), splits
    widest = max(sizes)
    logits = np.random.default_rng(9).normal(size=(len(words), widest, 2)).astype(np.float32)
    logits[1, 0] = logits[2, 1] = 0.5
    for forces in (True, False):
        options = {"force_split_at_break_character": forces}
        found.append(case("SplitMergeTokenizeWithOffsets", *given, note=f"{forces}", **options))
        found.append(case("TokenizerFromLogits", words, logits, np.array(forces), note=f"{forces}"))
    return found


def expressions() -> list[Case]:
    words = texts(
        *(b"", b"a b  c", b"a, b.c", b" a", b"a ", "\u4e2d\u6587a b".encode(), b"a\0b c", b"hello"),
        *drawn_texts(10, 20, without="\0"),
    )
    patterns = [rb"(\s)", rb"(\s+)", rb"([ ,.])", rb"\s", rb"(^a)", rb"\b(a)", rb"( )b?"]
    chinese = "([\u4e00-\u9fff]|[!-/]|\\s+)".encode()
    kept = [b"", rb"[,.]", rb"[^\s]+", rb"\s"]
    return [
        case(
            *("RegexSplitWithOffsets", words, np.array(pattern, object), np.array(keep, object)),
            note=f"{pattern!r}-{keep!r}",
        )
        for pattern, keep in product([*patterns, chinese], kept)
    ]


WORDS_OF_SENTENCES = (
    *(
        b"Hello",
        b"world",
        b".",
        b"!",
        b"?",
        b"...",
        "\u2026".encode(),
        b")",
        b"(",
        b'"',
        b"''",
        b":-)",
    ),
    *(
        b"U.S.",
        b"]",
        b"<",
        b">",
        "\u3002".encode(),
        "\u055c".encode(),
        "\u201d".encode(),
        b"-",
        b"a.",
    ),
    *("\uff08".encode(), "\uff09".encode(), b"\xff", b"``", "\u00bb".encode()),
)


def fragments(words: Array, lengths: list[int], bits: list[int], **options: Any) -> Case:
    starts = np.arange(len(words), dtype=np.int64)
    inputs = np.array(lengths, np.int64), starts, starts + 1, words, np.array(bits, np.int64)
    attributes = {"input_encoding": "UTF-8"}
    return Case("SentenceFragments", inputs, attributes, exports=False, **options)


def octets() -> list[Case]:
    found = []
    for at, words in enumerate((EDGES, MIXED)):
        sizes = [min(len(word), 3) for word in words]
        splits = np.cumsum([0, *sizes]).astype(np.int64)
        starts = np.array([at for size in sizes for at in range(size)], np.int32)
        ends = np.array([size for size in sizes for _ in range(size)], np.int32)
        given = words, starts, ends, splits
        found += [
            case("TFText>ByteSplitWithOffsets", words, note=f"{at}"),
            case("TFText>ByteSplitByOffsets", *given, note=f"{at}"),
        ]
        for length, bits in ((3, 8), (10, 24), (2, 1)):
            options = {"word_length": length, "bits_per_char": bits, "replacement_char": 0xFFFD}
            name = "TFText>Utf8Binarize"
            found.append(case(name, words, note=f"{at}-{length}-{bits}", **options))
    return found


def fast_sentencepieces() -> list[Case]:
    words = texts(
        *(b"", b"hello world", b"the pieces  of the words ", b" x", b"\xff\xfe", b"AB a\tb\n"),
        *("h\u00e9llo e\u0301 \uff21\u2167".encode(), "\u4e2d\u6587\u00a0x".encode(), b"a\0b"),
        *drawn_texts(13, 20, broken=True),
    )
    found = []  # int32 alone: TensorFlow's process ends with the others
    for at, flags in enumerate(product((False, True), repeat=3)):
        rest = np.array(0, np.int32), np.array(1, np.float32), *map(np.array, flags)
        name, given = "TFText>FastSentencepieceTokenize", (tokenizer("encoder"), words, *rest)
        found.append(case(name, *given, note=f"{at}", Tsplits="int32", out_type="int32"))
    numbers = np.array([5, 3, 9, 20, 1, 2, 0, 30, 31, 4], np.int32)
    given = tokenizer("decoder"), numbers, np.array([0, 4, 4, 10], np.int32)
    return [*found, case("TFText>FastSentencepieceDetokenize", *given)]


def sentences() -> list[Case]:
    draw, found = random.Random(11), []
    for seed in range(6):
        lengths = [draw.randrange(1, 15) for _ in range(8)]
        count = sum(lengths)
        words = texts(*(draw.choice(WORDS_OF_SENTENCES) for _ in range(count)))
        bits = [draw.choice([0, 0, 0, 0x80, 0x100, 0x1, 0x180]) for _ in range(count)]
        found.append(fragments(words, lengths, bits, note=f"{seed}"))
    return found


CASES = [
    *(
        *spaces(),
        *wordpieces(),
        *fast_wordpieces(),
        *labels(),
        *expressions(),
        *octets(),
        *fast_sentencepieces(),
        *sentences(),
    ),
    *refused(),
]
