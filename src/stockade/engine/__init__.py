"""Attacks are coroutines; the engine owns the batch."""
