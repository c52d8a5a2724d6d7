"""TensorFlow's operators on text: none is translated.

ONNX has no operators on the characters of a text but in domains of its own runtimes.
"""
