"""Published defenses: each is one file with its training half, found by name in `registry`."""
