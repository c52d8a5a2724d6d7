"""Says what tf.text's operators are, in the form of the file of facts of TensorFlow's own::

    python tests/flex/text_facts.py > text_ops.json

with a Python that has TensorFlow 2.18.1 and tensorflow-text 2.18.1. `tests.flex.facts` takes what
it prints beside the other file.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session

KIND = "tf.text/sentencepiece (not in wheel)"


def operators():
    """The definitions of all operators that there are by now."""
    found = op_def_pb2.OpList()
    found.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return {each.name: each for each in found.op}


def type_name(number):
    """Such as ``int32``."""
    return types_pb2.DataType.Name(number).removeprefix("DT_").lower()


def value(held):
    """What an AttrValue holds."""
    match held.WhichOneof("value"):
        case "type":
            return type_name(held.type)
        case "s":
            return held.s.decode()
        case "list":
            return [*map(type_name, held.list.type), *(each.decode() for each in held.list.s)]
        case name:
            return getattr(held, name)


def argument(each):
    """An input or an output."""
    names = ("type_attr", "type_list_attr", "number_attr")
    found = {name: getattr(each, name) for name in names if getattr(each, name)}
    if not {"type_attr", "type_list_attr"} & found.keys():
        found["type"] = type_name(each.type)
    return {"name": each.name, **found}


def attribute(each):
    """An attribute."""
    found = {"name": each.name, "type": each.type}
    if each.HasField("default_value"):
        found["default"] = value(each.default_value)
    if each.has_minimum:
        found["minimum"] = each.minimum
    if each.HasField("allowed_values"):
        found["allowed"] = value(each.allowed_values)
    return found


def facts(each):
    """An operator."""
    return {
        "class": "7 tf.text / sentencepiece kernels",
        "kind": KIND,
        "stateful": each.is_stateful,
        "inputs": [argument(arg) for arg in each.input_arg],
        "outputs": [argument(arg) for arg in each.output_arg],
        "attributes": [attribute(attr) for attr in each.attr],
    }


if __name__ == "__main__":
    before = operators()
    import tensorflow_text  # noqa: F401

    added = {name: facts(each) for name, each in operators().items() if name not in before}
    json.dump({"operators": added}, sys.stdout)
