"""Verification: a model run in several runtimes, and where they differ."""
