"""Variables, hash tables and streams of random numbers: values take the place of handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tflite_ort.base.optional import late
from tflite_ort.base.records import field, record, replace
from tflite_ort.schema import ModelError, Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.file.flow import called_subgraphs
from tflite_ort.schema.values.operators import Key, key_of
from tflite_ort.schema.values.sizes import is_known, unknown_size
from tflite_ort.schema.values.view import Array, VariableKey
from tflite_ort.specialize.hash_tables import Tables, table_key
from tflite_ort.specialize.list_sizes import ListSizes

with late:
    from tflite_ort.schema.arithmetic import generators

# These give out a handle, which is known before the run; they are not run.
NAMES = frozenset({Op.VAR_HANDLE, Op.HASHTABLE})
# Of these the first input is a handle. Those in _SETS give what it stands for another value.
_USES: frozenset[Key] = frozenset(
    {
        Op.READ_VARIABLE,
        Op.ASSIGN_VARIABLE,
        Op.HASHTABLE_FIND,
        Op.HASHTABLE_IMPORT,
        Op.HASHTABLE_SIZE,
        "FlexWordpieceTokenizeWithOffsets",
    }
)
_SETS = frozenset({Op.ASSIGN_VARIABLE, Op.HASHTABLE_IMPORT})
# These keep their place in a stream of random numbers.
DRAWS = frozenset({Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL, Op.MULTINOMIAL})


def same_size(one: int, other: int) -> bool:
    """Whether two sizes are known to be the same."""
    return one is other or (is_known(one, other) and one == other)


def wider(
    one: TensorView, other: TensorView, same: Callable[[int, int], bool] = same_size
) -> TensorView:
    """`one` with sizes that are unknown where those of `other` are not the same."""
    if not (one.ranked and other.ranked and one.rank == other.rank):
        return replace(one, ranked=False)
    sizes = zip(one.shape, other.shape, strict=True)
    return replace(one, shape=tuple(a if same(a, b) else unknown_size() for a, b in sizes))


def _covers(one: TensorView, other: TensorView) -> bool:
    """Whether the shape of `one` says nothing that of `other` contradicts."""
    if not one.ranked:
        return True
    sizes = zip(one.shape, other.shape, strict=False)
    same_rank = other.ranked and one.rank == other.rank
    return same_rank and all(not is_known(a) or same_size(a, b) for a, b in sizes)


@record(frozen=False)
class Contents:
    """What the resources of a model hold, as far as its operators tell.

    Args:
        tables: the hash tables that have the same contents from the import on.
        types: the types of the keys and of the values of each table.
        tensors: the tensor that each variable can hold, by what it is assigned.
        guessed: the variables that were read before an assignment was seen.
        lists: the sizes of the elements of lists.
        changed: a reader was given a tensor that a later assignment does not fit; the subgraphs
            have to be specialised again.
    """

    tables: Tables = field(default_factory=dict)
    types: dict[VariableKey, tuple[TensorType, ...]] = field(default_factory=dict)
    tensors: dict[VariableKey, TensorView] = field(default_factory=dict)
    guessed: set[VariableKey] = field(default_factory=set)
    lists: ListSizes = field(default_factory=ListSizes)
    changed: bool = False

    def read(self, key: VariableKey, declared: TensorView) -> TensorView:
        """What a reader finds; if nothing was seen to be assigned, what it declares to find."""
        if key not in self.tensors:
            self.tensors[key] = declared
            self.guessed.add(key)
        return self.tensors[key]

    def assign(self, key: VariableKey, value: TensorView) -> TensorView:
        """The variable that can hold `value` beside what else it is assigned."""
        held = self.tensors.get(key)
        if held is None or key in self.guessed:
            self.changed |= held is not None and not _covers(held, value)
            self.tensors[key] = value
            self.guessed.discard(key)
        elif held.type is not value.type:
            raise ModelError(
                f"variable {key[1]!r} is assigned {value.type.name} and {held.type.name}"
            )
        elif not _covers(held, value):
            self.changed = True
            self.tensors[key] = wider(held, value)
        return self.tensors[key]


@record(frozen=False)
class Resources:
    """The resources that one subgraph uses.

    Args:
        contents: what the resources of the model hold.
        tensors: the tensors of the subgraph; the resources are added to them.
        handles: by tensor that is a handle, the resource.
        places: by resource, the tensor that it is.
        filled: the tables into which something has been imported by now.
    """

    contents: Contents
    tensors: list[TensorView]
    handles: dict[int, VariableKey] = field(default_factory=dict)
    places: dict[VariableKey, int] = field(default_factory=dict)
    filled: set[VariableKey] = field(default_factory=set)

    def take(
        self, inputs: Sequence[int], given: Sequence[TensorView], handles: Mapping[int, VariableKey]
    ) -> None:
        """Let the inputs of the subgraph be what its caller gives, with the caller's `handles`."""
        for index, tensor in zip(inputs, given, strict=False):
            own = self.tensors[index]
            if own.type is not tensor.type:
                raise ModelError(f"{own.name!r} is {own.type.name}, and given {tensor.type.name}")
            if tensor.index in handles:
                self.handles[index] = handles[tensor.index]
            self.tensors[index] = replace(
                own,
                shape=tensor.shape,
                ranked=tensor.ranked,
                constant=tensor.constant,
                sizes=tensor.sizes,
            )

    def keys(self) -> dict[int, VariableKey]:
        """The resources by tensor."""
        return {index: key for key, index in self.places.items()}

    def place(self, key: VariableKey, like: TensorView, *, is_set: bool) -> TensorView:
        """The resource as an input of an operator, which gives it another value or does not."""
        if key not in self.places:
            self.places[key] = len(self.tensors)
            self.tensors.append(like)
        view = replace(
            like,
            index=self.places[key],
            name=like.name if isinstance(key[0], int) else str(key[1]),
            constant=None,
            sizes=None,
            is_variable=True,
        )
        self.tensors[view.index] = view
        return replace(view, is_variable=is_set)

    def without_handle(self, op: OperatorView[Any]) -> OperatorView[Any]:
        """`op` with what it uses in place of the handle.

        Raises:
            ModelError: which resource it is depends on data.
        """
        if op.op in NAMES:
            self._name(op)
        if key_of(op) not in _USES:
            self._check_no_handle(op, op.inputs)
            return op
        self._check_no_handle(op, op.inputs[1:])
        source = op.inputs[0] if op.inputs else None
        key = None if source is None else self.handles.get(source.index)
        if key is None:
            raise ModelError(f"{op.label}: its variable or table is not known before the run")
        if op.op in (Op.HASHTABLE_FIND, Op.HASHTABLE_IMPORT):
            _check_types(op, self.contents.types.get(key, ()))
        if op.op is Op.HASHTABLE_IMPORT:
            self.filled.add(key)
        elif key in self.filled and key in self.contents.tables:
            table = self.constant(self._like(op, key), self.contents.tables[key])
            return replace(op, inputs=(table, *op.inputs[1:]))
        view = self.place(key, self._like(op, key), is_set=op.op in _SETS)
        return replace(op, inputs=(view, *op.inputs[1:]))

    def _check_no_handle(self, op: OperatorView[Any], values: Sequence[TensorView | None]) -> None:
        """Only what is called may get a handle from `op`: a handle has no value to compute with."""
        if not self.handles:
            return
        if op.custom_code is not None or not any(called_subgraphs(op.options)):
            for tensor in values:
                if tensor is not None and tensor.index in self.handles:
                    raise ModelError(f"{op.label}: {tensor.name!r} is a handle, not a value")

    def with_position(self, op: OperatorView[Any]) -> OperatorView[Any]:
        """`op` with, if it draws the random numbers of a seed, a variable as its last input: how
        far it has got, in blocks of the stream."""
        if op.op not in DRAWS or generators.random_seeds(op.options) is None:
            return op
        like = TensorView(-1, f"{op.label}/position", TensorType.INT64, ())
        position = self.place((op.subgraph, op.label), like, is_set=True)
        return replace(op, inputs=(*op.inputs, position))

    def constant(self, like: TensorView, value: Array) -> TensorView:
        """A tensor that the file does not have."""
        index = len(self.tensors)
        view = replace(like, index=index, shape=value.shape, constant=value, is_variable=False)
        self.tensors.append(view)
        return view

    def _name(self, op: OperatorView[Any]) -> None:
        if len(op.outputs) != 1:
            raise ModelError(f"{op.label} has {len(op.outputs)} outputs, expected 1")
        if op.output.type is not TensorType.RESOURCE:
            raise ModelError(f"{op.label}: a handle of type {op.output.type.name}")
        if op.op is Op.HASHTABLE:
            key = table_key(op.options.table_id)
            self.contents.types.setdefault(key, (op.options.key_dtype, op.options.value_dtype))
        else:
            key = (op.options.container or "", op.options.shared_name or "")
        self.handles[op.output.index] = key

    def _like(self, op: OperatorView[Any], key: VariableKey) -> TensorView:
        if op.op is Op.READ_VARIABLE and op.outputs:
            return self.contents.read(key, op.output)
        if op.op is Op.ASSIGN_VARIABLE and len(op.inputs) > 1 and op.inputs[1] is not None:
            return self.contents.assign(key, op.inputs[1])
        return TensorView(-1, "", TensorType.VARIANT, ())


def _check_types(op: OperatorView[Any], table: Sequence[TensorType]) -> None:
    """The table has keys and values of the types that `op` has."""
    given = tuple(tensor.type for tensor in op.present_inputs()[1:])
    if given != table:
        expected, found = ([type.name for type in types] for types in (table, given))
        raise ModelError(f"{op.label} has {found}, its table {expected}")
