"""TensorFlow's operators in TFLite models, against recorded answers of TensorFlow."""
