"""How much of anything is read: a few bytes of a stranger's must not fill the memory or take for ever.

Each limit is far above what texts, tables and models have. Whatever exceeds one is an error of one sentence that names
it. docs/data.md lists them.
"""

from __future__ import annotations

LONGEST_LINE = 1 << 25
"""Bytes of a line of a data file, after unpacking: 32 MiB."""
LONGEST_CELL = 1 << 24
"""Characters of a cell: sixteen million. No text is that long, but all that follows a quote that is never closed is."""
MOST_COLUMNS = 10_000
"""Columns of a table."""
MOST_LABELS = 10_000
"""Different labels in data, and classes of a model."""
MOST_LAYERS = 1_000
"""Layers of a network, as its config names them."""
LARGEST_CHUNK = 1 << 28
MOST_UNPACKED = 1_000
"""A column of parquet that takes more than 256 MiB unpacked may be at most a thousand times its packed size."""
LARGEST_READER = 1 << 32
"""Bytes of address space of the process that reads a parquet file: 4 GiB."""
LARGEST_JSON = 1 << 28
"""Bytes of a JSON or TOML file: 256 MiB."""
LARGEST_ARRAYS = 1 << 31
"""Bytes of a table of word vectors, after unpacking: 2 GiB."""
LARGEST_ARCHIVE = 1 << 33
"""Bytes of a saved model, after unpacking: 8 GiB."""
