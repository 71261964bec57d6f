"""Word replacement rules held against many models (the transfer paper, section 4.2; Tables 5, 9 and 10)."""
