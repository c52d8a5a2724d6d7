"""Python imports this file when it starts, if its folder is the first one of PYTHONPATH, where
``tflite-ort as`` puts it. The file of this name that it hides is run too."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

from tflite_ort.litert.waiting import wait

wait()

_here = Path(__file__).resolve().parent
_hidden = PathFinder.find_spec(
    "sitecustomize", [folder for folder in sys.path if Path(folder).resolve() != _here]
)
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(module_from_spec(_hidden))
