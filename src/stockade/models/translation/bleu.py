"""BLEU and chrF of a corpus of translations, by sacrebleu, with the signature that says exactly what was computed; and
BLEU before and after an attack, with intervals by the paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def corpus_chrf(translations: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """chrF of translations against one reference each, with sacrebleu's signature."""
    metric = sacrebleu_metrics().CHRF()
    score = metric.corpus_score(list(translations), [list(references)])
    return {"value": round(float(score.score), 4), "signature": str(metric.get_signature())}


def compare_bleu(
    before: Sequence[str], after: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> dict[str, Any]:
    """The BLEU of two sets of translations of the same sentences and its change, with 95 % intervals by the paired
    bootstrap of Koehn (2004): sentences are drawn with replacement, the same for both.

    Parameters
    ----------
    before, after, references
        As many of each.
    lowercase
        Compare without case.
    """
    scores, drawn, signature = bootstrap_bleu([before, after], references, lowercase=lowercase)
    return {
        "before": bootstrap_interval(scores[0], drawn[0]),
        "after": bootstrap_interval(scores[1], drawn[1]),
        "change": bootstrap_interval(scores[1] - scores[0], drawn[1] - drawn[0]),
        "signature": signature,
    }


def bootstrap_bleu(
    systems: Sequence[Sequence[str]],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    samples: int = 1000,
    seed: int = 0,
) -> tuple[list[float], NDArray[np.float64], str]:
    """The BLEU of several sets of translations of the same sentences, also of samples of the sentences, and the
    signature.

    Parameters
    ----------
    systems
        The sets, each with as many translations as there are references.
    references
        One for each sentence.
    lowercase
        Compare without case.
    samples
        How often so many sentences are drawn with replacement, the same for all sets; a column of the answer each.
    seed
        Which ones.
    """
    rng, size = np.random.default_rng(seed), len(references)
    weights = rng.multinomial(size, np.full(size, 1 / max(1, size)), size=samples)
    whole = [corpus_bleu(translations, references, lowercase=lowercase) for translations in systems]
    drawn = np.zeros((len(systems), samples))
    for number, translations in enumerate(systems):
        if samples:
            drawn[number] = [_bleu_of(row) for row in weights @ _counts(translations, references, lowercase)]
    return [score.score for score in whole], drawn, whole[0].signature


def bootstrap_interval(value: float, drawn: NDArray[np.float64]) -> dict[str, float | None]:
    """A number with the 95 % percentile interval of its bootstrap samples."""
    low, high = np.quantile(drawn, (0.025, 0.975)) if len(drawn) else (value, value)
    return {"value": round(float(value), 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def _counts(translations: Sequence[str], references: Sequence[str], lowercase: bool) -> NDArray[np.int64]:
    """For each sentence how many n-grams are right and how many there are, for n up to 4, and both lengths."""
    metric = sacrebleu_metrics().BLEU(lowercase=lowercase, effective_order=True)
    rows = []
    for translation, reference in zip(translations, references, strict=True):
        score = metric.sentence_score(translation, [reference])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows, dtype=np.int64).reshape(len(rows), 10)


def _bleu_of(counts: NDArray[np.int64]) -> float:
    numbers = counts.tolist()
    metric = sacrebleu_metrics().BLEU
    return float(metric.compute_bleu(numbers[:4], numbers[4:8], *numbers[8:], smooth_method="exp").score)
