"""What numpy kernels need of a subgraph, as JSON: `stored_operators` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.plan.steps import without_variables
from tflite_ort.plan.stored_rows import tensor_row
from tflite_ort.schema import OperatorView, Specialized, TensorType, TensorView
from tflite_ort.schema.file.fields import Scalar, String, Strings, Vector, View
from tflite_ort.schema.file.operators import options_table
from tflite_ort.schema.file.strings import encoded
from tflite_ort.schema.file.tables import fields_of
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import Packed
from tflite_ort.specialize.called_subgraphs import CALLERS

Array = npt.NDArray[Any]
Row = list[Any]

_ALIGNMENT = 16


class Unstorable(Exception):
    """An operator that the rows cannot describe."""


@record
class Constants:
    """Where the arrays of constants are.

    Args:
        content: the bytes of the model.
        computed: the bytes of arrays that are not in it.
    """

    content: Array
    computed: bytearray

    def row(self, array: Array) -> Row:
        """Whether an array is in the model, where, and its bytes."""
        start = array.ctypes.data - self.content.ctypes.data
        if array.flags.c_contiguous and 0 <= start <= self.content.size - array.nbytes:
            return [True, start, array.nbytes]
        return self.bytes_row(array.tobytes())

    def bytes_row(self, text: bytes) -> Row:
        """As `row`, of bytes that were made."""
        self.computed.extend(bytes(-len(self.computed) % _ALIGNMENT))
        start = len(self.computed)
        self.computed.extend(text)
        return [False, start, len(text)]


class OperatorRows:
    """The rows of one subgraph's operators, and of the tensors that they name.

    Args:
        constants: where arrays go.

    Attributes:
        tensors: each as often as operators see it differently.
    """

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self.tensors: list[Row] = []
        self._places: dict[int, int] = {}
        self._kept: list[TensorView] = []  # what `_places` has the identity of
        self._unknown: list[Any] = []

    def tensor(self, tensor: TensorView) -> int:
        """The place of a tensor among `tensors`.

        Raises:
            Unstorable: its values are of no kind that the rows have.
        """
        place = self._places.get(id(tensor))
        if place is None:
            row = tensor_row(tensor)
            row[3] = [self._size(size) for size in tensor.shape]
            self._places[id(tensor)] = place = len(self.tensors)
            self._kept.append(tensor)
            self.tensors.append([*row, self._constant(tensor), self._blocks(tensor)])
        return place

    def operator(self, op: OperatorView[Any]) -> Row:
        """An operator as its kernel gets it.

        Raises:
            Unstorable: something of it is of no kind that the rows have.
        """
        op = without_variables(op) if op.op in CALLERS else op
        bodies = [self._body(body) for body in op.bodies]
        given = op.custom_options
        return [
            *(int(op.op), op.custom_code, op.version, op.index, op.subgraph),
            [None if each is None else self.tensor(each) for each in op.inputs],
            [self.tensor(each) for each in op.outputs],
            [self.tensor(each) for each in op.intermediates],
            self._options(op) if op.custom_code is None else None,
            None if given is None else self._constants.row(given),
            bodies,
            op.origin,
        ]

    def _body(self, body: Specialized) -> Row:
        """What a kernel asks of a subgraph: which it is, and what its operators are called."""
        return [body.subgraph, [int(op.op) for op in (*body.operators, *body.folded)]]

    def _size(self, size: Any) -> int:
        """A size, or what stands for one that is unknown: the same for the same one."""
        if is_known(size):
            return int(size)
        places = [place for place, each in enumerate(self._unknown) if each is size]
        if not places:
            places = [len(self._unknown)]
            self._unknown.append(size)
        return -1 - places[0]

    def _constant(self, tensor: TensorView) -> Row | None:
        values = tensor.constant
        if values is None:
            return None
        if isinstance(values, Packed):
            return [*self._constants.row(values.octets), values.bits, values.signed]
        if (values.shape, values.dtype) != (tensor.shape, tensor.dtype):
            raise Unstorable(f"{tensor.name!r} has values of another shape or type")
        if not values.dtype.hasobject:
            return self._constants.row(values)
        if all(type(each) is bytes for each in values.reshape(-1)):
            return self._constants.bytes_row(encoded(values))
        if tensor.type is not TensorType.VARIANT or not isinstance(values[()], dict):
            raise Unstorable(f"{tensor.name!r} has values that are no texts")
        return self._table(values[()])

    def _table(self, content: Mapping[Any, Any]) -> Row:
        """A hash table: its texts and numbers, how many of each, and whether texts are the keys."""
        sides = list(content), list(content.values())
        of_texts = bool(content) and isinstance(sides[0][0], bytes)
        texts, numbers = sides if of_texts else sides[::-1]
        return [
            self._constants.bytes_row(encoded(np.array(texts, np.object_))),
            self._constants.row(np.array(numbers, np.int64)),
            len(content),
            of_texts,
        ]

    def _blocks(self, tensor: TensorView) -> Row | None:
        blocks = tensor.blocks
        if blocks is None:
            return None
        return [*self._constants.row(blocks.scale), list(blocks.scale.shape), blocks.size]

    def _options(self, op: OperatorView[Any]) -> Row:
        table = options_table(op.op)
        if type(op.options) is not table:
            raise Unstorable(f"{op.label} has the options of another operator")
        row = []
        for name, field in fields_of(table).items():
            value = getattr(op.options, name)
            if isinstance(field, View) and value is not None:
                value = self._constants.row(value)
            elif not isinstance(field, Scalar | String | Strings | Vector) and value is not None:
                raise Unstorable(f"{op.label} has tables in its options")
            row.append(value)
        return row
