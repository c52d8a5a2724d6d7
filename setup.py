"""The README as the package page shows it.

A relative link leads nowhere there: its words stay, and a picture is left out. A `Source` among the
URLs of pyproject.toml, once there is a public repository, makes both lead into it.
"""

import posixpath
import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|mailto:)([^)\s]+)\)")
PICTURE = re.compile(r"<img src=\"(?!https?:)([^\"]+)\"([^>]*)>\n*")


def readme() -> str:
    """README.md without relative links."""
    with (HERE / "pyproject.toml").open("rb") as stream:
        source = tomllib.load(stream)["project"].get("urls", {}).get("Source")

    def link(match: re.Match[str]) -> str:
        words, path = match.groups()
        return f"[{words}]({posixpath.join(source, 'blob/main', path)})" if source else words

    def picture(match: re.Match[str]) -> str:
        shown = source and posixpath.join(source, "raw/main", match[1])
        return f'<img src="{shown}"{match[2]}>\n\n' if shown else ""

    text = (HERE / "README.md").read_text(encoding="utf-8")
    return PICTURE.sub(picture, LINK.sub(link, text))


if __name__ == "__main__":
    setup(long_description=readme(), long_description_content_type="text/markdown")
