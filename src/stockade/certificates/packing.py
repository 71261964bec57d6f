"""Many small numbers as a short string, for files that people open."""

from __future__ import annotations

import base64
import zlib


def packed(raw: bytes) -> str:
    return base64.b85encode(zlib.compress(raw)).decode()


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))
