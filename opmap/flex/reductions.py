"""TensorFlow's operators that reduce and scan: TFLite's own take their place."""
