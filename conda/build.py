"""Builds the recipe beside this file, and runs the package's tests: `.ci/conda` calls it.

python conda/build.py FOLDER            with conda-forge
python conda/build.py FOLDER SITE...    with stand-ins where conda-forge cannot be reached

A stand-in, on Linux only, is an empty package of the lowest version that the recipe takes. The one
of Python is a virtual environment of this Python, which also sees the folders SITE, where the
needed packages are.
"""

import argparse
import hashlib
import json
import platform
import re
import shutil
import sys
import sysconfig
import venv
from collections.abc import Iterable
from pathlib import Path

import rattler_build
import yaml

RECIPE = Path(__file__).with_name("recipe.yaml")


def stand_ins(channel: Path, sites: list[str]) -> None:
    """A channel that has what the recipe needs."""
    python = channel / "python"
    venv.create(python, with_pip=True, upgrade_deps=True, symlinks=False)
    (packages,) = python.glob("lib/python3*/site-packages")
    seen = [*sites, sysconfig.get_path("purelib")]  # the last one for setuptools
    (packages / "needed.pth").write_text("".join(f"{site}\n" for site in seen))
    for path in list(python.rglob("*")):
        if path.is_symlink():
            path.unlink()
        elif path.name == "__pycache__":
            shutil.rmtree(path)
    version = ".".join(map(str, sys.version_info[:3]))
    machine = platform.machine()
    here = "linux-64" if machine == "x86_64" else f"linux-{machine}"
    index(channel / here, [package(channel, "python", version, here, python)])
    needed = yaml.safe_load(RECIPE.read_text())["requirements"]
    lines = "\n".join(needed["host"] + needed["run"])
    lowest = dict(re.findall(r"^(?!python )(\S+)(?: >=([\d.]+))?", lines, re.MULTILINE))
    others = [package(channel, name, lowest[name] or "1", "noarch") for name in lowest]
    index(channel / "noarch", others)


def package(channel: Path, name: str, version: str, subdir: str, files: Path | None = None) -> Path:
    """A package of these files."""
    folder = channel / subdir
    folder.mkdir(parents=True, exist_ok=True)
    kind = "generic" if subdir == "noarch" else None
    made = rattler_build.assemble_package(
        name, version, subdir, "0", folder, files_dir=files, noarch=kind, compression_level=1
    )
    return Path(made.path)


def index(folder: Path, packages: Iterable[Path]) -> None:
    """What a channel says of the packages in a folder."""
    entries = {}
    for path in packages:
        name, version, build = path.stem.rsplit("-", 2)
        content = path.read_bytes()
        entries[path.name] = {
            "name": name,
            "version": version,
            "build": build,
            "build_number": 0,
            "depends": [],
            "subdir": folder.name,
            "sha256": hashlib.sha256(content).hexdigest(),
            "size": len(content),
        }
    said = {"info": {"subdir": folder.name}, "packages": {}, "packages.conda": entries}
    (folder / "repodata.json").write_text(json.dumps(said))


def main() -> None:
    """Build and test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the package is written")
    parser.add_argument("site", nargs="*", help="where installed packages are, for stand-ins")
    told = parser.parse_args()
    channels = ["conda-forge"]
    if told.site:
        channel = (told.folder / "stand_ins").absolute()
        stand_ins(channel, told.site)
        channels = [channel.as_uri()]
    recipe = rattler_build.Stage0Recipe.from_file(RECIPE)
    (variant,) = recipe.render(rattler_build.VariantConfig())
    result = variant.run_build(output_dir=told.folder, channels=channels)
    (path,) = result.packages
    built = rattler_build.Package.from_file(path)
    for test in built.run_tests(channel=channels):
        if not test.success:
            sys.exit("\n".join(test.output))
    print(f"{path}: {built.test_count} tests passed")


if __name__ == "__main__":
    main()
