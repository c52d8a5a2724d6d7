"""Runs a model over a table with Spark, by `mapInPandas`.

python examples/predict_spark.py model.tflite rows.parquet results.parquet --column pixels

The column holds flat lists of numbers, one for each row. Each of Spark's Python workers opens the
model once for a partition. Needs pyspark, and Java.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from tflite_ort import Predictor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("rows")
    parser.add_argument("results")
    parser.add_argument("--column", required=True)
    arguments = parser.parse_args()
    predictor = Predictor(arguments.model, threads=1, columns=arguments.column)
    (given,), (made,) = predictor.rows.inputs, predictor.rows.outputs

    def predict(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:  # the predictor arrives as its arguments, and opens the model here
            rows = np.stack(frame[arguments.column].to_list()).astype(given.details["dtype"])
            scores = predictor({arguments.column: rows.reshape(len(rows), *given.row)})[made.name]
            frame[made.name] = list(
                scores.reshape(len(scores), math.prod(made.row or ())).astype(np.float64)
            )
            yield frame.drop(columns=arguments.column)

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else any python3 is taken
    spark = SparkSession.builder.getOrCreate()
    table = spark.read.parquet(arguments.rows)
    kept = [f"`{each.name}` {each.dataType.simpleString()}" for each in table.schema]
    kept = [each for each in kept if not each.startswith(f"`{arguments.column}` ")]
    schema = ", ".join([*kept, f"`{made.name}` array<double>"])
    table.mapInPandas(predict, schema).write.parquet(arguments.results)
    spark.stop()


if __name__ == "__main__":
    main()
