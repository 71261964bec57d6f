"""Values and seams that everything else is made of; imports nothing of Stockade."""
