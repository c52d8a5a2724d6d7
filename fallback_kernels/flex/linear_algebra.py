"""TensorFlow's linear algebra. Floats of 32 bits and fewer are computed in 64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.arithmetic.einsum import Equation
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


def _wide(x: Array) -> Array:
    """Floats in 64 bits, integers as they are."""
    if x.dtype.kind in "iub":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _rounded(x: Array, like: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(like.dtype)


def _adjoint(x: Array) -> Array:
    return np.asarray(np.conj(np.swapaxes(x, -1, -2)))


@flex_kernel("MatMul")
def matmul(op: View, inputs: Inputs, state: State) -> Outputs:
    """The product of two matrices, each transposed first if asked."""
    node, factors = node_of(op), [_wide(each) for each in inputs]
    for place, name in enumerate(("transpose_a", "transpose_b")):
        if node[name]:
            factors[place] = np.swapaxes(factors[place], -1, -2)
    return (_product(factors[0], factors[1], inputs[0]),)


@flex_kernel("BatchMatMul", "BatchMatMulV2")
def batch_matmul(op: View, inputs: Inputs, state: State) -> Outputs:
    """The products of matrices, each with its adjoint first if asked."""
    node, factors = node_of(op), [_wide(each) for each in inputs]
    for place, name in enumerate(("adj_x", "adj_y")):
        if node[name]:
            factors[place] = _adjoint(factors[place])
    return (_product(factors[0], factors[1], inputs[0]),)


def _product(x: Array, y: Array, like: Array) -> Array:
    if min(x.ndim, y.ndim) < 2 or x.shape[-1] != y.shape[-2]:
        raise KernelError(f"products of matrices of {x.shape} and {y.shape}")
    with np.errstate(all="ignore"):
        return _rounded(x @ y, like)


@flex_kernel("Einsum")
def einsum(op: View, inputs: Inputs, state: State) -> Outputs:
    """Sums of products by the equation."""
    equation = Equation.of(node_of(op)["equation"], [each.shape for each in inputs])
    with np.errstate(all="ignore"):
        made = np.einsum(equation.text, *(_wide(each) for each in inputs), optimize=True)
    return (_rounded(made, inputs[0]),)


def _square(x: Array) -> Array:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise KernelError(f"matrices of {x.shape} are not square")
    return _wide(x)


def _solved(function: Callable[..., Any], *values: Array) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(*values)
    except np.linalg.LinAlgError as error:
        raise KernelError(f"a matrix has no result: {error}") from error


@flex_kernel("MatrixInverse", "BatchMatrixInverse")
def inverse(op: View, inputs: Inputs, state: State) -> Outputs:
    """The inverse of matrices, or of their adjoints."""
    matrices = _square(inputs[0])
    if node_of(op)["adjoint"]:
        matrices = _adjoint(matrices)
    return (_rounded(_solved(np.linalg.inv, matrices), inputs[0]),)


@flex_kernel("MatrixDeterminant", "BatchMatrixDeterminant")
def determinant(op: View, inputs: Inputs, state: State) -> Outputs:
    """The determinants."""
    return (_rounded(_solved(np.linalg.det, _square(inputs[0])), inputs[0]),)


@flex_kernel("LogMatrixDeterminant")
def log_determinant(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sign of the determinants, and the logarithm of their magnitude."""
    sign, log = _solved(np.linalg.slogdet, _square(inputs[0]))
    return _rounded(sign, inputs[0]), _rounded(log, inputs[0])


@flex_kernel("Cholesky", "BatchCholesky")
def cholesky(op: View, inputs: Inputs, state: State) -> Outputs:
    """The lower triangle whose product with its adjoint is the matrix; its own lower triangle is
    read alone."""
    return (_rounded(_solved(np.linalg.cholesky, _square(inputs[0])), inputs[0]),)


@flex_kernel("Qr")
def qr(op: View, inputs: Inputs, state: State) -> Outputs:
    """A matrix of orthogonal columns, and an upper triangle."""
    whole = node_of(op)["full_matrices"]
    q, r = _solved(
        lambda x: np.linalg.qr(x, mode="complete" if whole else "reduced"), _wide(inputs[0])
    )
    return _rounded(q, inputs[0]), _rounded(r, inputs[0])


@flex_kernel("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def triangular_solve(op: View, inputs: Inputs, state: State) -> Outputs:
    """What the triangle, or its adjoint, times it is the right-hand side."""
    node, matrix, right = node_of(op), _square(inputs[0]), _wide(inputs[1])
    if right.ndim < 2 or right.shape[-2] != matrix.shape[-1]:
        raise KernelError(f"matrices of {matrix.shape} with right-hand sides of {right.shape}")
    triangle = np.tril(matrix) if node["lower"] else np.triu(matrix)
    triangle = _adjoint(triangle) if node["adjoint"] else triangle
    return (_rounded(_solved(np.linalg.solve, triangle, right), inputs[1]),)


@flex_kernel("MatrixBandPart", "BatchMatrixBandPart")
def band_part(op: View, inputs: Inputs, state: State) -> Outputs:
    """What is in a band around the main diagonal; zeros elsewhere."""
    x, lower, upper = inputs[0], int(inputs[1].item()), int(inputs[2].item())
    rows, columns = x.shape[-2:]
    if lower > rows or upper > columns:
        raise KernelError(f"{lower} and {upper} diagonals of {rows} rows of {columns}")
    below = np.arange(rows)[:, None] - np.arange(columns)
    kept = ((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper))
    return (np.where(kept, x, np.zeros((), x.dtype)),)


refuse_rest("linear_algebra")
