"""One published attack per file; `registry` finds them, `trial` runs one on one example."""
