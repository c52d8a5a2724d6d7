"""LSH_PROJECTION, and the fingerprint it is made of, against LiteRT."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, T, check, ours
from tflite_ort import ModelError
from tflite_ort.fallback_kernels import kernel
from tflite_ort.schema import LSHProjectionOptions, LSHProjectionType, Op, TensorType

SPARSE, DENSE = LSHProjectionType.SPARSE, LSHProjectionType.DENSE


def projection(
    items: npt.NDArray[np.generic],
    shape: tuple[int, int] = (3, 2),
    type: LSHProjectionType = DENSE,
    *,
    weighted: bool = False,
    seed: int = 0,
) -> Case:
    rng = np.random.default_rng(seed)
    hashes = T.constant(rng.normal(size=shape).astype(np.float32))
    weights = [T.constant(rng.normal(size=len(items)).astype(np.float32))] if weighted else []
    input = T.constant(items)
    count = shape[0] if type == SPARSE else shape[0] * shape[1]
    return Case(
        f"{items.dtype}-{items.shape}-{shape}-{type.name}",
        Op.LSH_PROJECTION,
        [hashes, T(input.shape, input.type), *weights],
        [T((count,), TensorType.INT32)],
        LSHProjectionOptions(type=type),
        runs_on="numpy",
        feeds=[items],
    )


ITEMS = np.array([12345, 54321, 67890, 9876, -12345678], np.int32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("type", [SPARSE, DENSE])
def test_projection(type: LSHProjectionType, weighted: bool) -> None:
    check(projection(ITEMS, type=type, weighted=weighted))


@pytest.mark.parametrize("shape", [(4, 1), (2, 8), (3, 31), (2, 32)])
def test_number_of_bits(shape: tuple[int, int]) -> None:
    check(projection(ITEMS, shape, SPARSE))


@pytest.mark.parametrize("size", [1, 3, 4, 11, 12, 13, 28, 29, 60, 61, 124, 125, 300])
def test_bytes_of_an_item(size: int) -> None:
    """Each bit is the top one of a fingerprint of the seed's 4 bytes and these."""
    items = np.random.default_rng(size).integers(0, 256, (1, size), np.uint8)
    check(projection(items, (20, 10)))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_items_are_hashed_as_bytes(dtype: type) -> None:
    check(projection(np.arange(12).reshape(3, 4).astype(dtype), (3, 8)))


def test_version() -> None:
    assert kernel.versions(Op.LSH_PROJECTION) == [1]


def test_too_many_bits_are_refused() -> None:
    with pytest.raises(ModelError, match=r"hash has shape \(1, 33\)"):
        ours(projection(ITEMS, (1, 33)).model(), [ITEMS])


def test_weights_of_other_items_are_refused() -> None:
    case = projection(ITEMS, weighted=True)
    with pytest.raises(ModelError, match=r"weight has shape \(5,\), expected \(3,\)"):
        ours(case.model(), [ITEMS[:3]])


@given(st.data())
def test_drawn_projections(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**31))
    sizes = (data.draw(st.integers(1, 5)), data.draw(st.integers(1, 200)))
    items = np.random.default_rng(seed).integers(0, 256, sizes, np.uint8)
    shape = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 32)))
    type, weighted = data.draw(st.sampled_from([SPARSE, DENSE])), data.draw(st.booleans())
    check(projection(items, shape, type, weighted=weighted, seed=seed))
