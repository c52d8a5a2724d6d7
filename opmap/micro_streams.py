"""TFLite Micro's operators over streams: none has a translation.

They keep samples from one invoke to the next in a state that is not a tensor of the model.
"""
