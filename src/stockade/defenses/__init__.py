"""Published defenses: each is one file, found by name in `registry`."""
