"""tf.text's operators that put texts into Unicode's normal forms."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels import tokenizers
from tflite_ort.fallback_kernels.idioms.texts import text_array
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_MAPPED = ("NFC", "NFKC")
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# Unicode's property Default_Ignorable_Code_Point, beyond which characters stay.
_IGNORED = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)

# A custom operator of TFLite too.
flex_kernel("FastBertNormalize")(tokenizers.fast_bert_normalize)


@flex_kernel("CaseFoldUTF8")
def case_fold_utf8(op: View, inputs: Inputs, state: State) -> Outputs:
    """Without cases, in the form NFKC, and without characters that show nothing."""
    return (
        _each(inputs[0], lambda text: unicodedata.normalize("NFC", "".join(map(_folded, text)))),
    )


@lru_cache(1 << 14)
def _folded(character: str) -> str:
    """What NFKC_Casefold makes of a character."""
    while True:
        shown = "".join(each for each in character if not _is_ignored(ord(each)))
        after = unicodedata.normalize("NFKC", shown).casefold()
        if after == character:
            return after
        character = after


def _is_ignored(code: int) -> bool:
    return any(low <= code <= high for low, high in _IGNORED)


@flex_kernel("NormalizeUTF8")
def normalize_utf8(op: View, inputs: Inputs, state: State) -> Outputs:
    """In one of Unicode's forms. Bytes that are not UTF-8 stay where characters are composed."""
    form = _form(op)
    stays = form.endswith("C")
    return (_each(inputs[0], lambda text: unicodedata.normalize(form, text), stays=stays),)


@flex_kernel("NormalizeUTF8WithOffsetsMap")
def normalize_utf8_with_offsets_map(op: View, inputs: Inputs, state: State) -> Outputs:
    """As `normalize_utf8`, and a map that only `FindSourceOffsets` reads, which is not here."""
    form = _form(op)
    if form not in _MAPPED:
        raise KernelError(f"no map is made of {form}, but of {' and '.join(_MAPPED)}")
    (texts,) = normalize_utf8(op, inputs, state)
    return texts, np.empty(texts.shape, np.object_)


def _form(op: View) -> Any:
    form = node_of(op)["normalization_form"].upper()
    if form not in _FORMS:
        raise KernelError(f"normalization_form is {form!r}, expected one of {' '.join(_FORMS)}")
    return form


def _each(texts: Array, function: Callable[[str], str], *, stays: bool = True) -> Array:
    """The texts changed; bytes that are not UTF-8 stay, or are replaced."""
    errors = "surrogateescape" if stays else "replace"
    read = (bytes(text).decode("utf-8", errors) for text in texts.reshape(-1))
    changed = [function(text).encode("utf-8", "surrogateescape") for text in read]
    return text_array(changed).reshape(texts.shape)
