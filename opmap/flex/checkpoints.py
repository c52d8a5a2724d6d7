"""TensorFlow's checkpoints: ONNX reads and writes no files."""
