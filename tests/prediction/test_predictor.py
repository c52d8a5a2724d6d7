"""Predictor: any number of rows, in their order, as single runs give them."""

from __future__ import annotations

import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from tests.models import model_path
from tests.one_op import T
from tests.ops.custom_op import custom_model
from tests.oracle import litert
from tests.prediction.models import (
    above_zero,
    colours,
    loudness,
    noise,
    of_any_length,
    sums,
    two_inputs,
)
from tflite_ort import (
    BatchWarning,
    BuiltinOpResolver,
    Predictor,
    Registration,
    WellKnownOpResolver,
)
from tflite_ort.command.demo import digits_model
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.pool import cores, shared_pool, spread
from tflite_ort.prediction.tensors import unique_names
from tflite_ort.prediction.units import Unit
from tflite_ort.prediction.work import Setup, Worker
from tflite_ort.schema import TensorType

Array = npt.NDArray[Any]


def rows(count: int, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype(np.float32)


@pytest.mark.parametrize("batch_size", [None, 1, 3, 8])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_what_single_runs_give(batch_size: int | None, threads: int) -> None:
    model = digits_model("float32")
    predictor = Predictor(model, batch_size, threads=threads)
    for count in (1, 2, 3, 8, 21):
        images = rows(count, 8, 8, 1, seed=count)
        singles = [litert(model.read_bytes(), [image[np.newaxis]])[0] for image in images]
        expected = np.concatenate(singles)
        np.testing.assert_allclose(predictor(images), expected, rtol=1e-4, atol=1e-5)


def test_quantised_rows_are_exact_at_every_batch_size() -> None:
    model = digits_model("int8")
    images = np.random.default_rng(1).integers(-128, 128, (13, 8, 8, 1)).astype(np.int8)
    expected = Predictor(model, 1, threads=1)(images)
    for batch_size in (2, 4, 5, 32):
        np.testing.assert_array_equal(Predictor(model, batch_size)(images), expected)


def test_no_rows() -> None:
    assert Predictor(digits_model("float32"))(np.zeros((0, 8, 8, 1), np.float32)).shape == (0, 10)


def test_a_sum_over_all_axes_is_one_of_each_row() -> None:
    given = rows(9, 4)
    made = Predictor(sums(whole=True), 4)(given)
    np.testing.assert_allclose(made, given.sum(1, keepdims=True) + 1, rtol=1e-5)


def test_a_batch_size_of_one_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Predictor(noise(), 1)


def test_inputs_that_do_not_lead_with_one_get_an_axis() -> None:
    a, b = rows(6, 2, 2), rows(6, 4, seed=1)
    made = Predictor(two_inputs(), 4)({"a": a, "b": b})
    np.testing.assert_allclose(made["y"], a.reshape(6, 4) + b, rtol=1e-6)


def test_rows_of_what_has_no_batch_run_one_at_a_time() -> None:
    with pytest.warns(BatchWarning, match="rows run one at a time: RANDOM_UNIFORM"):
        predictor = Predictor(noise())
    assert predictor(np.zeros((3, 4), np.float32)).shape == (3, 4)


def test_shapes_that_depend_on_the_row() -> None:
    predictor = Predictor(above_zero(), 4)
    assert predictor.rows.batch_size == 4
    given = rows(7, 4)
    made = predictor(given)
    assert made.dtype == object
    for row, places in zip(given, made, strict=True):
        np.testing.assert_array_equal(places[:, 0], np.flatnonzero(row > 0))


def test_rows_start_from_the_first_values_of_variables() -> None:
    model = model_path("pypi-pymicro-wakeword__hey_jarvis.tflite")
    predictor = Predictor(model.read_bytes(), 2)
    (column,) = predictor.rows.inputs
    row = np.random.default_rng(0).integers(-128, 128, (1, *column.row)).astype(np.int8)
    made = predictor(np.repeat(row, 11, axis=0))
    np.testing.assert_array_equal(made, np.repeat(predictor(row), 11, axis=0))


def test_pickled() -> None:
    predictor = Predictor(digits_model("float32"), 4, labels=False)
    images = rows(5, 8, 8, 1)
    again = pickle.loads(pickle.dumps(predictor))
    np.testing.assert_array_equal(again(images), predictor(images))


def test_columns_are_pickled_without_the_model() -> None:
    """Spark sends what a function has of a predictor to its workers."""
    (column,) = Predictor(colours()).rows.inputs
    content = pickle.dumps(column)
    again = pickle.loads(content)
    assert again.picture == column.picture is not None
    assert again.row == column.row and len(content) < 4000


def test_several_threads_may_call() -> None:
    predictor = Predictor(digits_model("float32"), 4)
    batches = [rows(9, 8, 8, 1, seed=seed) for seed in range(12)]
    expected = [predictor(each) for each in batches]
    with ThreadPoolExecutor(4) as pool:
        for made, want in zip(pool.map(predictor, batches), expected, strict=True):
            np.testing.assert_array_equal(made, want)


def test_all_predictors_share_one_pool() -> None:
    first, second = (Predictor(digits_model("float32"), 1, threads=2) for _ in range(2))
    images = rows(40, 8, 8, 1)
    first(images), second(images)
    named = [each for each in threading.enumerate() if each.name.startswith("tflite-ort")]
    assert 0 < len(named) <= cores()


def test_a_thread_of_the_pool_does_not_wait_for_itself() -> None:
    def inner(number: int) -> list[int]:
        return spread(lambda each: each * number, range(5), 2)

    made = list(shared_pool().map(inner, range(2 * cores())))
    assert made == [[each * number for each in range(5)] for number in range(2 * cores())]


# Columns -----------------------------------------------------------------------------------------


def test_other_columns_pass_through() -> None:
    names = np.array(["a", "b", "c"])
    made = Predictor(sums())({"x": np.ones((3, 4), np.float32), "name": names})
    assert list(made) == ["name", "y"]
    np.testing.assert_array_equal(made["name"], names)


def test_a_column_of_another_name() -> None:
    given = np.ones((2, 4), np.float32)
    for columns in ("features", {"x": "features"}):
        made = Predictor(sums(), columns=columns)({"features": given, "id": np.arange(2)})
        assert list(made) == ["id", "y"]
    assert list(Predictor(sums())({"features": given})) == ["y"]  # a single one needs no name


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"z": 1, "id": 2}, "no column for the inputs 'x'"),
        ({"x": np.ones((2, 5), np.float32)}, r"take.*\(n, 4\)|takes \(n, 4\)"),
        ({"x": np.ones((2, 4), np.complex64)}, "complex64"),
        ({"x": np.ones((2, 4), np.float32), "y": np.ones(2)}, "names of outputs"),
    ],
)
def test_columns_that_do_not_fit(batch: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Predictor(sums())(batch)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="no input "):
        Predictor(sums(), columns={"w": "x"})
    with pytest.raises(ValueError, match="batch_size must be 1 or more"):
        Predictor(sums(), 0)
    with pytest.raises(ValueError, match=r"inputs have \[2, 3\] rows"):
        Predictor(two_inputs())({"a": rows(2, 2, 2), "b": rows(3, 4)})
    with pytest.raises(InputError, match="2 inputs and 1 outputs"):
        Predictor(two_inputs())(rows(2, 2, 2))


