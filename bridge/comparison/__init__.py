"""What two runs of a model are compared on, and by: drawn inputs, differences, tolerances."""
