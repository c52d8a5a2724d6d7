"""What MkDocs does besides turning pages into HTML, for `mkdocs.yml`.

- README.md, SECURITY.md, CHANGELOG.md and benchmarks/README.md are pages too.
- Links are written so that they work in the repository. A link to a file that is a page of the site
  leads there, and a link to any other file leads to the repository.
- The search finds words in both spellings, such as quantized and quantised.
- `llms.txt` at the root lists the pages for programs that read them, with a sentence of each. The
  text of each page is beside it as Markdown.
- The packages are linked under their import names, so that mkdocstrings finds the sources.
"""

import atexit
import json
import os
import posixpath
import re
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# File of the repository -> page of the site. All of docs/ are pages under their own names.
PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changes.md",
    "benchmarks/README.md": "measured.md",
}
PACKAGES = ("schema", "versioning", "opmap", "fallback_kernels")
LINK = re.compile(
    r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)((?:#[^)\s]*)?)(?=\))"
    r"|(?<=<img src=\")(?!https?:)([^\"]+)(?=\")"
)
# Parts of words in American and in British spelling.
SPELLINGS = {
    **{
        f"{stem}iz{end}": f"{stem}is{end}"
        for stem in ("quant", "normal", "optim", "serial", "special", "initial", "minim")
        for end in ("e", "at", "ing")
    },
    "color": "colour",
    "center": "centre",
    "gray": "grey",
    "license": "licence",
}
# What is linked to a source that has no address.
NOWHERE = "nowhere:"
UNLINKED = re.compile(rf"\[([^\]]*)\]\({NOWHERE}[^)]*\)")


def on_config(config: Any) -> Any:
    """Links the sources together in a folder, and tells mkdocstrings of it."""
    links = Path(tempfile.mkdtemp(prefix="tflite-ort-site-"))
    atexit.register(shutil.rmtree, links)
    package = links / "tflite_ort"
    package.mkdir()
    for path in (*(ROOT / "bridge").iterdir(), *(ROOT / name for name in PACKAGES)):
        (package / path.name).symlink_to(path)
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(links)]
    # Not repo_url: with that, every page asks the host of the repository how popular it is.
    if link := repository():
        config.extra["social"] = [{"icon": "fontawesome/brands/git-alt", "link": link}]
    return config


on_config.mkdocs_priority = 100  # type: ignore[attr-defined]  # before mkdocstrings reads its paths


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are not in docs/."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """The page with links as the site has them; a copy of its Markdown goes beside it."""
    here = page.file.src_uri
    sources = {page: source for source, page in PAGES.items()}
    text = relinked(markdown, sources.get(here, f"docs/{here}"), here)
    copy = Path(config.site_dir, here)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text, encoding="utf-8")
    return text


def relinked(markdown: str, source: str, page: str) -> str:
    """A page with its links rewritten.

    Args:
        source: the page's file in the repository, to which its links are relative.
        page: its place in the site.
    """

    def rewritten(match: re.Match[str]) -> str:
        link, fragment = match[1] or match[3], match[2] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        if target in PAGES or target.startswith("docs/"):
            inside = PAGES.get(target, target.removeprefix("docs/"))
            return posixpath.relpath(inside, posixpath.dirname(page) or ".") + fragment
        return f"{repository() or NOWHERE}/blob/main/{target}{fragment}"

    return UNLINKED.sub(r"\1", LINK.sub(rewritten, markdown))


def on_post_build(config: Any) -> None:
    """Writes llms.txt, and adds the other spelling of words to what the search reads."""
    text = llms(config.site_name, config.site_description, config.nav)
    (Path(config.site_dir) / "llms.txt").write_text(text, encoding="utf-8")
    index = Path(config.site_dir) / "search" / "search_index.json"
    found = json.loads(index.read_text(encoding="utf-8"))
    for page in found["docs"]:
        others = " ".join(sorted(spellings(f"{page['title']} {page['text']}")))
        page["text"] += f"<p>{others}</p>" if others else ""
    index.write_text(json.dumps(found, separators=(",", ":")), encoding="utf-8")


on_post_build.mkdocs_priority = -50  # type: ignore[attr-defined]  # after search, before offline


def llms(name: str, description: str, nav: list[dict[str, Any]]) -> str:
    """What programs read first, in the form of llmstxt.org: the pages of a navigation.

    The reference has no text of its own before it is built, so its links lead to what is.
    """
    lines = [f"# {name}", "", f"> {description}."]
    alone = [entry for entry in nav if isinstance(next(iter(entry.values())), str)]
    sections = [entry for entry in nav if entry not in alone]
    for entry in ({"Start": alone}, *sections):
        ((title, pages),) = entry.items()
        lines += ["", f"## {title}", ""]
        for page in pages:
            ((words, path),) = page.items()
            link = path.replace(".md", ".html") if path.startswith("api/") else path
            lines.append(f"- [{words}]({link}): {first_sentence(path)}")
    return "\n".join(lines) + "\n"


def first_sentence(page: str) -> str:
    """The first sentence of a page, without the targets of its links."""
    sources = {page: source for source, page in PAGES.items()}
    text = (ROOT / sources.get(page, f"docs/{page}")).read_text(encoding="utf-8")
    paragraphs = re.sub(r"^(?:```.*?^```|<!--.*?-->)$", "", text, flags=re.DOTALL | re.MULTILINE)
    first = next(each for each in re.split(r"\n\s*\n", paragraphs) if re.match(r"\s*[\w`\[]", each))
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return re.split(r"(?<=[.:;])\s(?=\W*[A-Z`])", words)[0]


def spellings(text: str) -> set[str]:
    """The words of a text that have another spelling, in that one."""
    other = {**SPELLINGS, **{british: american for american, british in SPELLINGS.items()}}
    words = set(re.findall(r"[a-z]+", text.lower()))
    swapped = {
        word.replace(part, other[part], 1) for word in words for part in other if part in word
    }
    return swapped - words


def repository() -> str:
    """Where the source is: the variable `TFLITE_ORT_REPOSITORY`, or else as pyproject.toml says;
    empty where neither does. Links to sources are plain text then."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        source: str = tomllib.load(stream)["project"].get("urls", {}).get("Source", "")
    return os.environ.get("TFLITE_ORT_REPOSITORY", source)
