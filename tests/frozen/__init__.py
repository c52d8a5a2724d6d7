"""Programs with the library in an archive: `.ci/frozen` and the tests."""
