"""What LiteRT's own interpreter tests ask for, case by case, of LiteRT and of ours.

Each test runs on both, so that what it asks for is what LiteRT does. Left out: counters of
creations, and names of C functions and shared libraries (`test_names_of_c_functions`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import pytest

import tflite_ort
from tests.litert_models import (
    permute_float,
    permute_uint8,
    running_sum,
    sparse_constant,
    sum_of_any_length,
    two_signatures,
    variable_signatures,
)
from tests.models import model_path

X = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32)


@pytest.fixture(params=[litert, tflite_ort], ids=["litert", "ours"])
def lib(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def permute(lib: Any) -> Any:
    interpreter = lib.Interpreter(model_content=permute_float())
    interpreter.allocate_tensors()
    return interpreter


def check_details(detail: Any, name: str, dtype: Any, shape: list[int], scale: float = 0.0) -> None:
    assert detail["name"] == name
    assert detail["dtype"] == dtype
    assert detail["shape"].tolist() == shape
    assert detail["quantization"] == (scale, 0)
    parameters = detail["quantization_parameters"]
    assert parameters["scales"].tolist() == ([scale] if scale else [])
    assert parameters["zero_points"].tolist() == ([0] if scale else [])
    assert parameters["quantized_dimension"] == 0


def run(interpreter: Any, x: Any) -> Any:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


# Creating ---------------------------------------------------------------------------------------


def test_a_path_object(lib: Any, tmp_path: Path) -> None:
    path = tmp_path / "permute.tflite"
    path.write_bytes(permute_float())
    lib.Interpreter(model_path=path).allocate_tensors()
    lib.Interpreter(str(path)).allocate_tensors()
    lib.Interpreter(bytes(path)).allocate_tensors()


@pytest.mark.parametrize(
    ("threads", "message"), [(-1, "num_threads should >= 1"), (4.2, "num_threads should be int")]
)
def test_wrong_numbers_of_threads(lib: Any, threads: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lib.Interpreter(model_content=permute_float(), num_threads=threads)


def test_an_unknown_resolver_type(lib: Any) -> None:
    with pytest.raises(ValueError, match="Unrecognized passed in op resolver type: test"):
        lib.Interpreter(model_content=permute_float(), experimental_op_resolver_type="test")


@pytest.mark.parametrize(
    "kind", ["AUTO", "BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"]
)
def test_every_resolver_type_gives_the_floats(lib: Any, kind: str) -> None:
    interpreter = lib.Interpreter(
        model_content=permute_float(), experimental_op_resolver_type=lib.OpResolverType[kind]
    )
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    check_details(given, "input", np.float32, [1, 4])
    check_details(made, "output", np.float32, [1, 4])
    np.testing.assert_array_equal(run(interpreter, X), X[:, ::-1])


def test_two_threads(lib: Any) -> None:
    interpreter = lib.Interpreter(model_content=permute_float(), num_threads=2)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, X), X[:, ::-1])


def test_uint8_resized_to_its_own_shape(lib: Any) -> None:
    interpreter = lib.Interpreter(model_content=permute_uint8())
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    check_details(given, "input", np.uint8, [1, 4], 1.0)
    check_details(made, "output", np.uint8, [1, 4], 1.0)
    x = X.astype(np.uint8)
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, x), x[:, ::-1])


@pytest.mark.parametrize("content", [b"short", b"wrong_identifier"])
def test_content_that_is_no_model(lib: Any, content: bytes) -> None:
    with pytest.raises(ValueError, match="The model is not a valid Flatbuffer buffer"):
        lib.Interpreter(model_content=content)


def test_a_file_that_is_not_there(lib: Any) -> None:
    with pytest.raises(ValueError, match="Could not open 'totally_invalid_file_name'"):
        lib.Interpreter(model_path="totally_invalid_file_name")


def test_neither_path_nor_content_and_both(lib: Any) -> None:
    with pytest.raises(ValueError, match="`model_path` or `model_content` must be specified"):
        lib.Interpreter(model_path=None, model_content=None)
    with pytest.raises(ValueError, match="both provide `model_path` and `model_content`"):
        lib.Interpreter("model.tflite", permute_float())


# Custom operators -------------------------------------------------------------------------------


def test_operators_are_registered_by_a_function(lib: Any) -> None:
    calls: list[Any] = []
    interpreter = lib.InterpreterWithCustomOps(
        model_content=permute_float(), custom_op_registerers=[calls.append]
    )
    assert interpreter._safe_to_run()
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["CompletelyBogusRegistererName"])
def test_names_of_c_functions(lib: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"Looking up symbol '{name}' failed"):
        lib.InterpreterWithCustomOps(model_content=permute_float(), custom_op_registerers=[name])


def test_no_custom_operators(lib: Any) -> None:
    assert lib.InterpreterWithCustomOps(model_content=permute_float())._safe_to_run()


# Tensors ----------------------------------------------------------------------------------------


def test_strings(lib: Any) -> None:
    interpreter = lib.Interpreter(str(model_path("litert__gather_string.tflite")))
    interpreter.allocate_tensors()
    texts, indices = interpreter.get_input_details()
    check_details(texts, "input", np.bytes_, [10])
    check_details(indices, "indices", np.int64, [3])
    check_details(interpreter.get_output_details()[0], "output", np.bytes_, [3])
    interpreter.set_tensor(indices["index"], np.array([1, 2, 3], np.int64))
    got = run(interpreter, np.array(list("abcdefghij")))
    np.testing.assert_array_equal(got, np.array([b"b", b"c", b"d"], object))


def test_a_string_without_dimensions_keeps_its_zeros(lib: Any) -> None:
    interpreter = lib.Interpreter(str(model_path("litert__string_scalar.tflite")))
    interpreter.allocate_tensors()
    index, text = interpreter.get_input_details()[0]["index"], b"abcd" + bytes(16)
    interpreter.set_tensor(index, np.array(text))
    assert interpreter.get_tensor(index).item(0) == text


def test_scales_per_channel_and_no_sparsity(lib: Any) -> None:
    interpreter = lib.Interpreter(str(model_path("litert__pc_conv.tflite")))
    interpreter.allocate_tensors()
    weights = interpreter.get_tensor_details()[1]
    assert len(weights["quantization_parameters"]["scales"]) == 128
    assert weights["sparsity_parameters"] == {}


def test_a_sparse_constant_is_given_as_it_is_stored(lib: Any) -> None:
    interpreter = lib.Interpreter(model_content=sparse_constant())
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(0).tolist() == [1, 0, 0, 4, 2, 3, 0, 0, 5, 0, 0, 6]
    sparsity = interpreter.get_tensor_details()[0]["sparsity_parameters"]
    assert sparsity["traversal_order"].tolist() == [0, 1, 2, 3]
    assert sparsity["block_map"].tolist() == [0, 1]
    dense, compressed, *blocks = sparsity["dim_metadata"]
    assert dense == blocks[0] == blocks[1] == {"format": 0, "dense_size": 2}
    assert compressed["format"] == 1
    assert compressed["array_segments"].tolist() == [0, 2, 3]
    assert compressed["array_indices"].tolist() == [0, 1, 1]


def test_invoke_before_allocate(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        lib.Interpreter(model_content=permute_float()).invoke()


def test_indices_out_of_range(permute: Any) -> None:
    with pytest.raises(ValueError, match="Invalid tensor index 4 exceeds max tensor index 3"):
        permute._get_tensor_details(4, 0)
    with pytest.raises(ValueError, match="Invalid node index"):
        permute._get_op_details(4)


def test_an_input_without_elements(lib: Any) -> None:
    interpreter = lib.Interpreter(model_content=sum_of_any_length())
    assert interpreter.get_signature_runner()(x=np.zeros(0, np.float32)) == {"total": 0.0}


def test_variables_are_tensors_to_resize_and_to_set(lib: Any) -> None:
    interpreter = lib.Interpreter(model_content=running_sum())
    with pytest.raises(RuntimeError):
        interpreter.reset_all_variables()
    state, x = 4, np.float32([[1, 2], [3, 4]])
    interpreter.resize_tensor_input(0, x.shape)
    interpreter.resize_tensor_input(state, x.shape)
    interpreter.allocate_tensors()
    for expected in (x, 1.5 * x):
        np.testing.assert_array_equal(run(interpreter, x), expected)
    np.testing.assert_array_equal(interpreter.get_tensor(state), 1.5 * x)
    interpreter.set_tensor(state, 8 * x)
    np.testing.assert_array_equal(run(interpreter, x), 5 * x)
    interpreter.reset_all_variables()
    np.testing.assert_array_equal(run(interpreter, x), x)


# Arrays over the interpreter's memory -----------------------------------------------------------


def test_tensor_gives_the_memory_itself(permute: Any) -> None:
    array = permute.tensor(0)
    np.copyto(array(), X)
    np.testing.assert_array_equal(array(), X)
    np.testing.assert_array_equal(permute.get_tensor(0), X)


def test_get_tensor_gives_a_copy(permute: Any) -> None:
    permute.set_tensor(0, X)
    copy = permute.get_tensor(0)
    permute.set_tensor(0, X + 1)
    np.testing.assert_array_equal(copy, X)
    np.testing.assert_array_equal(permute.get_tensor(0), X + 1)


def test_every_array_held_makes_it_unsafe(permute: Any) -> None:
    assert permute._safe_to_run()
    function = permute.tensor(0)
    assert permute._safe_to_run()
    first = function()
    assert not permute._safe_to_run()
    second = permute.tensor(0)()[:, 1:]
    del first
    assert not permute._safe_to_run()
    del second
    assert permute._safe_to_run()


def test_nothing_moves_while_an_array_is_held(permute: Any) -> None:
    held = permute.tensor(0)()
    for call in (
        permute.allocate_tensors,
        permute.invoke,
        lambda: permute.resize_tensor_input(0, (1, 4)),
    ):
        with pytest.raises(RuntimeError, match="There is at least 1 reference"):
            call()
    permute.set_tensor(0, X)
    np.testing.assert_array_equal(held, X)
    del held
    permute.allocate_tensors()
    permute.invoke()


# Operators --------------------------------------------------------------------------------------


def test_operators_by_name_with_their_tensors(permute: Any) -> None:
    first = permute._get_ops_details()[0]
    assert (first["index"], first["op_name"]) == (0, "FULLY_CONNECTED")
    assert first["inputs"].tolist() == [0, 1, -1]
    assert first["outputs"].tolist() == [2]
    assert first["operand_types"] == [np.float32, np.float32]
    assert first["result_types"] == [np.float32]


# Signatures -------------------------------------------------------------------------------------


def test_subgraphs_and_their_tensors(lib: Any, permute: Any) -> None:
    assert permute.num_subgraphs() == 1
    assert [d["name"] for d in permute.get_tensor_details()][:1] == ["input"]
    for index in (1, -1):
        with pytest.raises(ValueError, match="subgraph_index is out of range"):
            permute.get_tensor_details(subgraph_index=index)
    two = lib.Interpreter(model_content=two_signatures())
    assert two.num_subgraphs() == 2
    for index, number in enumerate((2.0, 3.0)):
        details = two.get_tensor_details(subgraph_index=index)
        assert [detail["name"] for detail in details] == ["x", "k", "y"]
        assert two.get_tensor(1, index) == number
    with pytest.raises(ValueError, match="subgraph_index is out of range"):
        two.get_tensor_details(subgraph_index=3)


def test_signatures_run_their_own_subgraphs(lib: Any) -> None:
    interpreter = lib.Interpreter(model_content=two_signatures())
    names = {"inputs": ["x"], "outputs": ["y"]}
    assert interpreter.get_signature_list() == {"add": names, "multiply": names}
    add, multiply = map(interpreter.get_signature_runner, ("add", "multiply"))
    for x in (np.float32([1, 2]), np.float32([4]), np.float32([])):
        np.testing.assert_array_equal(add(x=x)["y"], x + 2)
        np.testing.assert_array_equal(multiply(x=x)["y"], x * 3)
        assert multiply.get_input_details()["x"]["shape"].tolist() == list(x.shape)
    assert add.get_output_details()["y"]["index"] == 2


def test_signatures_share_variables(lib: Any) -> None:
    interpreter = lib.Interpreter(model_content=variable_signatures())
    x = np.float32([1, 2])
    write, read = map(interpreter.get_signature_runner, ("write", "read"))
    for factor in (1, 5):
        np.testing.assert_array_equal(write(x=x * factor)["y"], -x * factor)
        np.testing.assert_array_equal(read(x=x)["y"], x * factor + x)
        interpreter.reset_all_variables()
        np.testing.assert_array_equal(read(x=x)["y"], x * factor + x)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "expected 1 vs provided 0"),
        ({"y": np.float32([1])}, r"Invalid Input name \(y\)"),
        ({"x": np.float64([1])}, "Got value of type FLOAT64 but expected type FLOAT32"),
    ],
)
def test_calls_that_do_not_fit_a_signature(lib: Any, inputs: Any, message: str) -> None:
    add = lib.Interpreter(model_content=two_signatures()).get_signature_runner("add")
    with pytest.raises(ValueError, match=message):
        add(**inputs)


@pytest.mark.parametrize(("key", "message"), [(None, "has 2 Signatures"), ("no", 'provided: "no"')])
def test_signature_keys_that_do_not_fit(lib: Any, key: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lib.Interpreter(model_content=two_signatures()).get_signature_runner(key)


# Delegates (LiteRT loads shared libraries, ours execution providers) ------------------------------


def test_several_interpreters_share_a_delegate() -> None:
    delegate = tflite_ort.load_delegate("CPUExecutionProvider")
    for _ in range(2):
        interpreter = tflite_ort.Interpreter(
            model_content=permute_float(), experimental_delegates=[delegate]
        )
        interpreter.allocate_tensors()
        assert interpreter._delegates[0] == delegate
        assert {row.delegate for row in interpreter.delegation()} == {"CPUExecutionProvider"}


@pytest.mark.parametrize("error", [ValueError, OSError, RuntimeError])
def test_a_delegate_that_is_not_there(error: type[Exception]) -> None:
    with pytest.raises(error, match=r"Failed to load delegate from libedgetpu\.so\.1"):
        tflite_ort.load_delegate("libedgetpu.so.1")
