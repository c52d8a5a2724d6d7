"""`install_as` at the moment when a program imports the package, and not before.

If `VARIABLE` names packages, every Python process of a service reads this file when it starts. So
it imports neither numpy nor ONNX Runtime: they are for processes that import such a package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

from tflite_ort.base.optional import late

with late:
    from tflite_ort.litert import environment

VARIABLE = "TFLITE_ORT_INSTALL_AS"


def wait() -> None:
    """Stand in for the packages that the environment names, once a program imports them."""
    if not any(isinstance(each, _Waiting) for each in sys.meta_path):
        sys.meta_path[:0] = [_Waiting(name) for name in os.environ.get(VARIABLE, "").split()]


def startup_folder() -> str:
    """The folder that makes each Python process `wait` whose PYTHONPATH begins with it."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")


class _Waiting:
    """Finds the first package of a name, such as ``tensorflow`` of ``tensorflow.lite``, once."""

    def __init__(self, name: str) -> None:
        self._name, self._root = name, name.partition(".")[0]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Install what was waited for.

        Raises:
            ValueError: the environment names a package that this library does not stand for, or an
                argument that does not exist.
            DelegateError: the installed onnxruntime has no provider of that name.
        """
        if fullname != self._root:
            return None
        sys.meta_path.remove(self)
        environment.install_as_told(self._name)
        # Taken out for so long: an import that finds a module there loads it by its own spec again.
        return ModuleSpec(fullname, _Found(sys.modules.pop(fullname)), is_package=True)


class _Found(Loader):
    """Loads a module that is there already.

    The import makes an empty module and gives it the spec above. The module that is there keeps its
    own.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import make one."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that is there in its place."""
        sys.modules[module.__name__] = self._module
