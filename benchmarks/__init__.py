"""What is measured; README.md lists it."""