# Media -------------------------------------------------------------------------------------------


def test_images_of_any_size_and_labels() -> None:
    predictor = Predictor(colours(), preprocess=True)
    red, green = np.zeros((5, 9, 3), np.uint8), np.zeros((30, 8, 3), np.uint8)
    red[..., 0], green[..., 1] = 255, 204
    gray = np.full((8, 8), 51, np.uint8)
    made = predictor({"image": [red, green, gray]})
    np.testing.assert_allclose(
        made["y"], [[1, -1, -1], [-1, 0.6, -1], [-0.6, -0.6, -0.6]], atol=1e-6
    )
    assert made["y_label"].tolist() == ["red", "green", "red"]
    np.testing.assert_allclose(made["y_score"], [1, 0.6, -0.6], atol=1e-6)


def test_labels_leave_an_output_of_their_name_as_it_is() -> None:
    blue = np.zeros((1, 8, 8, 3), np.uint8)
    blue[..., 2] = 255
    made = Predictor(colours(beside="y_label"), preprocess=True)({"image": blue})
    np.testing.assert_array_equal(made["y_label"], [[1, 1, 1]])
    assert made["y_label_"].tolist() == ["blue"]
    assert made["y_score"].tolist() == [1]


def test_the_position_in_a_repeated_name_makes_no_other_name_twice() -> None:
    names = [{"name": name} for name in ("a", "a", "a_0", "a_1")]
    assert unique_names(names) == ["a_0_", "a_1_", "a_0", "a_1"]


