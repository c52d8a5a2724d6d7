"""TensorFlow's operators that read bytes: ONNX has none of them."""
