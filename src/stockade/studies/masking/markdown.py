"""The study as Markdown: the tables of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockade.studies.markdown import beginning, section
from stockade.studies.masking import tables
from stockade.studies.masking.headline import headline
from stockade.studies.masking.published import SOURCE, published_table
from stockade.studies.tables import order_table

WHY_NOTHING = (
    "The divergence proves nothing: over all sets of r words the mean of β is p exactly, for every classifier, because "
    "each copy shows equally many words and so meets the same share of the sets. It measures the noise of its own "
    "sampling. An attacker takes no mean, he chooses the words."
)
STARVED = (
    "The attacks ask the ensemble itself. Votes starve attacks that follow scores, so robust accuracy by vote flatters "
    "the defense; `stockade evaluate` attacks such a model in other ways too."
)


def render_markdown(numbers: Mapping[str, Any]) -> str:
    about = (
        f"Data `{numbers['data']}`, {numbers['texts']:,} of {numbers['total']:,} texts, seed {numbers['seed']}, "
        f"{numbers['copies']:,} masked copies per text. Intervals are 95 %."
    )
    lines = beginning(numbers, about, headline(numbers))
    lines += section("Accuracy and certificates (Tables 2 and 3)", tables.certificate_table(numbers))
    lines += section("Share of texts certified (ranmask-gap)", tables.curve_table(numbers))
    if numbers["published"]:
        lines += [*section("The paper's numbers", published_table()), "", f"{SOURCE}."]
    attacks = tables.attack_table(numbers)
    if attacks is not None:
        lines += [*section("Robust accuracy against the mask rate (Figure 3)", attacks), "", STARVED]
    lines += section("What votes tell", tables.vote_table(numbers))
    lines += [*section("The Jensen–Shannon check (Figure 2)", tables.check_table(numbers)), "", WHY_NOTHING]
    lines += section("Risk of a rate (equation 10)", tables.risk_table(numbers))
    lines += section("What the paper says", order_table(numbers))
    return "\n".join(lines) + "\n"
