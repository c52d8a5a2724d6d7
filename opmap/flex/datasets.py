"""TensorFlow's optional values have no translation: ONNX Runtime has no such tensors."""
