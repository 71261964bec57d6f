"""The numbers of an attack on a translator: counts, success with a 95 % interval, BLEU and chrF before and after.

Success = succeeded / attacked. BLEU and chrF are those of all attacked sentences together (a sentence that the attack
left alone has the same translation before and after), by sacrebleu: cased, and in lower case as papers on Multi30k do.
Sentences that ended in an error, or were skipped, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from stockade.core.attacked_translation import TranslationRecord
from stockade.core.statistics import wilson
from stockade.experiment.store import Effort
from stockade.models.translation.bleu import compare_bleu, corpus_chrf

SCHEMA = 1
_POOR = 2.0
"""A BLEU below this on unchanged sentences is more likely a mistake than a translator."""
_MANY_UNTRIED = 0.1


def summarise_attack(
    records: Sequence[TranslationRecord], effort: Effort, similarity_scale: str | None = None
) -> dict[str, Any]:
    """The summary of one attack; an empty or all-error attack has rates of null, never of zero."""
    statuses = Counter(record.status for record in records)
    attacked = [record for record in records if record.status in ("success", "failed")]
    changed = [record for record in attacked if record.adversarial is not None]
    untried = Counter(record.reason for record in attacked if record.adversarial is None and not record.queries)
    references = [record.reference for record in attacked]
    before = [record.original_translation or "" for record in attacked]
    after = [record.final_translation or "" for record in attacked]
    return {
        "n": len(attacked) + statuses["skipped"],
        "attacked": len(attacked),
        "skipped": statuses["skipped"],
        "succeeded": statuses["success"],
        "failed": statuses["failed"],
        "untried": untried.total(),
        "untried_reason": untried.most_common(1)[0][0] if untried else None,
        "errors": statuses["error"],
        "success_rate": wilson(statuses["success"], len(attacked)),
        "changed": len(changed),
        "mean_changed_words": _mean([len(record.edits) for record in changed]),
        "mean_perturbed_percent": _mean([record.perturbed_percent for record in changed]),
        "mean_similarity": _mean([record.similarity for record in changed]),
        "similarity_scale": similarity_scale,
        "bleu": compare_bleu(before, after, references) if attacked else None,
        "bleu_lowercase": compare_bleu(before, after, references, lowercase=True) if attacked else None,
        "chrf": {"before": corpus_chrf(before, references), "after": corpus_chrf(after, references)}
        if attacked
        else None,
        "mean_queries": _mean([record.queries for record in attacked]),
        "mean_rows": _mean([record.rows for record in attacked]),
        "cache_hits": sum(record.queries - record.rows for record in attacked),
        "seconds": round(effort.seconds, 3),
        "model_seconds": round(effort.model_seconds, 3),
        "model_rows": effort.model_rows,
    }


def warnings_for(summaries: Mapping[str, Mapping[str, Any]], white_box: bool) -> list[str]:
    """What a reader must know before believing the numbers.

    Parameters
    ----------
    summaries
        The numbers of each attack.
    white_box
        Whether the translator shows its logits.
    """
    warnings = []
    for name, summary in summaries.items():
        if summary["errors"]:
            warnings.append(f"{name}: {summary['errors']} sentences ended in an error and are left out of all numbers.")
        if summary["untried"] > _MANY_UNTRIED * summary["attacked"]:
            warnings.append(
                f"{name} had nothing to try on {summary['untried']:,} of {summary['attacked']:,} sentences (mostly: "
                f"{summary['untried_reason']}), whose translations count as they are."
            )
        if name.startswith("mt-keyword") and not white_box:
            warnings.append(
                f"{name}: the translator shows no logits, so the attack follows the letters of its translations: a "
                "much weaker attack, whose failures say little."
            )
    first = next(iter(summaries.values()), None)
    if first is not None and first["bleu"] is not None and first["bleu"]["before"]["value"] < _POOR:
        warnings.append(
            f"The BLEU of the unchanged sentences is {first['bleu']['before']['value']:.1f}: is this the right "
            "direction, and are source and reference the right columns?"
        )
    return warnings


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return round(sum(numbers) / len(numbers), 6) if numbers else None
