"""How much less fluent the adversarial texts are than their originals, by the pseudo-perplexity of a masked LM.

A text costs one forward pass per piece, so what is known is kept in the run's folder: each text is computed once,
whatever attacks found it, and an interrupted or repeated analysis goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from stockade.core.files import write_json
from stockade.core.records import Record
from stockade.models.language import LanguageModels
from stockade.studies.results import bootstrap_mean

FILE_NAME = "pseudo-perplexity.json"
_CHUNK = 64

Measure = Callable[[Sequence[str]], Sequence[float | None]]
Values = Mapping[str, float | None]


def masked_lm_measure(language: LanguageModels) -> Measure:
    """Pseudo-perplexities by the run's masked LM, which is loaded for the first text."""
    model: Any = None

    def measure(texts: Sequence[str]) -> list[float | None]:
        nonlocal model
        from stockade.models.pseudo_perplexity import pseudo_perplexities

        model = model or language.make_masked_lm()
        return pseudo_perplexities(model, texts)

    return measure


def measure_texts(folder: Path, masked_lm: str, texts: Iterable[str], measure: Measure) -> Values:
    """The pseudo-perplexity of every text; those that the folder does not know yet are computed and kept."""
    wanted = {text: _key(text) for text in dict.fromkeys(texts)}
    known = _read(folder / FILE_NAME, masked_lm)
    missing = sorted((text for text, key in wanted.items() if key not in known), key=len)
    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        known.update(zip((wanted[text] for text in chunk), measure(chunk), strict=True))
        write_json(folder / FILE_NAME, {"masked_lm": masked_lm, "texts": known})
    return {text: known[key] for text, key in wanted.items()}


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(path: Path, masked_lm: str) -> dict[str, float | None]:
    """What is known already; a file that cannot be read, or of another masked LM, only costs a new computation."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["masked_lm"] == masked_lm:
            return dict(content["texts"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}


def measure_fluency(found: Sequence[Record], values: Values) -> dict[str, Any]:
    """Medians of both texts, and the ratio adversarial / original: above 1 the text has become less fluent."""
    pairs = [
        (before, after)
        for before, after in ((values[record.original], values[record.adversarial or ""]) for record in found)
        if before is not None and after is not None
    ]
    ratios = [after / before for before, after in pairs]
    return {
        "measured": len(pairs),
        "median_original": _median([before for before, _ in pairs]),
        "median_adversarial": _median([after for _, after in pairs]),
        "median_ratio": _median(ratios),
        "mean_ratio": bootstrap_mean(ratios),
    }


def texts_of(found: Iterable[Record]) -> list[str]:
    """The texts that `measure_fluency` will ask for."""
    return [text for record in found for text in (record.original, record.adversarial or "")]


def _median(values: Sequence[float]) -> float | None:
    return round(median(values), 6) if values else None
