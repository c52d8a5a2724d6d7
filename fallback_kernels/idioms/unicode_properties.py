"""Properties of characters that Python's `unicodedata` does not have, by the package `regex`."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from tflite_ort.base.optional import optional_module
from tflite_ort.schema import KernelError

# ISO 15924's codes of the scripts of Unicode, but for that of characters that have none.
_SCRIPTS = """
    Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Berf Bhks Bopo Brah Brai Bugi Buhd
    Cakm Cans Cari Cham Cher Chrs Copt Cpmn Cprt Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi
    Gara Geor Glag Gong Gonm Goth Gran Grek Gujr Gukh Guru Hang Hani Hano Hatr Hebr Hira Hluw Hmng
    Hmnp Hung Ital Java Kali Kana Kawi Khar Khmr Khoj Kits Knda Krai Kthi Lana Laoo Latn Lepc Limb
    Lina Linb Lisu Lyci Lydi Mahj Maka Mand Mani Marc Medf Mend Merc Mero Mlym Modi Mong Mroo Mtei
    Mult Mymr Nagm Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Onao Orkh Orya Osge Osma Ougr Palm Pauc
    Perm Phag Phli Phlp Phnx Plrd Prti Rjng Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sidt Sind
    Sinh Sogd Sogo Sora Soyo Sund Sunu Sylo Syrc Tagb Takr Tale Talu Taml Tang Tavt Tayo Telu Tfng
    Tglg Thaa Thai Tibt Tirh Tnsa Todr Tols Toto Tutg Ugar Vaii Vith Wara Wcho Xpeo Xsux Yezi Yiii
    Zanb Zinh Zyyy
"""
_CHARACTERS = 0x110000


@cache
def _regex() -> Any:
    module = optional_module("regex")
    if module is None:
        raise KernelError(
            "scripts and marks of sentences need regex: pip install 'tflite-ort[text]'"
        )
    return module


@cache
def _any_script() -> tuple[Any, tuple[str, ...]]:
    """An expression with a group for each script, and the scripts."""
    regex, known = _regex(), []
    for script in _SCRIPTS.split():
        try:
            regex.compile(rf"\p{{sc={script}}}")
        except regex.error:  # of a later Unicode than the package's
            continue
        known.append(script)
    pieces = "|".join(rf"(\p{{sc={script}}})" for script in known)
    return regex.compile(pieces), tuple(known)


@lru_cache(1 << 14)
def script_of(code: int) -> str:
    """The script of a character; empty where it has none, a space where there is no such number."""
    if not 0 <= code < _CHARACTERS:
        return " "
    expression, scripts = _any_script()
    match = expression.match(chr(code))
    return scripts[match.lastindex - 1] if match is not None else ""


@lru_cache(1 << 14)
def has_property(code: int, name: str) -> bool:
    """Whether a character has a property, such as ``Dash`` or ``Line_Break=Quotation``."""
    match = _regex().match(rf"\p{{{name}}}", chr(code))
    return match is not None
