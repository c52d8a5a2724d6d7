"""A fuzzer of damaged and odd models: docs/fuzzing.md tells how to run it."""
