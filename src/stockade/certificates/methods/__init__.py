"""Ways to certify, one file for each kind of defense."""
