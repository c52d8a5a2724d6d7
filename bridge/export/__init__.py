"""From a model to ONNX files."""
