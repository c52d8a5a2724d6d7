"""Runs a model over a table with Dask, by `map_partitions`.

python examples/predict_dask.py model.tflite rows.parquet results --column pixels

The column holds flat lists of numbers, one for each row. Needs dask[dataframe].
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import dask.dataframe
import numpy as np

from tflite_ort import Predictor


def predicted(frame: Any, predictor: Predictor, column: str) -> Any:
    """A partition with the output in the place of the column."""
    (given,), (made,) = predictor.rows.inputs, predictor.rows.outputs
    rows = np.array(frame[column].to_list(), given.details["dtype"])
    scores = predictor({column: rows.reshape(len(rows), *given.row)})[made.name]
    others = frame.drop(columns=column)
    return others.assign(
        **{made.name: list(scores.reshape(len(scores), math.prod(made.row or ())))}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("rows")
    parser.add_argument("results")
    parser.add_argument("--column", required=True)
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, threads=1, columns=arguments.column)
    dask.config.set({"dataframe.convert-string": False})  # lists stay lists
    table = dask.dataframe.read_parquet(arguments.rows)
    meta = predicted(table.head(0), predictor, arguments.column)
    made = table.map_partitions(predicted, predictor, arguments.column, meta=meta)
    made.to_parquet(arguments.results, schema=None)


if __name__ == "__main__":
    main()
