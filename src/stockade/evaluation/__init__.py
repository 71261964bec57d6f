"""Evaluation that cannot flatter: models in defenses under attacks, on the same texts, the worst case by text."""
