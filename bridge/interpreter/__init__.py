"""The interpreter: from an opened model to arrays out."""
