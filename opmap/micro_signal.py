"""TFLite Micro's signal operators: none is translated.

They are integer arithmetic that wraps at 16, 32 and 64 bits, of which ONNX Runtime has the half:
no sums of uint64, no shifts of signed numbers, no square roots of integers.
"""
