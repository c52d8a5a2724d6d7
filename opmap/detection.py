"""Boxes picked among overlapping ones: none is translated.

NonMaxSuppression of ONNX drops a box whose overlap is above the threshold, TFLite one that is at
it, and TFLite selects boxes without an area again and again; ONNX has no soft suppression, and
says nothing of the order of equal scores.
"""
