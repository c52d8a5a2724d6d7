"""Where TFLite's own tables disagree: registration, version rules, runtime versions."""

from __future__ import annotations

from tflite_ort.base.records import record
from tflite_ort.schema import Op


@record
class Disagreement:
    """One (operator, version) that some of TFLite's tables have and others do not.

    Args:
        registered: the runtime takes a file with it.
        required: some use of the operator needs it, by the version rules.
        runtime: its first release, if the table of those has it.
        here: what this library does.
    """

    op: Op
    version: int
    registered: bool
    required: bool
    runtime: str | None
    here: str


_WRITTEN_AS_LAST = "required_version gives it; update_versions writes the last one registered"
_NEVER_WRITTEN = "accepted in a file, never required or written"
_REFUSED = "refused, as by the runtime"

DISAGREEMENTS: tuple[Disagreement, ...] = (
    Disagreement(Op.LSTM, 5, False, True, None, _WRITTEN_AS_LAST),
    Disagreement(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, 5, False, True, None, _WRITTEN_AS_LAST),
    Disagreement(Op.DEQUANTIZE, 4, True, False, "2.2.0", _NEVER_WRITTEN),
    Disagreement(Op.EMBEDDING_LOOKUP, 2, True, False, "1.14.0", _NEVER_WRITTEN),
    Disagreement(Op.EMBEDDING_LOOKUP, 3, True, False, "1.14.0", _NEVER_WRITTEN),
    Disagreement(Op.EQUAL, 4, True, False, "2.13.0", _NEVER_WRITTEN),
    Disagreement(Op.QUANTIZE, 6, True, False, "2.21.0", _NEVER_WRITTEN),
    Disagreement(Op.STABLEHLO_CBRT, 1, False, True, "2.17.0", _REFUSED),
)
