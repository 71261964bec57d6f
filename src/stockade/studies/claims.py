"""What a paper claims about its numbers, held against a run: reported, never enforced.

A paper had other models and data: a claim that is not held here is a finding, not a fault.

A claim is held, not held or undecided, and a number that is larger than another decides nothing: an exact test or a
95 % interval does. The functions `by_test`, `by_interval` and `within` decide about one difference, `all_of` about a
claim of several parts. Ties, and intervals on both sides of the line, are undecided. Each claim is tested by itself at
the level of 5 %; with many claims some are decided by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stockade.core.statistics import mcnemar, sign_flip_test
from stockade.report.document import Cell, Table
from stockade.report.examples import Tone
from stockade.report.numbers import Interval, count, p_value
from stockade.studies.records import Results, attacked_by_all, succeeded

LEVEL = 0.05
"""A p below this decides."""
_TONES: dict[bool | None, Tone] = {True: "good", False: "bad", None: "soft"}


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a paper with what the run says about it.

    Parameters
    ----------
    claim
        The statement.
    holds
        Whether it is held here; None if the run cannot decide it.
    numbers
        What that follows from, with the test or interval that decided.
    """

    claim: str
    holds: bool | None
    numbers: str

    @property
    def verdict(self) -> str:
        """The answer in words."""
        return "undecided" if self.holds is None else "held" if self.holds else "not held"

    def described(self) -> dict[str, str | bool | None]:
        """As a summary has it."""
        return {"claim": self.claim, "holds": self.holds, "verdict": self.verdict, "numbers": self.numbers}


def by_test(difference: float | None, p: float | None) -> bool | None:
    """Whether a difference is positive: True or False if the test says so, None if it cannot tell.

    Parameters
    ----------
    difference
        Turned so that a positive one agrees with the claim; None if there is none.
    p
        Of a two-sided test of no difference; None if there is none.
    """
    if difference is None or p is None or p >= LEVEL or difference == 0:
        return None
    return difference > 0


def by_interval(interval: Interval, above: float = 0.0) -> bool | None:
    """Whether a number is above a line: True if its whole interval is, False if its whole interval is below.

    Parameters
    ----------
    interval
        The number with its 95 % interval.
    above
        The line.
    """
    low, high = interval["low"], interval["high"]
    if low is None or high is None:
        return None
    return True if low > above else False if high < above else None


def within(interval: Interval, margin: float) -> bool | None:
    """Whether a difference is negligible: True if its whole interval is nearer to 0 than the margin, False if its whole
    interval is farther away.

    Parameters
    ----------
    interval
        The difference with its 95 % interval.
    margin
        What is negligible.
    """
    low, high = interval["low"], interval["high"]
    if low is None or high is None:
        return None
    if -margin < low and high < margin:
        return True
    return False if low > margin or high < -margin else None


def all_of(parts: Iterable[bool | None]) -> bool | None:
    """The verdict of a claim of several parts: held if all are, not held if one is not, undecided otherwise."""
    verdicts = list(parts)
    if False in verdicts:
        return False
    return True if verdicts and None not in verdicts else None


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two quantities on the same texts.

    Parameters
    ----------
    texts
        How many texts have both.
    difference
        The mean over texts of the first less the second; None if there is no text.
    p
        Exact, two-sided: whether each text's difference could as well have the other sign.
    """

    texts: int
    difference: float | None
    p: float | None

    @property
    def positive(self) -> bool | None:
        """Whether the first is larger: True, False, or None if that is undecided."""
        return by_test(self.difference, self.p)

    @property
    def reverse(self) -> PairedTest:
        """The second less the first."""
        return PairedTest(self.texts, None if self.difference is None else -self.difference, self.p)

    @classmethod
    def of(cls, differences: Sequence[float]) -> PairedTest:
        """The test of one difference for each text; of differences that are all 1, 0 or -1 it is McNemar's."""
        if not differences:
            return cls(0, None, None)
        ahead, behind = sum(value == 1 for value in differences), sum(value == -1 for value in differences)
        counted = ahead + behind == sum(value != 0 for value in differences)
        p = mcnemar(ahead, behind) if counted else sign_flip_test(differences)
        return cls(len(differences), sum(differences) / len(differences), p)

    def __str__(self) -> str:
        return "no text has both" if self.p is None else f"{p_value(self.p)} on {count(self.texts, 'text')}"


def at_least_as_strong(results: Results, strong: str, weak: str, claim: str | None = None) -> Claim:
    """Whether one attack succeeds at least as often as another, on the texts both have attacked.

    McNemar's exact test decides; if both fool the same texts, or about as many others, that is undecided.

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
    test = PairedTest.of([first - second for first, second in outcomes])
    assert test.p is not None
    ahead, behind = sum(first for first, _ in outcomes), sum(second for _, second in outcomes)
    only_strong = sum(first > second for first, second in outcomes)
    only_weak = sum(first < second for first, second in outcomes)
    numbers = (
        f"{ahead} against {behind} of {len(texts)} texts; {only_strong} fooled only by {strong}, {only_weak} only by "
        f"{weak}; McNemar {p_value(test.p)}"
    )
    return Claim(claim, test.positive, numbers)


def claims_in_short(claims: Sequence[Claim]) -> str:
    """How many claims are held, not held and undecided, as a sentence."""
    verdicts = [claim.holds for claim in claims]
    parts = (
        f"{verdicts.count(True)} held",
        f"{verdicts.count(False)} not held",
        f"{verdicts.count(None)} undecided",
    )
    return f"Of the paper's {count(len(claims), 'claim')}, {', '.join(parts)} here."


def claims_table(claims: Sequence[Claim], caption: str = "") -> Table:
    """The claims with their verdicts and what those follow from."""
    rows = [(Cell(claim.claim), Cell(claim.verdict, tone=_TONES[claim.holds]), claim.numbers) for claim in claims]
    return Table(("claim", "here", "numbers"), rows, caption=caption, numeric=())
