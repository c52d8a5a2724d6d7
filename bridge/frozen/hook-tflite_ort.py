"""PyInstaller's hook: modules that are imported by a computed name, data files, the version."""

from importlib.util import find_spec

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

# Imported by name where they are installed: pictures, reports, templates and tokenizers.
_OPTIONAL = ("PIL.Image", "jinja2", "minijinja", "regex", "sentencepiece", "tokenizers")

datas = collect_data_files("tflite_ort") + copy_metadata("tflite-ort")
hiddenimports = [
    *collect_submodules("tflite_ort", on_error="raise"),
    *(name for name in _OPTIONAL if find_spec(name.partition(".")[0])),
]
