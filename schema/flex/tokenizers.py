"""tf.text's operators that read a table of a vocabulary."""

from __future__ import annotations

from tflite_ort.schema.flex.rewriting import Site, rewriting


@rewriting("WordpieceTokenizeWithOffsets", stays=True)
def wordpiece(site: Site) -> bool:
    """The table comes first, as in TFLite's operators that read one."""
    table, words = site.input("vocab_lookup_table"), site.input("input_values")
    site.stay([table, words], site.outputs)
    return True
