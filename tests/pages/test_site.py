"""What the site says of the package: every public name, every error, every page in its contents."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import tflite_ort
from tests.pages.blocks import ROOT
from tests.policy import PACKAGES
from tflite_ort import tasks
from tflite_ort.schema.file import (
    empty_options,
    enums,
    errors,
    layer_options,
    model,
    options,
    stablehlo_options,
)

DOCS = ROOT / "docs"
MODULES = (model, enums, layer_options, options, empty_options, stablehlo_options)


@cache
def module_of(path: Path) -> ModuleType:
    """A file of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _site() -> ModuleType:
    return module_of(DOCS / "site.py")


def documented() -> set[str]:
    """What the pages of the API ask mkdocstrings for."""
    texts = [path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md")]
    return {name for text in texts for name in re.findall(r"^::: (\S+)", text, re.MULTILINE)}


def test_every_public_name_is_in_the_reference() -> None:
    public = {f"tflite_ort.{name}" for name in tflite_ort.__all__}
    names = (name for name in tasks.__all__ if getattr(tasks, name) is not tasks)  # `mp.tasks`
    public |= {f"tflite_ort.tasks.{name}" for name in names}
    public |= {module.__name__ for module in MODULES}
    assert public - documented() == set()


def test_the_reference_names_nothing_that_does_not_exist() -> None:
    for name in documented():
        parent, _, last = name.rpartition(".")
        found = importlib.import_module(parent)
        assert hasattr(found, last), name


@pytest.mark.parametrize("name", errors.__all__)
def test_troubleshooting_tells_of_every_error(name: str) -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    listed = set(re.findall(r"(\S+\.md)$", contents, re.MULTILINE))
    assert pages | set(_site().PAGES.values()) == listed


@pytest.mark.parametrize(
    ("link", "source", "page", "becomes"),
    [
        ("docs/state.md#loops", "README.md", "index.md", "state.md#loops"),
        ("SECURITY.md", "README.md", "index.md", "security.md"),
        ("../SECURITY.md#limits", "docs/cache.md", "cache.md", "security.md#limits"),
        ("../errors.md", "docs/api/a.md", "api/a.md", "../errors.md"),
        ("pictures/hand.png", "docs/mediapipe.md", "mediapipe.md", "pictures/hand.png"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(
    link: str, source: str, page: str, becomes: str
) -> None:
    assert _site().relinked(f"[text]({link})", source, page) == f"[text]({becomes})"


def test_pictures_of_the_readme_are_pictures_of_the_site() -> None:
    text = _site().relinked('<img src="docs/pictures/answer.jpg" alt="">', "README.md", "index.md")
    assert text == '<img src="pictures/answer.jpg" alt="">'


def test_a_link_to_a_source_leads_to_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    site = _site()
    monkeypatch.delenv("TFLITE_ORT_REPOSITORY", raising=False)
    monkeypatch.setattr(site, "repository", str)  # there is no address
    assert site.relinked("a [text](../examples/atan.py).", "docs/state.md", "state.md") == "a text."
    monkeypatch.setattr(site, "repository", lambda: "https://example.org/x")
    text = site.relinked("[text](../examples/atan.py)", "docs/state.md", "state.md")
    assert text == f"[text]({site.repository()}/blob/main/examples/atan.py)"


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not Path(ROOT, link).exists()] == []


def test_the_messages_of_troubleshooting_are_in_the_source() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = [
        words
        for heading in re.findall(r"^### (.*)", page, re.MULTILINE)
        for quote in re.findall(r'"([^"]+)"', heading)
        for part in quote.split("...")
        if len(words := part.strip(" .':;,()")) > 3
    ]
    paths = [path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    flat = re.sub(r'"\s*f?"', "", source)  # texts over several lines
    assert len(quoted) > 20
    assert [words for words in quoted if words not in flat] == []


def test_the_picture_of_the_packages_is_that_of_the_rules(tmp_path: Path) -> None:
    made = tmp_path / "packages.svg"
    module_of(DOCS / "make_pictures.py").packages(made)
    assert made.read_bytes() == (DOCS / "pictures" / "packages.svg").read_bytes()


def test_the_search_reads_both_spellings() -> None:
    found = _site().spellings("Quantized weights, in gray. Normalising colours.")
    assert found == {"quantised", "grey", "normalizing", "colors"}
    assert _site().spellings("quantized and quantised models") == set()
