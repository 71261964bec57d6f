"""What a paper claims about its numbers, held against a run: reported, never enforced.

A paper had other models and data: a claim that does not hold here is a finding, not a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stockade.report.document import Cell, Table
from stockade.report.examples import Tone
from stockade.report.numbers import count
from stockade.studies.records import Results, attacked_by_all, succeeded

_TONES: dict[bool | None, Tone] = {True: "good", False: "bad", None: "soft"}


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a paper with what the run says about it.

    Parameters
    ----------
    claim
        The statement.
    holds
        Whether it holds here; None if the run cannot decide it.
    numbers
        What that follows from.
    """

    claim: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        """The answer in words."""
        return "undecided" if self.holds is None else "holds" if self.holds else "does not hold"

    def described(self) -> dict[str, str | bool | None]:
        """As a summary has it."""
        return {"claim": self.claim, "holds": self.holds, "verdict": self.verdict, "numbers": self.numbers}


def at_least_as_strong(results: Results, strong: str, weak: str, claim: str | None = None) -> Claim:
    """Whether one attack succeeds at least as often as another, on the texts both have attacked.

    If neither has fooled the model on any of them, that is undecided.

    Parameters
    ----------
    results
        What the attacks did.
    strong, weak
        The two attacks.
    claim
        How the statement reads, if not "STRONG succeeds at least as often as WEAK".
    """
    claim = claim or f"{strong} succeeds at least as often as {weak}"
    texts = attacked_by_all(results, (strong, weak))
    if not texts:
        return Claim(claim, None, "no text was attacked by both")
    outcomes = [(succeeded(results[strong][text]), succeeded(results[weak][text])) for text in texts]
    ahead, behind = sum(first for first, _ in outcomes), sum(second for _, second in outcomes)
    only_strong = sum(first > second for first, second in outcomes)
    only_weak = sum(first < second for first, second in outcomes)
    numbers = (
        f"{ahead} against {behind} of {len(texts)} texts; {only_strong} fooled only by {strong}, {only_weak} only by "
        f"{weak}"
    )
    return Claim(claim, ahead >= behind if ahead or behind else None, numbers)


def claims_in_short(claims: Sequence[Claim]) -> str:
    """How many claims hold, as a sentence."""
    holding = sum(claim.holds is True for claim in claims)
    undecided = sum(claim.holds is None for claim in claims)
    sentence = f"{holding} of the paper's {count(len(claims), 'claim')} {'holds' if holding == 1 else 'hold'} here"
    return f"{sentence}; {undecided} {'is' if undecided == 1 else 'are'} undecided." if undecided else f"{sentence}."


def claims_table(claims: Sequence[Claim], caption: str = "") -> Table:
    """The claims with their verdicts and what those follow from."""
    rows = [(Cell(claim.claim), Cell(claim.verdict, tone=_TONES[claim.holds]), claim.numbers) for claim in claims]
    return Table(("claim", "here", "numbers"), rows, caption=caption, numeric=())
