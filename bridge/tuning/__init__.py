"""Which lowering each operator gets: by a model of what they cost, or by timing them."""
