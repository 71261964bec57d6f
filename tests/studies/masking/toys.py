"""A victim that counts words, and texts of ten words whose masked copies a person can count."""

from __future__ import annotations

from pathlib import Path

from stockade.core.protocols import Classifier
from stockade.defenses.chain import save_defenses, wrap
from stockade.defenses.defended import Defended
from stockade.defenses.registry import make_defense
from tests.models.conftest import tiny_bert, tiny_tokenizer
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
LABELS = ("negative", "positive")


def victim() -> WeightVictim:
    return WeightVictim(dict.fromkeys([*STRONG.split(), "swell"], 2.0), bias=-1.0)


def masked(inner: Classifier, rate: float, options: str = "") -> Defended:
    defended = wrap(inner, [make_defense(f"ranmask:rate={rate},copies=10{options}")])
    assert isinstance(defended, Defended)
    return defended


def save_model(folder: Path, defense: str | None = None) -> str:
    """A tiny model in a folder, as if it had been trained with that defense."""
    tiny_bert(id2label=dict(enumerate(LABELS)), label2id={name: at for at, name in enumerate(LABELS)}).save_pretrained(
        folder
    )
    tiny_tokenizer().save_pretrained(folder)
    if defense is not None:
        save_defenses(folder, [make_defense(defense)])
    return str(folder)


def save_data(file: Path, texts: int) -> str:
    """So many texts of the tiny model's words."""
    rows = [f"the film was {word} and not {other},{label}\n" for word, other, label in _WORDS[:texts]]
    file.write_text(f"text,label\n{''.join(rows)}")
    return str(file)


_WORDS = (
    ("great", "bad", "positive"),
    ("bad", "great", "negative"),
    ("a film", "great", "negative"),
    ("great", "the film", "positive"),
)
