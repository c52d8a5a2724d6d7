"""Outputs that mean something: what stands around a network, as ONNX nodes before and after it."""
