"""Rules that change the nodes of an ONNX graph."""
