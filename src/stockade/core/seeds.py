"""Seeds that depend on names, never on call order.

Every random choice in Stockade comes from a generator made here from the run's seed and the names of what it is for,
so that results do not change with concurrency, batching, resume or the number of workers.
"""

from __future__ import annotations

import hashlib
from random import Random


def derive_seed(*parts: str | int) -> int:
    """A 64-bit seed from the parts; the same parts give the same seed on every machine."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        encoded = str(part).encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return int.from_bytes(digest.digest(), "little")


def derive_rng(*parts: str | int) -> Random:
    """A `Random` seeded by the parts; see `derive_seed`."""
    return Random(derive_seed(*parts))
