"""Run and export TensorFlow Lite models through ONNX Runtime.

>>> import tflite_ort
>>> interpreter = tflite_ort.Interpreter("model.tflite")          # doctest: +SKIP
>>> tflite_ort.export_onnx("model.tflite", "model.onnx")          # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflite_ort.base.optional import late_names

if TYPE_CHECKING:
    from tflite_ort.bundles import Bundle as Bundle
    from tflite_ort.bundles import open_bundle as open_bundle
    from tflite_ort.export.exporting import export_onnx as export_onnx
    from tflite_ort.export.signatures import export_signatures as export_signatures
    from tflite_ort.generation import EmbeddingModel as EmbeddingModel
    from tflite_ort.generation import Generated as Generated
    from tflite_ort.generation import GenerationError as GenerationError
    from tflite_ort.generation import LanguageModel as LanguageModel
    from tflite_ort.generation import generate as generate
    from tflite_ort.interpreter.interpreter import Interpreter as Interpreter
    from tflite_ort.interpreter.signatures import SignatureRunner as SignatureRunner
    from tflite_ort.interpreter.trained import trained_model as trained_model
    from tflite_ort.litert.custom_interpreter import (
        InterpreterWithCustomOps as InterpreterWithCustomOps,
    )
    from tflite_ort.litert.install import Installed as Installed
    from tflite_ort.litert.install import install_as as install_as
    from tflite_ort.metadata import Metadata as Metadata
    from tflite_ort.model.batch import batch_shape as batch_shape
    from tflite_ort.model.batch import batched_model as batched_model
    from tflite_ort.model.resolvers import BuiltinOpResolver as BuiltinOpResolver
    from tflite_ort.model.resolvers import InstalledOpResolver as InstalledOpResolver
    from tflite_ort.model.resolvers import WellKnownOpResolver as WellKnownOpResolver
    from tflite_ort.prediction.predictor import Predictor as Predictor
    from tflite_ort.providers.delegates import Delegate as Delegate
    from tflite_ort.providers.delegates import (
        ExecutionProviderDelegate as ExecutionProviderDelegate,
    )
    from tflite_ort.providers.delegates import OpResolverType as OpResolverType
    from tflite_ort.providers.delegates import load_delegate as load_delegate
    from tflite_ort.providers.exported_state import first_state as first_state
    from tflite_ort.providers.threads import share_threads as share_threads
    from tflite_ort.schema import AllocationError as AllocationError
    from tflite_ort.schema import BatchWarning as BatchWarning
    from tflite_ort.schema import BridgeError as BridgeError
    from tflite_ort.schema import BudgetExceeded as BudgetExceeded
    from tflite_ort.schema import Budgets as Budgets
    from tflite_ort.schema import CacheWarning as CacheWarning
    from tflite_ort.schema import DelegateError as DelegateError
    from tflite_ort.schema import DelegateWarning as DelegateWarning
    from tflite_ort.schema import ExportError as ExportError
    from tflite_ort.schema import ExportWarning as ExportWarning
    from tflite_ort.schema import InsufficientMemory as InsufficientMemory
    from tflite_ort.schema import KernelError as KernelError
    from tflite_ort.schema import MalformedBundle as MalformedBundle
    from tflite_ort.schema import MalformedModel as MalformedModel
    from tflite_ort.schema import MissingDelegate as MissingDelegate
    from tflite_ort.schema import MissingEntry as MissingEntry
    from tflite_ort.schema import ModelError as ModelError
    from tflite_ort.schema import ResizeError as ResizeError
    from tflite_ort.schema import StateError as StateError
    from tflite_ort.schema import TensorError as TensorError
    from tflite_ort.schema import TranslatorError as TranslatorError
    from tflite_ort.schema import Unbatchable as Unbatchable
    from tflite_ort.schema import UnknownOperator as UnknownOperator
    from tflite_ort.schema import UnreadableModel as UnreadableModel
    from tflite_ort.schema import UnresolvedOperator as UnresolvedOperator
    from tflite_ort.schema import UnsupportedSchema as UnsupportedSchema
    from tflite_ort.schema import UnsupportedVersion as UnsupportedVersion
    from tflite_ort.schema import Untranslatable as Untranslatable
    from tflite_ort.schema import VersionError as VersionError
    from tflite_ort.tuning.tuner import Tuning as Tuning
    from tflite_ort.verification import Report as Report
    from tflite_ort.verification import extract as extract
    from tflite_ort.verification import verify as verify
    from tflite_ort.versioning import MutableOpResolver as MutableOpResolver
    from tflite_ort.versioning import OpResolver as OpResolver
    from tflite_ort.versioning import Registration as Registration

# By module, the names that come from it when they are first used: the same as above.
_NAMES = {
    "model.batch": "batch_shape batched_model",
    "bundles": "Bundle open_bundle",
    "litert.custom_interpreter": "InterpreterWithCustomOps",
    "export.exporting": "export_onnx",
    "generation": "EmbeddingModel Generated GenerationError LanguageModel generate",
    "export.signatures": "export_signatures",
    "litert.install": "Installed install_as",
    "interpreter.interpreter": "Interpreter",
    "metadata": "Metadata",
    "prediction.predictor": "Predictor",
    "providers.delegates": "Delegate ExecutionProviderDelegate OpResolverType load_delegate",
    "providers.exported_state": "first_state",
    "providers.threads": "share_threads",
    "model.resolvers": "BuiltinOpResolver InstalledOpResolver WellKnownOpResolver",
    "schema": """
        AllocationError BatchWarning BridgeError BudgetExceeded Budgets CacheWarning DelegateError
        DelegateWarning ExportError ExportWarning InsufficientMemory KernelError MalformedBundle
        MalformedModel MissingDelegate MissingEntry ModelError ResizeError StateError TensorError
        TranslatorError Unbatchable UnknownOperator UnreadableModel UnresolvedOperator
        UnsupportedSchema UnsupportedVersion Untranslatable VersionError
    """,
    "interpreter.signatures": "SignatureRunner",
    "interpreter.trained": "trained_model",
    "tuning.tuner": "Tuning",
    "verification": "Report extract verify",
    "versioning": "MutableOpResolver OpResolver Registration",
}
_MODULES = {
    name: f"tflite_ort.{module}" for module, names in _NAMES.items() for name in names.split()
}

__getattr__ = late_names(__name__, {**_MODULES, "__version__": "tflite_ort.version"})
__all__ = sorted(_MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
