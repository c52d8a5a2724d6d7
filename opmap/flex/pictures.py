"""TensorFlow's operators that read and write pictures: ONNX Runtime has none of them."""
