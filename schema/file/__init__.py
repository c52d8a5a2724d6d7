"""The file: its tables, the verified reader, the writer, and every error of the library."""
