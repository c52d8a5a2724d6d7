"""Arithmetic in numpy that several families of kernels share."""
