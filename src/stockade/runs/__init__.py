"""Runs: a folder with results in SQLite, a manifest and a summary."""
