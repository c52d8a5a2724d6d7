"""The interpreter: from an opened model to arrays out.

It has the names that LiteRT's module ``interpreter`` has.
"""

from tflite_ort.base.optional import late_names

_DELEGATES = "tflite_ort.providers.delegates"
_MODULES = {
    "Interpreter": "tflite_ort.interpreter.interpreter",
    "SignatureRunner": "tflite_ort.interpreter.signatures",
    **dict.fromkeys(("Delegate", "OpResolverType", "load_delegate"), _DELEGATES),
}
__getattr__ = late_names(__name__, _MODULES)
