"""ONNX graphs as objects: values, nodes, opsets, and how they are written."""
