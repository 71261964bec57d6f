"""The numbers of the study of translators (Hsieh et al., ACL 2019, §6), from the results of its runs alone.

    keyword      Table 7: the success of the targeted keyword attack
    typo         Table 8: BLEU before and after typos, and the share of BLEU that is lost
    attention    Figure 3: how far the attention over the source moves when one word has a typo
    compared     the recurrent translator against the self-attentive one, on the same sentences

Differences to the paper: it shows attention of one sentence; here it is measured on many, as the total variation
distance between the shares of attention that the words get over the whole translation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.attacked_translation import TranslationRecord
from stockade.core.text import Text
from stockade.core.translation import InspectableTranslator, SourceAttention
from stockade.models.translation.bleu import bootstrap_bleu, bootstrap_interval
from stockade.report.numbers import Interval
from stockade.studies.records import bootstrap_mean
from stockade.workflows.translation.result import TranslationResult

Kind = Literal["recurrent", "self-attentive"]
KEYWORD, TYPO = "mt-keyword", "mt-typo"
PUBLISHED: Mapping[Kind, Mapping[str, float]] = {
    "recurrent": {"keyword": 0.275, "original": 25.10, "typo": 13.44},
    "self-attentive": {"keyword": 0.105, "original": 34.90, "typo": 26.02},
}
"""Tables 7 and 8: success of GS-EC, BLEU before and after typos, on WMT German."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShift:
    """The attention over the words of a source before and after some were changed.

    Parameters
    ----------
    id
        The sentence.
    words, changed
        The words of the original and of the changed source.
    before, after
        The share of the attention of all steps that each word gets.
    distance
        Half the sum of the absolute differences, from 0 to 1.
    steps_before, steps_after, weights_before, weights_after
        The sub-words of both translations and their attention, where it is drawn; else empty.
    """

    id: str
    words: Sequence[str]
    changed: Sequence[str]
    before: Sequence[float]
    after: Sequence[float]
    distance: float
    steps_before: Sequence[str] = ()
    steps_after: Sequence[str] = ()
    weights_before: Sequence[Sequence[float]] = ()
    weights_after: Sequence[Sequence[float]] = ()

    def described(self) -> dict[str, Any]:
        """As the store keeps it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class KeywordNumbers:
    """Table 7 for one translator; `ids` are those attacked, and `successes` those with the keyword."""

    attacked: int
    success_rate: Interval
    ids: tuple[str, ...]
    successes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TypoNumbers:
    """Table 8 for one translator: BLEU, also in lower case, before and after, and the share of it that is lost."""

    attacked: int
    before: Interval
    after: Interval
    change: Interval
    lost: Interval
    lower_before: float
    lower_after: float


@dataclass(frozen=True, slots=True)
class ModelNumbers:
    """One translator under all attacks."""

    kind: Kind | None
    keyword: KeywordNumbers
    typo: TypoNumbers
    attention: Interval
    attention_sentences: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A recurrent translator against a self-attentive one, on the sentences both were attacked on.

    Parameters
    ----------
    recurrent, self_attentive
        Their names.
    keyword_sentences, only_recurrent, only_self_attentive
        Sentences attacked for a keyword in both, and those on which only one of them was made to write it.
    original, typo
        BLEU of the self-attentive one less that of the recurrent one.
    lost
        The share of BLEU that typos cost the self-attentive one less that of the recurrent one.
    attention_sentences, recurrent_moves_more, self_attentive_moves_more
        Sentences with the same typo for both, and whose attention moved more.
    """

    recurrent: str
    self_attentive: str
    keyword_sentences: int
    only_recurrent: int
    only_self_attentive: int
    original: Interval
    typo: Interval
    lost: Interval
    attention_sentences: int
    recurrent_moves_more: int
    self_attentive_moves_more: int


@dataclass(frozen=True, slots=True)
class TranslationNumbers:
    """All numbers of the study; nothing is compared where not both kinds of translator are there."""

    models: Mapping[str, ModelNumbers]
    compared: Comparison | None


def analyse(
    runs: Mapping[str, tuple[TranslationResult, TranslationResult]],
    kinds: Mapping[str, Kind | None],
    shifts: Mapping[str, Sequence[AttentionShift]],
) -> TranslationNumbers:
    """The numbers of all translators.

    Parameters
    ----------
    runs
        For each its run with searches and that with typos.
    kinds
        What each is.
    shifts
        How its attention moved.
    """
    records = {name: _typo_records(typos) for name, (_, typos) in runs.items()}
    models = {}
    for name, (searches, _) in runs.items():
        distances = [shift.distance for shift in shifts[name]]
        models[name] = ModelNumbers(
            kinds[name], _keyword(searches), _typo(records[name]), bootstrap_mean(distances), len(distances)
        )
    first = {kind: name for name, kind in reversed(list(kinds.items())) if kind is not None}
    if len(first) < 2:
        return TranslationNumbers(models, None)
    pair = first["recurrent"], first["self-attentive"]
    return TranslationNumbers(models, _compared(*pair, models, records, shifts))


