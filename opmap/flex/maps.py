"""TensorFlow's maps: ONNX has none, and numpy runs them."""
