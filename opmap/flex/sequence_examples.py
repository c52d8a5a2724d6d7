"""TensorFlow's operators that read sequence examples: ONNX has none of them."""
