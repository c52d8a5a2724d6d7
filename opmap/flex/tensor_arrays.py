"""TensorFlow 1's arrays of tensors: they are lists, see `schema/flex/tensor_arrays.py`."""
