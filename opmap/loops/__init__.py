"""WHILE as ONNX nodes: unrolled, as Scan or Loop, or as the recurrent layer that it computes."""
