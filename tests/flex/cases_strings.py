"""Cases of operators on texts."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Case, texts

WORDS = texts(b"Hello", b"", "gr\u00fc\u00df \U0001f600".encode(), b"a\xffb\t", b"x" * 100)
UTF8 = {"input_encoding": "UTF-8"}

CASES = [
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
]