def test_sound_of_any_length_is_heard_to_its_end() -> None:
    with pytest.warns(BatchWarning, match="any size"):
        predictor = Predictor(of_any_length(sound=True), preprocess=True)
    made = predictor({"x": [np.ones(5, np.float32), np.ones(7, np.float32)]})
    assert list(map(float, made["sum"])) == [5, 7]


def test_predict_refuses_a_picture_without_an_axis_of_samples(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    Image.fromarray(np.ones((2, 4, 3), np.uint8)).save(picture)
    worker = Worker(Setup(of_any_length(sound=False), 1))
    block = worker([Unit(str(picture))])
    assert "no axis for a sample" in str(block.errors[0])


def test_of_an_image_without_an_axis_of_samples_no_line_is_left_out() -> None:
    with pytest.warns(BatchWarning, match="any size"):
        predictor = Predictor(of_any_length(sound=False), preprocess=True)
    with pytest.raises(InputError, match="no axis for a sample"):
        predictor({"x": [np.ones((2, 4, 3), np.uint8)]})


def test_images_of_one_size_as_one_array() -> None:
    images = np.random.default_rng(3).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)
    made = Predictor(colours(), preprocess=True)(images)
    np.testing.assert_allclose(made, (images.mean((1, 2)) - 127.5) / 127.5, atol=1e-5)


def test_without_preprocessing_values_are_the_models_own() -> None:
    values = rows(3, 8, 8, 3)
    made = Predictor(colours(), labels=False)({"image": values})
    assert list(made) == ["y"]
    np.testing.assert_allclose(made["y"], values.mean((1, 2)), atol=1e-5)


def test_sound_of_any_length_and_kind() -> None:
    predictor = Predictor(loudness(), preprocess=True)
    half = np.full(800, 0.5, np.float32)
    made = predictor([half, half[:400], (half * 32768).astype(np.int16), np.stack([half, half], 1)])
    np.testing.assert_allclose(made, [0.25, 0.125, 0.25, 0.25], rtol=1e-4)
    with pytest.raises(InputError, match="801 samples"):
        predictor([np.zeros(801, np.float32)])


@pytest.mark.parametrize("value", [np.zeros((8, 8, 3), np.float32), np.zeros((8, 8, 7), np.uint8)])
def test_what_is_no_image_is_refused(value: Array) -> None:
    with pytest.raises(InputError):
        Predictor(colours(), preprocess=True)([value])


def test_one_image_is_not_taken_for_rows_of_them() -> None:
    """A picture [h, w, 3] would be h gray pictures of three columns."""
    predictor, image = Predictor(colours(), preprocess=True), np.zeros((30, 20, 3), np.uint8)
    with pytest.raises(
        InputError, match=r"\(30, 20, 3\), as one image .* give image\[np.newaxis\]"
    ):
        predictor(image)
    assert len(predictor(image[np.newaxis])) == len(predictor([image])) == 1
    assert len(predictor(np.zeros((2, 30, 20), np.uint8))) == 2  # gray ones


def test_streams_of_custom_operators_begin_anew_in_each_row() -> None:
    given = [T((1, 4), TensorType.INT16)]
    model = custom_model("SignalDelay", given, given, {"delay_length": 2})
    with pytest.warns(BatchWarning, match="stream"):
        predictor = Predictor(model, 2, threads=1, resolver=WellKnownOpResolver())
    values = np.arange(1, 13, dtype=np.int16).reshape(3, 4)
    np.testing.assert_array_equal(predictor(values), [[0, 0, 1, 2], [0, 0, 5, 6], [0, 0, 9, 10]])


def test_states_of_registered_kernels_begin_anew_in_each_row() -> None:
    def added(op: Any, inputs: Any, state: Any) -> tuple[Array]:
        state += inputs[0]
        return (state.copy(),)

    resolver = BuiltinOpResolver()
    state = Registration(kernel=added, state=lambda op: np.zeros((1, 4), np.float32))
    resolver.add_custom("Running", state)
    model = custom_model("Running", [T((1, 4))], [T((1, 4))])
    with pytest.warns(BatchWarning, match="keeps a state of its own"):
        predictor = Predictor(model, 2, threads=1, resolver=resolver)
    np.testing.assert_array_equal(predictor(rows(3, 4)), rows(3, 4))
