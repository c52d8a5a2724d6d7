"""Every code block of the site and of the README runs, or says why not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import tflite_ort
from tests.pages.blocks import DATA, PAGES, PROGRAMS, ROOT, Block, blocks, run
from tests.pages.given import give

install = tflite_ort.install_as
ALL = [block for page in PAGES for block in blocks(page)]
# Blocks that no machine of the project can run: servers, clusters, downloads, other packages.
MOST_NOT_RUN = 28


def _groups() -> Iterator[Any]:
    """The programs of a page; with a mark, those of that mark and those above without one."""
    for page in PAGES:
        programs = [b for b in blocks(page) if b.language in PROGRAMS and b.reason is None]
        for mark in dict.fromkeys(block.mark for block in programs):
            chosen = [block for block in programs if block.mark in (None, mark)]
            name = f"{page.relative_to(ROOT)}{f' {mark}' if mark else ''}"
            quiet = pytest.mark.filterwarnings(
                "ignore"
            )  # large packages have warnings of their own
            marks = [getattr(pytest.mark, mark), quiet] if mark else []
            yield pytest.param(chosen, id=name, marks=marks)


@pytest.mark.parametrize("programs", list(_groups()))
def test_programs_run(
    programs: list[Block], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(tmp_path, "\n".join(block.text for block in programs))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    names: dict[str, Any] = {"__name__": "__main__"}
    with ExitStack() as stack:  # takes out again what a program installs
        monkeypatch.setattr(
            tflite_ort, "install_as", lambda name: stack.enter_context(install(name))
        )
        for block in programs:
            run(block, names)


def test_every_block_says_what_it_is() -> None:
    assert [b.place for b in ALL if b.language not in PROGRAMS | DATA] == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [block for block in ALL if block.reason is not None]
    assert all(block.reason for block in left_out)
    assert len(left_out) <= MOST_NOT_RUN, [block.place for block in left_out]


def test_a_block_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for language, text in (("python", "1 / 0"), ("sh", "false")):
        with pytest.raises(AssertionError, match=r"README\.md:3"):
            run(Block(PAGES[0], 3, language, text), {})
