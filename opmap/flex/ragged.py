"""TensorFlow's operators on ragged tensors: none has a translation."""
