"""The README as the package page shows it: relative links lead to the repository."""

import posixpath
import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s]+)(?=\))")
PICTURE = re.compile(r"(?<=<img src=\")(?!https?:)([^\"]+)(?=\")")


def readme() -> str:
    """README.md with absolute links."""
    with (HERE / "pyproject.toml").open("rb") as stream:
        source = tomllib.load(stream)["project"]["urls"]["Source"]
    text = (HERE / "README.md").read_text(encoding="utf-8")
    text = LINK.sub(lambda match: posixpath.join(source, "blob/main", match[1]), text)
    return PICTURE.sub(lambda match: posixpath.join(source, "raw/main", match[1]), text)


if __name__ == "__main__":
    setup(long_description=readme(), long_description_content_type="text/markdown")
