"""The order in which seeded samples of rows grow: the same on every computer, and each sample contains all smaller."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b


def seeded_places(seed: int) -> Callable[[str], bytes]:
    """The place of a row by its id: a sample takes the rows with the lowest."""
    seeded = blake2b(f"sample {seed} ".encode(), digest_size=8)

    def place(row_id: str) -> bytes:
        hasher = seeded.copy()
        hasher.update(row_id.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    return place
