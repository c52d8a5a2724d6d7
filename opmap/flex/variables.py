"""TensorFlow's variables: they are TFLite's own, see `schema/flex/variables.py`."""
