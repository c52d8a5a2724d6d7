"""A model as a function of any number of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np

from tflite_ort.base.foreign_arrays import host_array
from tflite_ort.interpreter import shown
from tflite_ort.prediction.array_files import Array, InputError
from tflite_ort.prediction.preparation import (
    Column,
    Preparation,
    checked_columns,
    column_of,
    columns_of,
)
from tflite_ort.prediction.row_model import ModelSource, RowModel
from tflite_ort.prediction.tensors import OutputColumn, free_name
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import Budgets
from tflite_ort.versioning.resolver import OpResolver

LABEL, SCORE = "_label", "_score"


class Predictor:
    """Runs a model over any number of independent rows: a dictionary of arrays in, one out.

    A row is one sample. An input [1, 224, 224, 3] takes rows [n, 224, 224, 3]; one that does not
    lead with 1, such as [15600], takes [n, 15600]. Outputs are laid out in the same way. Where the
    shape of an output may differ from row to row, it is an object array of n arrays.

    Args:
        model: a ``.tflite`` file or the bytes of one.
        batch_size: the most rows that the model takes at once. None chooses: at most 32, fewer on
            the CPU where more would leave its caches. If a batch of the model is not proved to be
            right, each row runs by itself, with a BatchWarning.
        preprocess: columns hold media. Images are uint8 [h, w, c] or [h, w] of any size, resized
            and normalised as the metadata say; sound is [samples] or [samples, channels], floats
            in [-1, 1] or signed integers, at the model's rate, with silence added at the end.
        labels: for an output of scores whose labels the model has, add the columns
            ``NAME_label`` and ``NAME_score`` (float32, real value) of the largest one; for an
            output of numbers of labels ``NAME_label`` only. An underscore follows a name that an
            output has.
        columns: by input the column that it reads, or for a single input that column's name; by
            default columns have the names of the inputs, and a single column is the single input.
        threads: the most threads that rows are spread over. They come from one pool that all
            predictors of the process share, and none of them spins. None: one for each core (of
            ``OMP_NUM_THREADS``, if that is fewer); one where a provider is not the CPU's.
        providers, precision, resolver, strict, external_roots, budgets: as of `Interpreter`.
        hybrid: as of `Interpreter`; by default results do not depend on the size of batches.

    Raises:
        ModelError, VersionError, DelegateError: as of `Interpreter`.
        ValueError: `batch_size` or `threads` is below 1.

    A predictor can be pickled, and several threads may call one at a time. It keeps no state: rows
    start from the first values of all variables.

    Examples:
        >>> from tflite_ort.command.demo import digits_model
        >>> predictor = Predictor(digits_model("float32"))
        >>> predictor(np.zeros((5, 8, 8, 1), np.float32)).shape
        (5, 10)
    """

    def __init__(
        self,
        model: ModelSource,
        batch_size: int | None = None,
        *,
        preprocess: bool = False,
        labels: bool = True,
        columns: Mapping[str, str] | str | None = None,
        threads: int | None = None,
        providers: ProviderChoices | None = None,
        precision: str = FULL_PRECISION,
        resolver: OpResolver | None = None,
        hybrid: str = "float",
        strict: bool = False,
        external_roots: Sequence[str | os.PathLike[str]] = (),
        budgets: Budgets | None = None,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        given = {
            "providers": providers,
            "precision": precision,
            "resolver": resolver,
            "hybrid": hybrid,
            "strict": strict,
            "external_roots": external_roots,
            "budgets": budgets,
        }
        self.rows = RowModel(model, batch_size, threads, given)
        self._preparation, self._labels = Preparation(media=preprocess), labels
        self._columns = self._named(columns)

    @overload
    def __call__(self, batch: Mapping[str, Column]) -> dict[str, Array]: ...

    @overload
    def __call__(self, batch: Array) -> Array: ...

    def __call__(self, batch: Mapping[str, Column] | Array) -> dict[str, Array] | Array:
        """The outputs of all rows.

        Args:
            batch: columns of n rows by name, each an array [n, ...] or n arrays; of those that are
                no inputs the result has a copy. Or, of a model with one input and one output, the
                input's rows as an array.

        Raises:
            InputError: columns are missing or do not fit their inputs; it is a ValueError.
            BridgeError: as `Interpreter.invoke`.
        """
        if not isinstance(batch, Mapping):
            return self._single(_on_host(batch))
        batch = {name: _on_host(values) for name, values in batch.items()}
        names = columns_of(batch, self.rows.inputs, self._columns)
        rows = [self._preparation.rows(batch[names[each.name]], each) for each in self.rows.inputs]
        made = self.rows.run(rows)
        results = dict(zip((each.name for each in self.rows.outputs), made, strict=True))
        if self._labels:
            taken = set(results)
            for column in self.rows.outputs:
                for name, values in labelled(column, results[column.name]).items():
                    results[free_name(name, taken)] = values
        others = {name: batch[name] for name in batch if name not in names.values()}
        if taken := others.keys() & results:
            raise InputError(f"columns {sorted(taken)} have the names of outputs")
        return {**{name: column_of(values) for name, values in others.items()}, **results}

    def _single(self, values: Column) -> Array:
        if len(self.rows.inputs) != 1 or len(self.rows.outputs) != 1:
            raise InputError(
                f"the model has {len(self.rows.inputs)} inputs and {len(self.rows.outputs)} "
                "outputs: give a dictionary"
            )
        return self.rows.run([self._preparation.rows(values, self.rows.inputs[0])])[0]

    def _named(self, columns: Mapping[str, str] | str | None) -> dict[str, str]:
        inputs = [each.name for each in self.rows.inputs]
        if isinstance(columns, str):
            if len(inputs) != 1:
                raise InputError(f"the model has {len(inputs)} inputs: columns is a dictionary")
            return {inputs[0]: columns}
        return checked_columns(columns or {}, self.rows.inputs)

    def __repr__(self) -> str:
        return self._shown(shown.summary)

    def _repr_html_(self) -> str:
        """As a notebook shows it: inputs, outputs, and where the operators run."""
        return self._shown(shown.html)

    def _shown(self, write: Callable[..., str]) -> str:
        rows = self.rows
        sides = {"input": [each.details for each in rows.inputs], "output": rows.output_details}
        return write(type(self).__name__, self._arguments["model"], sides, rows.placements())

    def __reduce__(self) -> Any:
        return _remade, (self._arguments,)


def _remade(arguments: dict[str, Any]) -> Predictor:
    return Predictor(**arguments)


def _on_host(values: Column) -> Column:
    """Columns as numpy's arrays, where other libraries' arrays are given."""
    try:
        if isinstance(values, Sequence) and not isinstance(values, str | bytes):
            return [host_array(each) for each in values]
        found: Column = host_array(values)
    except ValueError as error:
        raise InputError(str(error)) from error
    return found


def labelled(column: OutputColumn, rows: Array) -> dict[str, Array]:
    """The columns of labels that an output has; none where the model has no labels for it."""
    if column.labelled:
        labels, scores = column.best(rows)
        return {f"{column.name}{LABEL}": labels, f"{column.name}{SCORE}": scores}
    if column.by_value and column.labels and column.row is not None:
        places = np.round((rows.astype(np.float64) - column.zero_point) * (column.scale or 1))
        known = np.array([*column.labels, ""], np.object_)
        inside = (places >= 0) & (places < len(column.labels))
        return {f"{column.name}{LABEL}": known[np.where(inside, places, -1).astype(np.intp)]}
    return {}
