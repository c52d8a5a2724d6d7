"""TensorFlow's own hash of bytes, and SipHash; both of 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

_MASK = 2**64 - 1
_MULTIPLIER, _SEED = 0xC6A4A7935BD1E995, 0xDECAFCAFFE
# "somepseudorandomlygeneratedbytes"
_SIP = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def plain_hash(text: bytes) -> int:
    """What TensorFlow calls Hash64, a form of MurmurHash."""
    whole = len(text) // 8 * 8
    value = _SEED ^ len(text) * _MULTIPLIER & _MASK
    for start in range(0, whole, 8):
        word = int.from_bytes(text[start : start + 8], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 47) * _MULTIPLIER & _MASK
        value = (value ^ word) * _MULTIPLIER & _MASK
    if whole < len(text):
        value = (value ^ int.from_bytes(text[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 47) * _MULTIPLIER & _MASK
    return value ^ value >> 47


def sip_hash(text: bytes, key: Sequence[int]) -> int:
    """SipHash-2-4 under a key of two words."""
    state = [constant ^ (key[i % 2] & _MASK) for i, constant in enumerate(_SIP)]
    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        state[3] ^= word
        _sip_round(state)
        _sip_round(state)
        state[0] ^= word
    state[2] ^= 0xFF
    for _ in range(4):
        _sip_round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_round(state: list[int]) -> None:
    a, b, c, d = state
    a, c = (a + b) & _MASK, (c + d) & _MASK
    b, d = _rotated(b, 13) ^ a, _rotated(d, 16) ^ c
    a = _rotated(a, 32)
    c, a = (c + b) & _MASK, (a + d) & _MASK
    b, d = _rotated(b, 17) ^ c, _rotated(d, 21) ^ a
    c = _rotated(c, 32)
    state[:] = a, b, c, d


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK
