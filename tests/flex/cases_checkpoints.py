"""Cases of the names of checkpoints; test_checkpoints.py has their files."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Case, texts

NAME = texts(b"folder/all").reshape(())

CASES = [
    Case("ShardedFilename", [NAME, np.int32(3), np.int32(12)], {}, (0,), exports=False),
    Case(
        "ShardedFilename",
        [NAME, np.int32(123456), np.int32(0)],
        {},
        (0,),
        exports=False,
        note="long",
    ),
    Case("ShardedFilespec", [NAME, np.int32(12)], {}, (0,), exports=False),
]
