"""A victim that counts words, and texts of ten words whose masked copies a person can count."""

from __future__ import annotations

from stockade.core.protocols import Classifier
from stockade.defenses.chain import wrap
from stockade.defenses.defended import Defended
from stockade.defenses.registry import make_defense
from tests.toys import WeightVictim

STRONG = "good fine great nice lovely superb grand sweet warm bright"
"""Any of its words makes a text positive: every copy votes alike."""
WEAK = "good and so it went on until the very end"
"""One word decides; a copy without it is negative."""
ROWS = [
    (STRONG, "positive"),
    (f"{STRONG} ", "positive"),
    (STRONG.replace("good", "swell"), "positive"),
    (WEAK, "positive"),
]


def victim() -> WeightVictim:
    return WeightVictim(dict.fromkeys([*STRONG.split(), "swell"], 2.0), bias=-1.0)


def masked(inner: Classifier, rate: float, options: str = "") -> Defended:
    found = wrap(inner, [make_defense(f"ranmask:rate={rate},copies=10{options}")])
    assert isinstance(found, Defended)
    return found
