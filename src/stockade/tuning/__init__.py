"""Search for the options of a defense: which ones keep a model right under attack without costing it clean texts."""
