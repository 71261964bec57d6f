"""What Hsieh et al. claim about translators, held against the runs: reported, never enforced.

The paper's models were trained on WMT (453,000 pairs and more).
"""

from __future__ import annotations

from stockade.core.statistics import mcnemar
from stockade.report.numbers import Interval, change, p_value, percent
from stockade.studies.claims import Claim, by_interval, by_test
from stockade.studies.translation.analysis import Comparison, ModelNumbers, TranslationNumbers

_RARE = 0.30
"""The paper: success rates "are below 30 %"."""


def check_claims(numbers: TranslationNumbers) -> tuple[Claim, ...]:
    """Every claim of §6."""
    per_model = [
        claim
        for name, model in numbers.models.items()
        for claim in (_keywords_are_rare(name, model), _typos_hurt(name, model))
    ]
    return (*_compared(numbers.compared), *per_model)


def _compared(compared: Comparison | None) -> list[Claim]:
    statements = (
        "the keyword attack succeeds less often on the self-attentive translator",
        "the self-attentive translator has the higher BLEU on unchanged sentences",
        "the self-attentive translator has the higher BLEU on sentences with typos",
        "typos cost the self-attentive translator a smaller share of its BLEU",
        "the attention of the recurrent translator moves more when a word has a typo",
    )
    if compared is None:
        reason = "needs a recurrent and a self-attentive translator (say which with --recurrent NAME)"
        return [Claim(statement, None, reason) for statement in statements]
    return [
        _paired(
            statements[0],
            compared.only_recurrent,
            compared.only_self_attentive,
            f"of {compared.keyword_sentences} sentences {compared.only_recurrent} only on {compared.recurrent}, "
            f"{compared.only_self_attentive} only on {compared.self_attentive}",
        ),
        _positive(statements[1], compared.original, "difference of BLEU "),
        _positive(statements[2], compared.typo, "difference of BLEU "),
        _positive(statements[3], _negated(compared.lost), "difference of the shares lost ", digits=3),
        _paired(
            statements[4],
            compared.recurrent_moves_more,
            compared.self_attentive_moves_more,
            f"of {compared.attention_sentences} sentences with the same typo more in {compared.recurrent} on "
            f"{compared.recurrent_moves_more}, in {compared.self_attentive} on {compared.self_attentive_moves_more}",
        ),
    ]


def _paired(claim: str, wanted: int, other: int, numbers: str) -> Claim:
    """Decided by an exact test of whether both kinds of disagreement are equally likely."""
    p = mcnemar(wanted, other)
    return Claim(claim, by_test(wanted - other, p), f"{numbers}; exact test {p_value(p)}")


def _positive(claim: str, interval: Interval, what: str, digits: int = 2) -> Claim:
    """Decided by whether the whole interval is on one side of 0."""
    return Claim(claim, by_interval(interval), f"{what}{change(interval, digits)}")


def _negated(interval: Interval) -> Interval:
    value, low, high = (
        None if interval[name] is None else -float(interval[name] or 0) for name in ("value", "low", "high")
    )
    return {"value": value, "low": high, "high": low}


def _keywords_are_rare(name: str, model: ModelNumbers) -> Claim:
    rate = model.keyword.success_rate
    claim = f"the keyword attack succeeds on fewer than 30 % of the sentences ({name})"
    more = by_interval(rate, _RARE)
    return Claim(claim, None if more is None else not more, percent(rate))


def _typos_hurt(name: str, model: ModelNumbers) -> Claim:
    return _positive(f"one typo per sentence lowers BLEU ({name})", _negated(model.typo.change), "BLEU falls by ")
