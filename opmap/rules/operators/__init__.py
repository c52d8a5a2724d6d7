"""Rules that put TFLite operators in the place of others."""
