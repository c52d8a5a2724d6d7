"""Inputs of other sizes than the file's: exported files, the interpreter and LiteRT agree."""
