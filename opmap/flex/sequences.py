"""TensorFlow's operators on texts: none has a translation."""
