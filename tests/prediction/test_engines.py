"""The examples with Spark and Dask, and what the page on serving shows."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.models import model_path
from tflite_ort import Predictor

ROOT = Path(__file__).parents[2]
MODEL = "mlperf-tiny__kws_ref_model.tflite"
ROWS = 2000


@pytest.mark.parametrize(
    "engine", [pytest.param(each, marks=getattr(pytest.mark, each)) for each in ("spark", "dask")]
)
def test_example(tmp_path: Path, engine: str) -> None:
    given = np.random.default_rng(0).integers(-128, 128, (ROWS, 490)).astype(np.int8)
    (tmp_path / "rows").mkdir()
    for first in range(0, ROWS, 500):
        flat = list(given[first : first + 500].astype(np.int32))
        table = pa.table({"id": np.arange(first, first + 500), "pixels": flat})
        pq.write_table(table, tmp_path / "rows" / f"{first:04}.parquet")
    example = ROOT / "examples" / f"predict_{engine}.py"
    results = tmp_path / "results"
    where = (str(model_path(MODEL)), str(tmp_path / "rows"), str(results))
    command = [sys.executable, str(example), *where, "--column", "pixels"]
    subprocess.run(command, check=True, timeout=300)
    made = pq.read_table(results).sort_by("id")
    assert made["id"].to_pylist() == list(range(ROWS))
    expected = Predictor(model_path(MODEL))(given.reshape(ROWS, 49, 10, 1))
    np.testing.assert_array_equal(np.stack(made["Identity"].to_numpy()), expected)


@pytest.mark.serving
def test_the_service_is_one_of_kserve() -> None:
    kserve: Any = importlib.import_module("kserve")
    client: Any = importlib.import_module("kubernetes.client")
    yaml: Any = importlib.import_module("yaml")
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    (page,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    given = yaml.safe_load(page)
    assert given["kind"] == "InferenceService"
    assert given["apiVersion"] == kserve.constants.KSERVE_V1BETA1
    service = _typed(kserve.V1beta1InferenceService, given, kserve, client)
    model = service.spec.predictor.model
    assert model.model_format.name == "triton" and model.storage_uri.startswith("s3://")
    assert _plain(service) == given


def _typed(kind: Any, given: Any, *modules: Any) -> Any:
    """`given` as an object of a type of KServe or Kubernetes; a field that it lacks is an error."""
    fields = {theirs: ours for ours, theirs in kind.attribute_map.items()}
    assert given.keys() <= fields.keys(), given.keys() - fields.keys()
    values = {}
    for name, value in given.items():
        told = kind.openapi_types[fields[name]]
        inner = next((getattr(each, told) for each in modules if hasattr(each, told)), None)
        values[fields[name]] = value if inner is None else _typed(inner, value, *modules)
    return kind(**values)


def _plain(value: Any) -> Any:
    """A typed object as the text says it."""
    if not hasattr(value, "attribute_map"):
        return value
    fields = {theirs: getattr(value, ours) for ours, theirs in value.attribute_map.items()}
    return {name: _plain(each) for name, each in fields.items() if each not in (None, "")}
