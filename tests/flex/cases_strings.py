"""Cases of operators on texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.flex.cases import Case, texts

WORDS = texts(b"Hello", b"", "gr\u00fc\u00df \U0001f600".encode(), b"a\xffb\t", b"x" * 100)
# ONNX has these for texts of UTF-8; numpy runs them for texts of any bytes.
EXPORTED = (
    *("StringJoin", "RegexFullMatch", "StaticRegexFullMatch", "StringLength", "StringLower"),
    *("StringSplitV2", "ReduceJoin", "AsString"),
)
UTF8 = {"input_encoding": "UTF-8"}

PLAIN = texts(
    b"a,b,,c", b"", b" two  words ", b"x\xff,y\x00", "\u00e9t\u00e9, \u00c9".encode(), b","
)


def exports_of(name: str, inputs: list[Any], attributes: Mapping[str, Any]) -> bool:
    """Whether an exported file computes an operator with these attributes."""
    if name == "StringLower":
        return not attributes.get("encoding")
    if name == "StringSplitV2":
        most = attributes["maxsplit"]
        return most < 0 or (most > 0 and inputs[1][()] != b"")
    if name == "ReduceJoin":
        return inputs[0].ndim > 0 and inputs[1].size == 1
    if name == "AsString":
        return inputs[0].dtype.kind in "iub" and not attributes
    return name in EXPORTED


def case(
    name: str,
    inputs: list[Any],
    *,
    refused: bool = False,
    exports: bool | None = None,
    **attributes: Any,
) -> Case:
    """A case whose single texts stand in the file: the interpreter cannot set them. So do axes."""
    single = [i for i, each in enumerate(inputs) if each.dtype == object and not each.ndim]
    single += [1] if name == "ReduceJoin" else []
    exports = exports_of(name, inputs, attributes) if exports is None else exports
    exports = exports and not refused
    given: dict[str, Any] = {"exports": exports, "by_numpy": exports, "refused": refused}
    return Case(name, inputs, attributes, single, note=str(attributes), **given)


def refused(name: str, inputs: list[Any], **attributes: Any) -> Case:
    """What TensorFlow refuses."""
    return case(name, inputs, refused=True, **attributes)


def scalar(text: bytes) -> Any:
    return texts(text).reshape(())


def pieces() -> Iterator[Case]:
    """Cases of cutting and joining."""
    for word in (b",", b"", b" ", b", "):
        for most in (-1, 0, 1, 2):
            yield case("StringSplitV2", [PLAIN, scalar(word)], maxsplit=most)
    for word in (b",", b"", b" ,"):
        for skip in (True, False):
            yield case("StringSplit", [PLAIN, scalar(word)], skip_empty=skip)
    for unit in ("BYTE", "UTF8_CHAR"):
        yield case("StringLength", [WORDS.reshape(1, 5)], unit=unit)
        starts, sizes = [0, 1, 2, -1, -3, 0, 1, -2, 5], [1, 2, 100, 1, 2, 0, -1, -5, 1]
        hello = texts(*[b"Hello"] * 7, "gr\u00fc\u00df\U0001f600".encode(), b"Hello")
        kept = range(9) if unit == "BYTE" else [0, 1, 2, 3, 4, 5, 8]
        some = [array[kept] for array in (hello, np.int32(starts), np.int32(sizes))]
        yield case("Substr", some, unit=unit)
        for start in (6, -6):
            args = [texts(b"Hello"), np.int64(start), np.int64(1)]
            yield refused("Substr", args, unit=unit)
        grid = [WORDS[[0, 4]].reshape(2, 1), np.int64([[1, 2, 5]]), np.int64([[1, 2, 3]])]
        yield case("Substr", grid, unit=unit)
        yield case("Substr", [scalar(b"Hello"), np.int32([1, 5]), np.int32([2, 2])], unit=unit)
    for separator in ("", ", ", "\u00e9"):
        yield case("StringJoin", [WORDS, WORDS[::-1].copy()], separator=separator)
        yield case("StringJoin", [WORDS, scalar(b"a"), WORDS], separator=separator)
    yield case("StringJoin", [scalar(b"a"), scalar(b"b")])
    yield case("StringJoin", [WORDS])
    yield case("StringJoin", [WORDS[:3], scalar(b"-"), WORDS[:3]], separator="\u00fc")
    yield refused("StringJoin", [WORDS, WORDS[:2]])
    cube = texts(*(bytes([97 + i]) for i in range(12))).reshape(2, 3, 2)
    for axes in ([0], [1], [-1], [0, 1], [2, 0], [0, 1, 2], []):
        for keep in (False, True):
            attributes = {"keep_dims": keep, "separator": "-"}
            yield case("ReduceJoin", [cube, np.int32(axes)], **attributes)
    yield case("ReduceJoin", [scalar(b"a"), np.int32([])])
    yield refused("ReduceJoin", [cube, np.int32([3])])
    yield refused("ReduceJoin", [cube, np.int32([1, 1])])
    for ids in (np.int32([0, 2, 0, 1, 2]), np.int64([1, 1, 1, 3, 3])):
        yield case("UnsortedSegmentJoin", [WORDS, ids, np.int32(4)], separator="+")
    yield case("UnsortedSegmentJoin", [cube, np.int32([1, 0]), np.int64(3)], separator="+")
    yield refused("UnsortedSegmentJoin", [WORDS, np.int32([0, 1, 2, 3, 4]), np.int32(4)])
    yield refused("UnsortedSegmentJoin", [WORDS, np.int32([0, 1, 2, -1, 3]), np.int32(4)])


TEXTS = texts(
    b"Hello", b"", "gr\u00fc\u00df \U0001f600".encode(), b"a, b\t1\n2 ", b"x" * 60, b"[a].{b}"
)
MARKS = texts(
    b"a,b,,c", b"", b" two  words ", b",", b",,", "\u00e9t\u00e9,, \u00c9\n\U0001f600,".encode()
)


def told() -> Iterator[Case]:
    """Cases of what an exported file cuts, joins and measures, of texts of UTF-8."""
    for word in (b",", b"", b" ", b", ", "\u00e9".encode()):
        for most in (-1, 1, 2):
            yield case("StringSplitV2", [MARKS, scalar(word)], maxsplit=most)
    yield case("StringSplitV2", [texts(b"\t a\v\fb\r\n", b"   "), scalar(b"")], maxsplit=-1)
    yield case("StringSplitV2", [texts(b"", b""), scalar(b",")], maxsplit=-1)
    for unit in ("BYTE", "UTF8_CHAR"):
        long = texts(*(b"ab" * n for n in (1, 13, 100, 777)), "\u00fc\U0001f600".encode() * 91)
        yield case("StringLength", [np.concatenate([MARKS, long])], unit=unit)
        yield case("StringLength", [MARKS.reshape(2, 3)], unit=unit)
    every = texts(bytes(range(32, 127)), "\u00c4\u0130\U0001f600Zz".encode(), b"")
    yield case("StringLower", [every])
    yield case("StringLower", [MARKS.reshape(3, 2)])
    patterns = (
        "a",
        ",",
        "[,e]",
        r"\.",
        r"\s",
        r"\s+",
        "[ ,]+",
        "[a-e,]",
        "[[:punct:]]",
        r"[\n\-A-C]",
    )
    keras = "[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']"
    for pattern in (*patterns, r"[\n\-A-C]", keras):
        for rewrite in ("", "-", "<\u00e9,>"):
            given = {"pattern": pattern, "rewrite": rewrite, "exports": True}
            yield case("StaticRegexReplace", [np.concatenate([MARKS, every])], **given)
    yield case("RegexReplace", [MARKS, scalar(b"[, ]"), scalar(b"")], exports=True)
    joined = [MARKS.reshape(2, 3), np.int32([-1])]
    yield case("ReduceJoin", joined, separator="\u00e9", keep_dims=True)


PATTERNS = [
    b"", b"a", b"[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']", b"\\s+", b"[^a-z]",
    b"(?i)HELLO",
    b"(?i)[e-l]+", b"l+?", b"l*", b"^", b"$", b"\\b", b"(?m)^.", b"(?s).", b"a|b|", b"(l)(o)?",
    b"x{3}", b"x{2,5}", b"x{50,}?", b"\\x48|\\x{fc}", b"\\bx+$", b"(?U)x+", b"\\Qa,\\E+",
    b"[[:^alpha:]]", b"(x{10}){6}", b"(x{1000})?H?", b"(x{30})(x{30})",
    b"\\d|\\D", b"[\\w-]+", b"\\101|\\n|\\t", b"(?P<n>H)(?:e|l)+", b"{", b"a{,2}",
    b"\\AHello\\z", b"\xc3\xbc", b"[]a]", b"[^]a]", b"(?i)\\W",
    b"\\p{Lu}+", b"\\pL", b"\\P{L}+", b"[\\p{P}\\s]+", b"[^\\p{L}]", b"\\p{^Nd}", b"\\PN",
]  # fmt: skip
BAD = [
    b"(",
    b")",
    b"*",
    b"a**",
    b"[",
    b"[b-a]",
    b"\\1",
    b"(?=a)",
    b"x{1001}",
    b"(x{10}){101}",
    b"(a(x{20}b){30}|c){2}",
    b"\\Z",
    b"[a",
    b"a\\",
]


def expressions() -> Iterator[Case]:
    """Cases of regular expressions."""
    for pattern in PATTERNS:
        yield case("RegexReplace", [TEXTS, scalar(pattern), scalar(b"<\\0>")])
        once = {"pattern": pattern, "rewrite": b"_", "replace_global": False}
        yield case("StaticRegexReplace", [TEXTS], **once)
        yield case("StaticRegexFullMatch", [TEXTS], pattern=pattern)
    yield case("RegexFullMatch", [TEXTS, scalar(b"[Hx].+")])
    yield case("StaticRegexFullMatch", [TEXTS], pattern="gr.\u00df .|H(e|l)+o")
    for pattern in BAD:
        yield refused("RegexReplace", [TEXTS, scalar(pattern), scalar(b"")])
    yield case("RegexReplace", [TEXTS, scalar(b"(l)(x)?"), scalar(b"\\2\\1\\\\")])
    yield case("RegexReplace", [WORDS, scalar(b"[a-l]"), scalar(b"\xff")])
    yield case("RegexReplace", [TEXTS, scalar(b"(l)"), scalar(b"\\2")])


NUMBERS = texts(b"1", b"-2", b" 3 ", b"007", b"2147483647")
FLOATS = texts(
    b"1", b"-2.5", b" 3e2 ", b"+.5", b"5.", b"1E-3", b"inf", b"-INF", b"nan", b"1e400", b"1e-400",
    b"-0", b"0.1", b"16777217", b"16777217.0000000000000001", b"1e39", b"1e-45",
)  # fmt: skip


def numbers() -> Iterator[Case]:
    """Cases of numbers and base 64."""
    for type in ("int32", "int64"):
        yield case("StringToNumber", [NUMBERS], out_type=type)
    for type in ("float", "double"):
        yield case("StringToNumber", [FLOATS], out_type=type)
    for word in (b"", b"1.5", b"1 2", b"2147483648", b"+1", b"0x1f"):
        yield refused("StringToNumber", [texts(word)], out_type="int32")
    for word in (b"", b"a", b"1 2", b"1e", b".", b"1_0", b"infinity"):
        yield refused("StringToNumber", [texts(word)], out_type="float")
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        info = np.iinfo(dtype)
        values = np.array([info.min, 0, 7, info.max], dtype)
        yield case("AsString", [values])
        yield case("AsString", [values], width=6, fill="0")
    yield case("AsString", [np.array([True, False])])
    for dtype in (np.float16, np.float32, np.float64):
        values = np.array([0, -0.0, 1 / 3, -1.5, 1e4, np.inf, -np.inf, np.nan], dtype)
        forms: list[dict[str, Any]] = [{}, {"scientific": True}, {"shortest": True, "width": 12}]
        for form in (*forms, {"precision": 3}):
            yield case("AsString", [values], **form)
    for fill in (" ", "+", "-", "0", "#"):
        yield case("AsString", [np.float32([1.5, np.inf, -np.inf])], width=9, fill=fill)
    yield case("AsString", [np.complex64([1 + 2j, -0.5j])], precision=2)
    yield case("AsString", [np.complex128([1 + 2j, -0.5j])])
    yield refused("AsString", [np.int32([1])], precision=2)
    yield refused("AsString", [np.int32([1])], shortest=True)
    yield refused("AsString", [np.float32([1])], shortest=True, scientific=True)
    yield refused("AsString", [np.float32([1])], fill="x", width=3)
    for pad in (True, False):
        yield case("EncodeBase64", [WORDS], pad=pad)
    yield case("DecodeBase64", [texts(b"SGVsbG8", b"SGVsbG8=", b"", b"_-8", b"_w==", b"YWJj")])
    for word in (b"a", b"+/8", b"a=b", b"ab=", b"a b c", b"====", b"abc==", b"AB=C"):
        yield refused("DecodeBase64", [texts(word)])


def hashes() -> Iterator[Case]:
    """Cases of hashes and characters."""
    many = texts(*(bytes(range(n)) for n in (0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 130)))
    for name in ("StringToHashBucket", "StringToHashBucketFast"):
        yield case(name, [many], num_buckets=2**40)
    for key in ((1, 2), (-1, 2**62)):
        yield case("StringToHashBucketStrong", [many], num_buckets=1000003, key=key)
    method = scalar(b"farmhash64")
    cells = texts(b"a", b"b", b"", b"d").reshape(2, 2)
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    for data in (many, cells, many.reshape(-1, 1), grid, np.int64([1, 2]), np.uint8([1, 2, 3])):
        yield case("Fingerprint", [data, method])
    yield refused("Fingerprint", [many, scalar(b"md5")])
    yield refused("Fingerprint", [np.float32(1), method])
    for errors in ("replace", "ignore"):
        yield case("UnicodeDecode", [WORDS], **UTF8, errors=errors, Tsplits="int32")
        for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
            form = {"output_encoding": encoding, "errors": errors}
            yield case("UnicodeTranscode", [WORDS.reshape(1, 5)], **UTF8, **form)
            codes = [np.int32([72, 252, 0x1F600, 0xD800, -1]), np.int64([0, 2, 2, 5])]
            yield case("UnicodeEncode", codes, **form)
        odd = [np.int32([0xFFFE, 0xFDD0, 65, 0x110000, 0x1FFFF, 0xDC00]), np.int64([0, 6])]
        form = {"output_encoding": "UTF-16-BE", "errors": errors, "replacement_char": 63}
        yield case("UnicodeEncode", odd, **form)
    controls = {"replace_control_characters": True, "replacement_char": 63}
    yield case("UnicodeTranscode", [WORDS], **UTF8, output_encoding="UTF-8", **controls)
    yield case("StringLower", [WORDS])
    greek = "\u039f\u0394\u039f\u03a3 \u00c9 \u0130 \u1e9e".encode()
    yield case("StringLower", [texts(*WORDS, greek)], encoding="utf-8")
    yield refused("StringLower", [WORDS], encoding="latin-1")
    yield case("StringStrip", [texts(b" a ", b"\t\n\v\f\r b \n", b"\xc2\xa0c\x00 ", b"")])


def formats() -> list[Case]:
    numbers = np.float32([0.1, 1, -2.5, 1e10, 1.23456789, 1e-7, np.nan, np.inf])
    arrays = [
        numbers,
        numbers.astype(np.float64) / 3,
        np.float16([0.1, 1, -2.5, 65504, 1e-7, np.nan, np.inf]),
        np.arange(24).reshape(2, 3, 4),
        np.arange(60, dtype=np.int32).reshape(10, 6),
        np.array([True, False]),
        np.uint8([[1], [255]]),
        np.array(5.5),
        np.zeros((2, 0), np.float32),
        texts(b"a b", b"\n\"'\\\x01", "äß".encode()),
        np.complex64([1 + 2j]),
    ]
    found = []
    for array in arrays:
        for most in (3, 1, -1):
            given = {"template": "<%s>", "summarize": most}
            found.append(Case("StringFormat", [array], given, exports=False, note=str(most)))
    pair = {"template": "{} and {}!", "placeholder": "{}"}
    return [
        *found,
        Case("StringFormat", [np.int64(3), np.float32([1])], pair, exports=False),
        Case("StringFormat", [np.int64(3)], pair, exports=False, refused=True),
    ]


CASES = [
    *formats(),
    Case("StringToHashBucketFast", [WORDS], {"num_buckets": 1000}, exports=False),
    Case("UnicodeDecodeWithOffsets", [WORDS], UTF8, exports=False),
    Case("UnicodeDecodeWithOffsets", [WORDS], {**UTF8, "errors": "ignore"}, exports=False),
    Case(
        "UnicodeDecodeWithOffsets",
        [WORDS],
        {**UTF8, "replacement_char": 63, "replace_control_characters": True},
        exports=False,
    ),
    Case(
        "UnicodeDecodeWithOffsets",
        [WORDS],
        {**UTF8, "errors": "strict"},
        exports=False,
        refused=True,
        note="strict",
    ),
    Case(
        "UnicodeEncode",
        [np.int32([72, 252, 0x1F600, 65, -1]), np.int64([0, 2, 2, 5])],
        {"output_encoding": "UTF-8"},
        exports=False,
    ),
    *pieces(),
    *told(),
    *expressions(),
    *numbers(),
    *hashes(),
]
