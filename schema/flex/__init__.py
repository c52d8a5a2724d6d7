"""TensorFlow's operators put into TFLite's own, one file for each family that has any."""
