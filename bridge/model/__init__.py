"""A model file as the bridge holds it: opening, what is known of it, signatures, resolvers."""
