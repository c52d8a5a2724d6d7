"""The pages for users are short enough to be read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Made by commands from tables, or for the most part.
GENERATED = {"operators.md", "options.md", "flex.md", "changes.md", "consumers.md", "benchmarks.md"}
GENERATED |= {"openvino_networks.md", "provider_operators.md"}
MOST_WORDS = 35_000


def test_the_pages_outside_of_internals() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    users = navigation.partition("- Internals:")[0]
    pages = [ROOT / "docs" / name for name in re.findall(r": (\S+\.md)$", users, re.MULTILINE)]
    texts = [each for each in pages if each.name not in GENERATED and each.exists()]
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in texts}
    assert len(words) > 20
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda each: -each[1])[:9]
