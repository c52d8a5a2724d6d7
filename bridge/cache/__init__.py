"""A cache of compiled models: what loading made, for the next process that loads the same."""
