"""Kernels of TensorFlow's operators, one file for each family."""
