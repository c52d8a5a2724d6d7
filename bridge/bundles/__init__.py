"""Bundles: one file that holds several models and what belongs to them, read in place."""

from __future__ import annotations

from tflite_ort.bundles.bundle import Bundle, open_bundle
from tflite_ort.bundles.entries import Entry

__all__ = ["Bundle", "Entry", "open_bundle"]
