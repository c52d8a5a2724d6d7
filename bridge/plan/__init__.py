"""From a specialised subgraph to the steps that an invoke runs."""
