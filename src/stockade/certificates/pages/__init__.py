"""Runs of certificates as pages: HTML that needs nothing else, Markdown, JSON, and what a notebook shows."""
