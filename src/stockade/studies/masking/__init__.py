"""The study of RanMASK: what the mask rate does to accuracy, to certificates and to robust accuracy."""
