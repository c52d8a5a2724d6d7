"""Other ways to translate an operator than its translator."""
