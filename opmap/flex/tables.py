"""TensorFlow's hash tables: they are TFLite's own, see `schema/flex/tables.py`."""