def _typo_records(run: TranslationResult) -> dict[str, TranslationRecord]:
    """The attacked sentences of the first typo attack."""
    return {record.id: record for record in run.records(run.attacks[0]) if record.status in ("success", "failed")}


def _keyword(run: TranslationResult) -> KeywordNumbers:
    key = next(attack["key"] for attack in run.manifest.spec["attacks"] if attack["name"] == KEYWORD)
    numbers = run.summary["attacks"][key]
    records = [record for record in run.records(key) if record.status in ("success", "failed")]
    return KeywordNumbers(
        len(records),
        numbers["success_rate"],
        tuple(record.id for record in records),
        tuple(record.id for record in records if record.status == "success"),
    )


def _typo(records: Mapping[str, TranslationRecord]) -> TypoNumbers:
    nothing: Interval = {"value": None, "low": None, "high": None}
    if not records:
        return TypoNumbers(0, nothing, nothing, nothing, nothing, 0.0, 0.0)
    before, after, references = _sides(records.values())
    scores, drawn, _ = bootstrap_bleu([before, after], references)
    lower, _, _ = bootstrap_bleu([before, after], references, lowercase=True, samples=0)
    return TypoNumbers(
        len(records),
        bootstrap_interval(scores[0], drawn[0]),
        bootstrap_interval(scores[1], drawn[1]),
        bootstrap_interval(scores[1] - scores[0], drawn[1] - drawn[0]),
        bootstrap_interval(_lost(scores), _lost(drawn)),
        lower[0],
        lower[1],
    )


def _lost(scores: Any) -> Any:
    """The share of BLEU that is gone."""
    return 1 - scores[1] / np.maximum(scores[0], 1e-9)


def _sides(records: Any) -> tuple[list[str], list[str], list[str]]:
    rows = [(r.original_translation or "", r.final_translation or "", r.reference) for r in records]
    before, after, references = (list(column) for column in zip(*rows, strict=True))
    return before, after, references


def _compared(
    recurrent: str,
    self_attentive: str,
    models: Mapping[str, ModelNumbers],
    records: Mapping[str, Mapping[str, TranslationRecord]],
    shifts: Mapping[str, Sequence[AttentionShift]],
) -> Comparison:
    first, second = models[recurrent].keyword, models[self_attentive].keyword
    both = set(first.ids) & set(second.ids)
    wins = set(first.successes) & both, set(second.successes) & both
    ids = [id for id in records[recurrent] if id in records[self_attentive]]
    nothing: Interval = {"value": None, "low": None, "high": None}
    original = typo = lost = nothing
    if ids:
        r_before, r_after, references = _sides([records[recurrent][id] for id in ids])
        s_before, s_after, _ = _sides([records[self_attentive][id] for id in ids])
        scores, drawn, _ = bootstrap_bleu([r_before, r_after, s_before, s_after], references)
        original = bootstrap_interval(scores[2] - scores[0], drawn[2] - drawn[0])
        typo = bootstrap_interval(scores[3] - scores[1], drawn[3] - drawn[1])
        lost = bootstrap_interval(_lost(scores[2:]) - _lost(scores[:2]), _lost(drawn[2:]) - _lost(drawn[:2]))
    moved = {shift.id: shift for shift in shifts[self_attentive]}
    same = [(s, moved[s.id]) for s in shifts[recurrent] if s.id in moved and s.changed == moved[s.id].changed]
    return Comparison(
        recurrent,
        self_attentive,
        len(both),
        len(wins[0] - wins[1]),
        len(wins[1] - wins[0]),
        original,
        typo,
        lost,
        len(same),
        sum(a.distance > b.distance for a, b in same),
        sum(a.distance < b.distance for a, b in same),
    )


def measure_shift(
    translator: InspectableTranslator, record: TranslationRecord, *, matrices: bool = False
) -> AttentionShift | None:
    """How the attention of a translator moves from an original to its changed source; None where one has none.

    Parameters
    ----------
    translator
        What is looked into.
    record
        A sentence that was changed word by word.
    matrices
        Whether the attention of every step is kept.
    """
    texts = [Text.parse(record.original), Text.parse(record.adversarial or "")]
    before, after = translator.source_attention(texts)
    shares = _shares(before), _shares(after)
    if shares[0] is None or shares[1] is None or len(shares[0]) != len(shares[1]):
        return None
    distance = 0.5 * float(np.abs(shares[0] - shares[1]).sum())
    return AttentionShift(
        id=record.id,
        words=texts[0].words,
        changed=texts[1].words,
        before=[round(float(share), 6) for share in shares[0]],
        after=[round(float(share), 6) for share in shares[1]],
        distance=round(distance, 6),
        steps_before=before.pieces if matrices else (),
        steps_after=after.pieces if matrices else (),
        weights_before=np.round(before.weights.astype(np.float64), 4).tolist() if matrices else (),
        weights_after=np.round(after.weights.astype(np.float64), 4).tolist() if matrices else (),
    )


def _shares(attention: SourceAttention) -> NDArray[np.float64] | None:
    total = attention.weights.astype(np.float64).sum(0)
    return total / total.sum() if total.size and total.sum() > 0 else None
