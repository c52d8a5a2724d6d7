"""The words of the vocabularies of the cases, which need nothing to be read."""

WORDS = (
    *("[UNK]", "a", "abc", "un", "hello", "world", "##aff", "##able", "##a", "##b", "##c", "##bc"),
    *(
        "##x",
        "x",
        "\u00e4",
        "##\u00e4",
        "\u4e2d",
        "\u0434\u043e",
        "##\u043c",
        "!",
        "...",
        "##.",
        "42",
    ),
)
# A vocabulary that has the suffix indicator itself.
INDICATED = (*WORDS, "##", "#")

# What the models of `make_text_models.py` are given: batches of texts.
BATCHES = (
    (b"hello unaffable world!", "ABC, \u00c4\u4e2d\u6587 x".encode()),
    (b"a",),
    (b" ", b""),
    (
        b"Hello...\tun-aff",
        b" ",
        "\u3000\u0434\u043e\u043c e\u0301\u00df $42".encode(),
        b"[UNK] ##a a\xff",
    ),
)
