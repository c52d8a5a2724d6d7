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
