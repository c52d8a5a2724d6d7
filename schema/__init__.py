"""What a .tflite file says: reading, writing and the plain dataclasses in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflite_ort.base.optional import late_names as _late_names

if TYPE_CHECKING:
    # Every class that these modules define: options, tables, enumerations and errors.
    from tflite_ort.schema.builder import ModelBuilder as ModelBuilder
    from tflite_ort.schema.builder import SubgraphBuilder as SubgraphBuilder
    from tflite_ort.schema.file.budgets import Budgets as Budgets
    from tflite_ort.schema.file.element_types import TensorType as TensorType
    from tflite_ort.schema.file.empty_options import *  # noqa: F403
    from tflite_ort.schema.file.enums import *  # noqa: F403
    from tflite_ort.schema.file.errors import *  # noqa: F403
    from tflite_ort.schema.file.external import ExternalData as ExternalData
    from tflite_ort.schema.file.external import with_own_data as with_own_data
    from tflite_ort.schema.file.layer_options import *  # noqa: F403
    from tflite_ort.schema.file.model import *  # noqa: F403
    from tflite_ort.schema.file.options import *  # noqa: F403
    from tflite_ort.schema.file.read import read_model as read_model
    from tflite_ort.schema.file.stablehlo_options import *  # noqa: F403
    from tflite_ort.schema.file.tables import Table as Table
    from tflite_ort.schema.file.unions import BuiltinOptions as BuiltinOptions
    from tflite_ort.schema.file.unions import BuiltinOptions2 as BuiltinOptions2
    from tflite_ort.schema.file.write import write_model as write_model
    from tflite_ort.schema.values.view import Blocks as Blocks
    from tflite_ort.schema.values.view import OperatorView as OperatorView
    from tflite_ort.schema.values.view import Quantization as Quantization
    from tflite_ort.schema.values.view import Specialized as Specialized
    from tflite_ort.schema.values.view import TensorView as TensorView

_VALUES = "Blocks OperatorView Quantization Specialized TensorView"
__getattr__ = _late_names(
    __name__,
    {
        "BuiltinOptions": "tflite_ort.schema.file.unions",
        "BuiltinOptions2": "tflite_ort.schema.file.unions",
        "Budgets": "tflite_ort.schema.file.budgets",
        "ExternalData": "tflite_ort.schema.file.external",
        "ModelBuilder": "tflite_ort.schema.builder",
        "SubgraphBuilder": "tflite_ort.schema.builder",
        "Table": "tflite_ort.schema.file.tables",
        "TensorType": "tflite_ort.schema.file.element_types",
        "read_model": "tflite_ort.schema.file.read",
        "with_own_data": "tflite_ort.schema.file.external",
        "write_model": "tflite_ort.schema.file.write",
        **dict.fromkeys(_VALUES.split(), "tflite_ort.schema.values.view"),
    },
    [
        f"tflite_ort.schema.file.{module}"
        for module in (
            *("errors", "enums", "model", "options"),
            *("layer_options", "empty_options", "stablehlo_options"),
        )
    ],
)
