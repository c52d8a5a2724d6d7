"""The networks of `mediapipe.solutions`: files of MediaPipe's own package, which nobody names."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from tflite_ort.tasks.options import BaseOptions

VARIABLE = "TFLITE_ORT_MEDIAPIPE_MODELS"


def module_folder() -> Path:
    """Where the networks are: in the folder that the environment names, or in an installed package,
    which is not imported.

    Raises:
        FileNotFoundError: there is none.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    found = PathFinder.find_spec("mediapipe", sys.path)
    for place in (found and found.submodule_search_locations) or ():
        folder = Path(place) / "modules"
        if (folder / "hand_landmark").is_dir():
            return folder
    raise FileNotFoundError(
        "mediapipe.solutions needs the networks of MediaPipe's package, and none that has them is "
        "installed: unpack its wheel (pip download --no-deps mediapipe==0.10.21), and let "
        f"{VARIABLE} name the folder mediapipe/modules in it"
    )


def bundled(files: Mapping[str, str]) -> BaseOptions:
    """The options of a task with these networks.

    Args:
        files: by name of a model in a bundle, its file in the folder of networks.

    Raises:
        FileNotFoundError: one is not there. MediaPipe downloads the light and the heavy network for
            poses; this library downloads nothing.
    """
    folder, stream = module_folder(), io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, file in files.items():
            archive.writestr(f"{name}.tflite", (folder / file).read_bytes())
    return BaseOptions(model_asset_buffer=stream.getvalue())
