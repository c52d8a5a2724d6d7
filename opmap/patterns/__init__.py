"""Groups of TFLite operators that become one ONNX node: a table of patterns."""
