"""Models of Hugging Face in the place of a path, through `huggingface_hub` and its cache.

A reference is ``hf://OWNER/NAME``, or ``litert-community/NAME`` where there is no such path, each
with ``@REVISION`` and ``/FILE`` behind it if these are to be told. A path that is there is never
taken for one. Of other owners ``hf://`` alone is asked for: a mistyped path is nobody's business.
"""

from __future__ import annotations

import os
import re
from typing import Any

from tflite_ort.base.optional import imported, optional_module
from tflite_ort.schema import UnreadableModel

_REFERENCE = re.compile(
    r"(?:hf:/{1,2}(?P<owner>[\w.-]+)|(?P<known>litert-community))"  # pathlib leaves one slash
    r"/(?P<name>[\w.-]+)(?:@(?P<revision>[\w.-]+))?(?:/(?P<file>.+))?"
)
_SUFFIXES = (".tflite", ".task", ".litertlm")


def local_file(path: str) -> str | None:
    """The file that a reference means, in the cache of `huggingface_hub`, which gets it if it is
    not there; None of what is no reference.

    Raises:
        UnreadableModel: there is no such file, several may be meant, it cannot be had, or
            `huggingface_hub` is not installed.
    """
    match = _REFERENCE.fullmatch(path)
    if match is None:
        return None
    hub: Any = optional_module("huggingface_hub")
    if hub is None:
        raise UnreadableModel(
            f"{path!r} is a model of Hugging Face: pip install huggingface_hub, or give a file"
        )
    repository = f"{match['owner'] or match['known']}/{match['name']}"
    failures: tuple[type[Exception], ...] = (OSError, ValueError, *_failures())
    try:
        return _fetched(hub, repository, match["revision"], match["file"])
    except failures as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableModel(f"{path!r} cannot be had of Hugging Face: {said}") from error


def _failures() -> tuple[type[Exception], ...]:
    """What `huggingface_hub` raises besides: of itself, and of the library that it asks with."""
    asks: Any = optional_module("httpx")
    own: type[Exception] = imported("huggingface_hub.errors").HfHubHTTPError
    return (own,) if asks is None else (own, asks.HTTPError)


def _fetched(hub: Any, repository: str, revision: str | None, file: str | None) -> str:
    if file is not None:
        return str(hub.hf_hub_download(repository, file, revision=revision))
    if imported("huggingface_hub.constants").HF_HUB_OFFLINE:
        folder = hub.snapshot_download(repository, revision=revision, local_files_only=True)
        names = [
            os.path.relpath(os.path.join(above, name), folder)
            for above, _, files in os.walk(folder)
            for name in files
        ]
    else:
        names = hub.list_repo_files(repository, revision=revision)
    models = sorted(name for name in names if name.endswith(_SUFFIXES))
    if len(models) != 1:
        listed = f"{', '.join(models)}: name one behind the reference" if models else "none"
        raise ValueError(f"{repository} has {len(models) or 'no'} models ({listed})")
    return str(hub.hf_hub_download(repository, models[0], revision=revision))
