"""TensorFlow's operators that split texts: none has a translation."""
