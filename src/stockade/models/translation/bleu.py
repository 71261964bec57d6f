"""BLEU of a corpus of translations, by sacrebleu, with the signature that says exactly what was computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from stockade.core.errors import ResourceMissing


@dataclass(frozen=True, slots=True)
class CorpusBleu:
    """BLEU from 0 to 100, and sacrebleu's signature."""

    score: float
    signature: str


def sacrebleu_metrics() -> Any:
    """The module of sacrebleu's measures, which is an optional package."""
    try:
        return import_module("sacrebleu.metrics")
    except ImportError:
        raise ResourceMissing(
            "BLEU is computed by sacrebleu, which is not installed. Install it with: pip install 'stockade[mt]'"
        ) from None


def corpus_bleu(translations: Sequence[str], references: Sequence[str], *, lowercase: bool = False) -> CorpusBleu:
    """BLEU of translations against one reference each, with sacrebleu's own tokenisation (13a).

    Parameters
    ----------
    translations, references
        As many of each.
    lowercase
        Compare without case, as the Multi30k papers do.
    """
    metric = sacrebleu_metrics().BLEU(lowercase=lowercase)
    score = metric.corpus_score(list(translations), [list(references)])
    return CorpusBleu(float(score.score), str(metric.get_signature()))
