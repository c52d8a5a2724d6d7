"""TensorFlow's reductions and scans, as TFLite's own."""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.options import (
    ArgMaxOptions,
    ArgMinOptions,
    BucketizeOptions,
    CumsumOptions,
    ReducerOptions,
)
from tflite_ort.schema.flex.rewriting import Site, rewriting

_T = TensorType
_REDUCERS = {
    "All": (Op.REDUCE_ALL, {_T.BOOL}),
    "Any": (Op.REDUCE_ANY, {_T.BOOL}),
    "Max": (Op.REDUCE_MAX, {_T.FLOAT32, _T.INT32, _T.INT64}),
    "Mean": (Op.MEAN, {_T.FLOAT32}),
    "Min": (Op.REDUCE_MIN, {_T.FLOAT32, _T.INT32, _T.INT64}),
    "Prod": (Op.REDUCE_PROD, {_T.FLOAT32, _T.INT32, _T.INT64}),
    "Sum": (Op.SUM, {_T.FLOAT32, _T.INT32, _T.INT64}),
}


@rewriting(*_REDUCERS)
def reduction(site: Site) -> bool:
    """The operator of `_REDUCERS`."""
    builtin, types = _REDUCERS[site.node.operator.name]
    if not site.is_of(*types):
        return False
    site.emit(builtin, site.inputs, site.outputs, ReducerOptions(keep_dims=site.node["keep_dims"]))
    return True


@rewriting("Cumsum")
def cumsum(site: Site) -> bool:
    """CUMSUM."""
    if not site.is_of(_T.FLOAT32, _T.INT32, _T.INT64) or site.node["Tidx"] != "int32":
        return False
    options = CumsumOptions(exclusive=site.node["exclusive"], reverse=site.node["reverse"])
    site.emit(Op.CUMSUM, site.inputs, site.outputs, options)
    return True


@rewriting("ArgMax", "ArgMin")
def extreme_place(site: Site) -> bool:
    """ARG_MAX or ARG_MIN."""
    type = site.node.type("output_type")
    if not site.is_of(_T.FLOAT32, _T.INT32) or type not in (_T.INT32, _T.INT64):
        return False
    if site.node.operator.name == "ArgMax":
        site.emit(Op.ARG_MAX, site.inputs, site.outputs, ArgMaxOptions(output_type=type))
    else:
        site.emit(Op.ARG_MIN, site.inputs, site.outputs, ArgMinOptions(output_type=type))
    return True


@rewriting("Bucketize")
def bucketize(site: Site) -> bool:
    """BUCKETIZE."""
    options = BucketizeOptions(boundaries=site.node["boundaries"])
    site.emit(Op.BUCKETIZE, site.inputs, site.outputs, options)
    return True
