"""tf.text's operators: none has a translation."""
