"""How much disk the library and all that it depends on take, without extras.

    python benchmarks/installed_size.py [PACKAGE]

Counts the files of each distribution as the installer lists them, without byte code. The bar is
200 MB.
"""

from __future__ import annotations

import argparse
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

BAR_MEGABYTES = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def needed(name: str) -> dict[str, Distribution]:
    """A distribution and those that it depends on here, by name."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        each = waiting.pop().lower().replace("_", "-")
        if each in found:
            continue
        try:
            found[each] = distribution(each)
        except PackageNotFoundError:
            continue  # of another system
        for requirement in found[each].requires or ():
            if "extra ==" not in requirement:
                match = _NAME.match(requirement)
                waiting += [match.group()] if match else []
    return found


def megabytes(found: Distribution) -> float:
    """What its files take."""
    paths = (found.locate_file(each) for each in found.files or () if each.suffix != ".pyc")
    sizes = {str(path): path for path in paths}
    return sum(_size(path) for path in sizes) / 1e6


def _size(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return file.seek(0, 2)
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", nargs="?", default="tflite-ort")
    found = needed(parser.parse_args().package)
    sizes = {name: megabytes(each) for name, each in found.items()}
    for name, size in sorted(sizes.items(), key=lambda row: -row[1]):
        print(f"{size:8.1f} MB  {name} {found[name].version}")
    print(f"{sum(sizes.values()):8.1f} MB in all, bar {BAR_MEGABYTES}")


if __name__ == "__main__":
    main()
