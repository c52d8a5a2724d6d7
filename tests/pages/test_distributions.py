"""What goes out with a version: the bill of materials, versions and bounds that stand in several
files, the variables of the environment, and llms.txt."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pages.blocks import ROOT
from tests.pages.test_site import module_of
from tests.policy import PACKAGES

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BUNDLED = PYPROJECT["tool"]["tflite-ort"]["bundled"]
# Files of the package that are no Python, and this project's own.
OWN = {
    *(f"bridge/command/digits/{name}" for name in ("README.md", "float32.tflite", "int8.tflite")),
    *(f"bridge/command/digits/lstm_{kind}.tflite" for kind in ("float32", "int8")),
    "bridge/command/placements.json",
    "bridge/frozen/rthooks.dat",
    "opmap/graph/costs.json",
    *(f"bridge/verification/templates/{name}" for name in ("plots.html", "report.html")),
    *(f"bridge/verification/templates/report.{kind}" for kind in ("css", "js")),
}
VARIABLE = re.compile(r"\bTFLITE_ORT_[A-Z_]+\b")


def test_every_file_of_data_is_own_or_in_the_bill() -> None:
    folders = PYPROJECT["tool"]["setuptools"]["package-dir"]
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    files = {
        path.relative_to(ROOT).as_posix()
        for package, patterns in data.items()
        if package != "*"
        for pattern in patterns
        for path in Path(ROOT, folders[package]).glob(pattern)
        if path.is_file()
    }
    foreign = {each["file"] for each in BUNDLED}
    others = {path for path in files if not path.endswith((".py", "py.typed"))}
    assert others == foreign | OWN and not foreign & OWN


def test_the_bill_names_what_is_in_the_wheel_and_what_it_needs() -> None:
    bill = module_of(ROOT / "setup.py").sbom()
    parts = {part["bom-ref"]: part for part in bill["components"]}
    labels = parts["tflite_ort/model/label_sets/audioset.txt"]
    content = (ROOT / "bridge/model/label_sets/audioset.txt").read_bytes()
    assert labels["hashes"][0]["content"] == hashlib.sha256(content).hexdigest()
    assert labels["licenses"] == [{"license": {"id": "CC-BY-SA-4.0"}}]
    assert parts["pkg:pypi/typer"]["versionRange"] == "vers:pypi/>=0.26|<0.29"
    assert sum("isExternal" in part for part in parts.values()) == len(
        PYPROJECT["project"]["dependencies"]
    )
    (needed,) = bill["dependencies"]
    assert sorted(needed["dependsOn"]) == sorted(parts)


@pytest.mark.parametrize("name", ["CITATION.cff", "conda/recipe.yaml"])
def test_versions_are_one(name: str) -> None:
    told = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    project = PYPROJECT["project"]
    assert told.get("package", told)["version"] == project["version"]
    assert told.get("about", told)["license"] == project["license"]


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text(encoding="utf-8"))
    needed = {each.replace(" ", "") for each in recipe["requirements"]["run"]}
    project = PYPROJECT["project"]
    names = {each.replace("flatbuffers", "python-flatbuffers") for each in project["dependencies"]}
    assert needed == names | {f"python{project['requires-python']}"}


def test_the_page_of_variables_has_those_of_the_sources() -> None:
    folders = [*(ROOT / folder for folder in PACKAGES), ROOT / "stand_in"]
    paths = [path for folder in folders for path in folder.rglob("*.p*") if path.suffix != ".pyc"]
    sources = [path.read_text(encoding="utf-8") for path in (*paths, ROOT / "docs/site.py")]
    page = (ROOT / "docs/environment.md").read_text(encoding="utf-8")
    assert set(VARIABLE.findall(page)) == set(VARIABLE.findall("\n".join(sources)))


def test_the_page_of_versions_has_the_bounds() -> None:
    page = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    project = PYPROJECT["project"]
    bounds = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    lowest = dict(each.split(",")[0].split(">=") for each in bounds)
    for name in ("numpy", "onnx", "onnxruntime", "ai-edge-litert"):
        assert re.search(rf"^\| {name}\b.*\| from {re.escape(lowest[name])} \|", page, re.MULTILINE)
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert f"| Python | {pythons[0]} to {pythons[-1]} |" in page


def test_llms_txt_lists_every_page_with_a_sentence() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    navigation = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    listed = module_of(ROOT / "docs/site.py").llms("tflite-ort", "Runs models", navigation)
    assert listed.startswith("# tflite-ort\n\n> Runs models.\n\n## Start\n\n- [Start](index.md): ")
    entries = re.findall(r"^- \[[^\]]+\]\((\S+?)\.(?:md|html)\): (.+)$", listed, re.MULTILINE)
    assert {f"{path}.md" for path, _ in entries} == set(re.findall(r"\S+\.md$", text, re.MULTILINE))
    assert [line for _, line in entries if len(line) < 20 or line.count("`") % 2] == []
