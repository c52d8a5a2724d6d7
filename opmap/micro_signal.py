"""TFLite Micro's signal operators: none has a translation.

They use integer arithmetic that wraps at 16, 32 and 64 bits. ONNX Runtime has only a part of it: no
sums of uint64, no shifts of signed numbers, no square roots of integers. Those over streams keep
samples from one invoke to the next in a state that is not a tensor of the model.
"""
