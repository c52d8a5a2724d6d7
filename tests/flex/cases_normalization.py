"""tf.text's operators that change texts; see `cases_tokenizers.py`."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Array, Case, texts
from tests.flex.drawn_texts import drawn_texts
from tests.flex.tokenizer_models import tokenizer

FORMS = ("NFC", "NFD", "nfkc", "NFKD")
DRAWN = drawn_texts(21, 80, 16)
EDGES = texts(
    *(b"", b"\xffa\xcc\x81\xfe", b"a\xcc", b"A\xed\xa0\x80B", b"\xc3\xa9\x80", b"\xf0\x9f\x98"),
    *("e\u0301\u0327".encode(), "\u1100\u1161\u11a8".encode(), "\u0130\u01f0\u1fb7".encode()),
    *("\ufdfa\u3300".encode(), "\u00adx\u200d\ufe0f".encode(), "\u03f4\u1e9e\u13a0\uab70".encode()),
)


def every_character() -> Array:
    """Characters one by one, without those that have another form since Unicode 13: tf.text 2.18.1
    has Unicode 12.1."""
    later = {0x180F, 0x1C89, 0x1C8A, 0x2C2F, 0x2C5F}
    codes = [*range(0x20, 0x3400), *range(0xA640, 0xA7C0), *range(0xF900, 0x10000)]
    names = [chr(code) for code in codes if code not in later]
    return texts(*(" ".join(names[at : at + 100]).encode() for at in range(0, len(names), 100)))


def cases() -> list[Case]:
    found = []
    broken = drawn_texts(22, 40, broken=True)
    for at, given in enumerate((DRAWN, EDGES, broken, DRAWN.reshape(4, 20), every_character())):
        for form in FORMS:
            attributes = {"normalization_form": form}
            note = f"{at}-{form}"
            found.append(Case("NormalizeUTF8", [given], attributes, exports=False, note=note))
            name = "NormalizeUTF8WithOffsetsMap"  # its map is none of a model's results
            found.append(
                Case(
                    name,
                    [given],
                    attributes,
                    exports=False,
                    note=note,
                    results=1,
                    refused=form.endswith("D"),
                )
            )
        found.append(Case("CaseFoldUTF8", [given], exports=False, note=f"{at}"))
    refused = Case(
        "NormalizeUTF8", [EDGES], {"normalization_form": "NFX"}, exports=False, refused=True
    )
    for name in ("lower", "plain"):
        for offsets in (True, False):
            given = np.concatenate([EDGES, broken, texts(b"a\0b\x01 \xc2\xa0c")])
            found.append(
                Case(
                    "FastBertNormalize",
                    [given, tokenizer(name)],
                    {"get_offsets": offsets},
                    exports=False,
                    note=f"{name}-{offsets}",
                    results=None if offsets else 1,  # no tensor without elements is given
                )
            )
    return [*found, refused]


CASES = cases()
