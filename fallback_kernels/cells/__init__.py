"""Cells of recurrent layers in numpy."""
