"""The command line: one file per command, each light to import so that `stockade --help` answers at once."""
