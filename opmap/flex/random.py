"""TensorFlow's random numbers: without seeds they are TFLite's own operators, with constant seeds constants."""
