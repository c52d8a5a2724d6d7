"""TensorFlow's operators that move elements: TFLite's own take their place."""
