"""What every part of the bridge may use and which knows none of them: files, late imports."""
