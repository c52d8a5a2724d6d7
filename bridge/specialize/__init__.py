"""A subgraph for given input shapes: shapes, called subgraphs, variables."""
