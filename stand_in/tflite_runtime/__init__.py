"""The name `tflite_runtime`, under which code finds the interpreter of `tflite_ort`.

Environment variables say which providers, threads and so on it has: docs/stand_ins.md.
"""

from tflite_ort.litert.environment import install_as_told
from tflite_ort.litert.install import TFLITE_VERSION

__version__ = TFLITE_VERSION

install_as_told("tflite_runtime")
