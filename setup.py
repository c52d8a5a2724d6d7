"""What setuptools does not make of pyproject.toml itself.

The README is written as the package page shows it: a relative link leads nowhere there, so its
words stay, and a picture is left out. A `Source` among the URLs of pyproject.toml, once there is a
public repository, makes both lead into it.

A wheel has a bill of materials (PEP 770), from `bundled` in pyproject.toml. If `SOURCE_DATE_EPOCH`
is set, an archive of the sources holds that time in place of the build's; setuptools does so for
wheels.
"""

import gzip
import hashlib
import json
import os
import posixpath
import re
import tarfile
import tomllib
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|mailto:)([^)\s]+)\)")
PICTURE = re.compile(r"<img src=\"(?!https?:)([^\"]+)\"([^>]*)>\n*")
REQUIREMENT = re.compile(r"([\w.-]+)(.*)")
SBOM = Path("sboms", "tflite-ort.cdx.json")


def pyproject() -> dict[str, Any]:
    """The tables of pyproject.toml."""
    with (HERE / "pyproject.toml").open("rb") as stream:
        return tomllib.load(stream)


def readme() -> str:
    """README.md without relative links."""
    source = pyproject()["project"].get("urls", {}).get("Source")

    def link(match: re.Match[str]) -> str:
        words, path = match.groups()
        return f"[{words}]({posixpath.join(source, 'blob/main', path)})" if source else words

    def picture(match: re.Match[str]) -> str:
        shown = source and posixpath.join(source, "raw/main", match[1])
        return f'<img src="{shown}"{match[2]}>\n\n' if shown else ""

    text = (HERE / "README.md").read_text(encoding="utf-8")
    return PICTURE.sub(picture, LINK.sub(link, text))


def sbom() -> dict[str, Any]:
    """The bill of materials in CycloneDX's form: this package, the data of others in it, and the
    packages that it needs, which are not in it."""
    tables = pyproject()
    project = tables["project"]
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    needed = [REQUIREMENT.fullmatch(each) for each in project["dependencies"]]
    bundled = [_bundled(each) for each in tables["tool"]["tflite-ort"]["bundled"]]
    external = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name.lower().replace('_', '-')}",
            "name": name,
            "versionRange": f"vers:pypi/{versions.replace(',', '|')}",
            "isExternal": True,
            "purl": f"pkg:pypi/{name.lower().replace('_', '-')}",
        }
        for name, versions in (match.groups() for match in needed if match)
    ]
    component = {
        "type": "library",
        "bom-ref": own,
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"license": {"id": project["license"]}}],
        "purl": own,
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "version": 1,
        "metadata": {"component": component},
        "components": bundled + external,
        "dependencies": [
            {"ref": own, "dependsOn": [each["bom-ref"] for each in bundled + external]}
        ],
    }


def _place(file: str) -> str:
    """Where a file of the sources is in a wheel."""
    packages = pyproject()["tool"]["setuptools"]["package-dir"]
    names = {folder: name.replace(".", "/") for name, folder in packages.items()}
    folder = next(str(each) for each in Path(file).parents if each.as_posix() in names)
    return names[folder] + file.removeprefix(folder)


def _bundled(data: dict[str, str]) -> dict[str, Any]:
    """A file of the package whose content is from elsewhere."""
    licenses = [{"license": {"id": data["license"]}}] if "license" in data else []
    content = (HERE / data["file"]).read_bytes()
    return {
        "type": "data",
        "bom-ref": _place(data["file"]),
        "name": data["name"],
        "version": data["version"],
        "description": data["description"],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
        "licenses": licenses,
        "externalReferences": [{"type": "website", "url": data["url"]}],
    }


class WheelWithSbom(bdist_wheel):
    """A wheel, and all other forms of an installation, with the bill of materials."""

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        """Make the folder of metadata."""
        super().egg2dist(egginfo_path, distinfo_path)
        path = Path(distinfo_path, SBOM)
        path.parent.mkdir()
        path.write_text(json.dumps(sbom(), indent=2) + "\n", encoding="utf-8")


class DatedSdist(sdist):
    """An archive of the sources whose bytes follow from the sources and `SOURCE_DATE_EPOCH`."""

    def make_archive(self, base_name: Any, format: str, *args: Any, **named: Any) -> str:
        """Pack the folder of the release."""
        date = os.environ.get("SOURCE_DATE_EPOCH")
        if date is None or format != "gztar":
            return super().make_archive(base_name, format, *args, **named)

        def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = int(date), 0, 0, "", ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            return entry

        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(date)) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(named["base_dir"], filter=plain)  # in the order of the names
        return path


if __name__ == "__main__":
    setup(
        long_description=readme(),
        long_description_content_type="text/markdown",
        cmdclass={"bdist_wheel": WheelWithSbom, "sdist": DatedSdist},
    )
