"""Random numbers: none is translated.

The random operators of ONNX leave the generator to the runtime, so that the numbers of a seed are
not TFLite's; and a stream that goes on from one invoke to the next has no place in a graph.
"""
