"""TensorFlow's operators on texts: none has a translation, since only runtimes have such
operators, in domains of their own."""
