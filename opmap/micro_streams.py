"""TFLite Micro's operators over streams: none is translated.

They keep samples from one invoke to the next in a state that is no tensor of the model.
"""
