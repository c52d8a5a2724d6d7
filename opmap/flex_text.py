"""TensorFlow's operators on text: none has a translation.

Only runtimes have operators on the characters of a text, in domains of their own.
"""
