"""LiteRT's import names on this library: `install_as`, presets, custom operators."""
