"""TensorFlow's random numbers: those without seeds are TFLite's own operators, and those of
stateless operators with constant seeds are constants."""
