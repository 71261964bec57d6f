"""Reports: one document model (`document`, `examples`) and its renderers for HTML, Markdown, JSON and the terminal."""
