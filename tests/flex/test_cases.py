"""Every case in numpy, in ONNX Runtime and as an exported file, against TensorFlow's answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.flex.cases import Case, answer, cases_of, families, model_of
from tflite_ort import BridgeError, ExportError, Interpreter, export_onnx
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.complex_pairs import paired

Array = npt.NDArray[Any]

CASES = [(family, case) for family in families() for case in cases_of(family)]


def invoked(cases: Sequence[Case], providers: Sequence[str] | None) -> list[Array]:
    """The outputs without a resolver. By default ONNX Runtime runs what exports, numpy the rest;
    all of `cases` export, or none."""
    interpreter = Interpreter(model_content=model_of(cases), providers=providers, num_threads=1)
    interpreter.allocate_tensors()
    if providers is None:
        places = {row.runs_on for row in interpreter.delegation()}
        expected = {"ort"} if cases[0].exports else {"numpy"}
        others = {"constant", "ort"} if cases[0].variables else {"constant"}
        assert any(case.by_numpy for case in cases) or places <= expected | others
    feeds = [array for case in cases for array in case.feeds()]
    for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def exported(cases: Sequence[Case], folder: Path) -> list[Array]:
    """The outputs of the exported file in ONNX Runtime alone."""
    path = folder / "model.onnx"
    export_onnx(model_of(cases), path, stateful=not any(case.variables for case in cases))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    feeds = [_fed(array) for case in cases for array in case.feeds()]
    results = session.run(None, dict(zip(names, feeds, strict=True)))
    types = [type for case in cases for type in case.result_types()]
    return [_joined(each, NUMPY_DTYPE[type]) for each, type in zip(results, types, strict=True)]


def _fed(array: Array) -> Array:
    """What an exported file takes for an input: pairs for complex numbers, and texts of UTF-8."""
    if not array.dtype.hasobject:
        return paired(array)
    return np.array([bytes(text).decode() for text in array.reshape(-1)], object).reshape(
        array.shape
    )


def _is_utf8(array: Array) -> bool:
    """Whether an exported file takes an input."""
    if not array.dtype.hasobject:
        return True
    try:
        _fed(array)
    except UnicodeDecodeError:
        return False
    return True


def _joined(array: Array, dtype: np.dtype[Any]) -> Array:
    """An output of an exported file as the model's type: a complex number is two floats there."""
    return array.copy().view(dtype)[..., 0] if dtype.kind == "c" else array


def check(got: Sequence[Array], want: Sequence[Array], case: Case, place: str) -> None:
    """The same types and shapes, integers and texts equal, floats within the case's tolerance."""
    assert len(got) == len(want), place
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == theirs.shape, place
        if theirs.dtype.kind in "OS":
            found = [a.encode() if isinstance(a, str) else bytes(a) for a in mine.reshape(-1)]
            assert found == [bytes(b) for b in theirs.reshape(-1)], place
            continue
        assert mine.dtype == theirs.dtype, place
        if theirs.dtype.kind in "iub":
            np.testing.assert_array_equal(mine, theirs, err_msg=place)
            continue
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        mine, theirs = mine.astype(wide), theirs.astype(wide)
        finite = np.isfinite(theirs)
        np.testing.assert_array_equal(mine[~finite], theirs[~finite], err_msg=place)
        scale = np.abs(theirs[finite]).max(initial=0)
        error = np.abs(mine[finite] - theirs[finite]).max(initial=0)
        assert error <= case.rtol * scale, f"{place}: {error / scale:.3g} of the largest"


def check_all(
    got: Sequence[Array], wants: Sequence[list[Array]], cases: Sequence[Case], place: str
) -> None:
    """As `check`, of each case."""
    assert len(got) == sum(map(len, wants)), place
    at = 0
    for case, want in zip(cases, wants, strict=True):
        check(got[at : at + len(want)], want, case, f"{case} in {place}")
        at += len(want)


GROUPS: dict[str, list[Case]] = {}
for _family, _case in CASES:
    if not _case.refused:
        GROUPS.setdefault(f"{_family}-{_case.operator}", []).append(_case)
REFUSED = [(family, case) for family, case in CASES if case.refused]


@pytest.mark.parametrize("name", GROUPS)
def test_operator(name: str, tmp_path: Path) -> None:
    """The cases of an operator side by side in one model: a session for each would take long."""
    family, cases = name.partition("-")[0], GROUPS[name]
    wants = [answer(family, case) for case in cases]
    refused = [str(case) for case, want in zip(cases, wants, strict=True) if want is None]
    assert not refused, f"TensorFlow refuses {refused}"
    known = [want for want in wants if want is not None]
    check_all(invoked(cases, []), known, cases, "numpy")
    for exports in (True, False):
        pairs = [pair for pair in zip(cases, known, strict=True) if pair[0].exports is exports]
        if not pairs:
            continue
        some, expected = [case for case, _ in pairs], [want for _, want in pairs]
        check_all(invoked(some, None), expected, some, "ONNX Runtime")
        if exports:
            fed = [pair for pair in pairs if all(map(_is_utf8, pair[0].feeds()))]
            some, expected = [case for case, _ in fed], [want for _, want in fed]
            check_all(exported(some, tmp_path), expected, some, "an exported file")
            continue
        with pytest.raises(ExportError):
            export_onnx(model_of(some))


@pytest.mark.parametrize(("family", "case"), REFUSED, ids=[f"{f}-{c}" for f, c in REFUSED])
def test_refused(family: str, case: Case) -> None:
    """What TensorFlow refuses is refused."""
    assert answer(family, case) is None
    for providers in ([], None):
        with pytest.raises(BridgeError):
            invoked([case], providers)
