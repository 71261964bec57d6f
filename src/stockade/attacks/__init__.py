"""Published attacks: one per file, found by name through `registry`; `trial` runs one on an example."""
