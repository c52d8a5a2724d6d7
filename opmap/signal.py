"""Fourier transforms and the parts of complex numbers: none is translated.

A complex tensor has no form in ONNX: no operator takes one, and no runtime has them as inputs or
outputs of a graph.
"""
