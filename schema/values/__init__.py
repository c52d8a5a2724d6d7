"""Operators and tensors as translators, kernels and shape rules see them."""
