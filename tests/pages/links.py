"""Follows the links of a folder of HTML pages: ``python -m tests.pages.links FOLDER``.

A link to a file of the folder has to lead to one, and its fragment to an element. Nothing that a
page shows or runs may come from another host.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, by element.
_LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
# Relations of `link` elements that load nothing.
_NOT_LOADED = {"canonical", "next", "prev"}


@dataclass
class _Page(HTMLParser):
    """The links and the names of one page."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif _LOADED.get(tag, "") in given and given.get("rel") not in _NOT_LOADED:
            self.loaded.append(given[_LOADED[tag]])


def wrong_links(folder: Path) -> list[str]:
    """What is wrong with the links of all pages below `folder`."""
    pages = {path.resolve(): _read(path) for path in folder.rglob("*.html")}
    wrong = []
    for path, page in sorted(pages.items()):
        here = path.relative_to(folder.resolve())
        wrong += [f"{here}: loads {url}" for url in page.loaded if urlsplit(url).netloc]
        for url in page.links + [url for url in page.loaded if not urlsplit(url).netloc]:
            if path.name != "404.html" and not _leads_somewhere(url, path, pages):
                wrong.append(f"{here}: {url} leads nowhere")
    return wrong


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _leads_somewhere(url: str, here: Path, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return parts.scheme in ("http", "https", "mailto", "data")
    target = (here.parent / unquote(parts.path)).resolve() if parts.path else here
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return False
    return (
        not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].names
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Follow the links of HTML pages.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    wrong = wrong_links(folder)
    count = len(list(folder.rglob("*.html")))
    print("\n".join(wrong) or f"the links of {count} pages lead somewhere")
    return bool(wrong or not count)


if __name__ == "__main__":
    sys.exit(main())
