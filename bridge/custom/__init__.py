"""Operators that a user registers."""
