"""Groups of ONNX nodes that several families of operators share."""
