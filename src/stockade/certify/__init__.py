"""Certificates: what is proved about a model's answer to a text, whatever an attacker with a budget does to it.

    import stockade as st
    run = st.certify(st.defend("models/m", "ranmask", rate=0.7), "reviews.csv", limit=100)

The mathematics is in `bounds`, `exact`, `confidence`, `sequential` and `medians`, which know no model; certificates and
the evidence they rest on (`certificate`, `evidence`) can be checked without one. Only `running` and what it calls ask a
model.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """`st.certify(…)` is public and so is the package of that name: calling the package is calling the function."""

    def __call__(self, *given: Any, **options: Any) -> Any:
        from stockade.certify.running import certify

        return certify(*given, **options)


sys.modules[__name__].__class__ = _CallableModule
