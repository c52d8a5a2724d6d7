"""TensorFlow's operators that read pictures: ONNX Runtime has none of them."""
