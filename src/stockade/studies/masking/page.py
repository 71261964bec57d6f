"""The page of the study of RanMASK."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from stockade.report.document import (
    Block,
    Cell,
    Details,
    Document,
    Heading,
    Note,
    Plot,
    Prose,
    Span,
    Table,
    code,
    strong,
)
from stockade.report.numbers import (
    NOT_AVAILABLE,
    count,
    number,
    percent_cell,
    plain_percent,
    ranged_cell,
)
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.frame import study_document
from stockade.studies.masking.analysis import GAMMA, MaskingNumbers, RateNumbers
from stockade.studies.masking.beta import SETS, SIZES
from stockade.studies.masking.claims import DIVERGENCE, published_table, robust_accuracy
from stockade.studies.masking.plots import attack_plot, excess_plot, rate_plot
from stockade.studies.masking.runs import ChosenRate, RateRuns, Spread, one_per_rate
from stockade.studies.masking.study import MaskingResult
from stockade.studies.records import AttackNumbers

NOT_A_CERTIFICATE = "not a certificate"
_MEDIANS = (
    "MCB: the most words that may change in at least half of all texts without changing the right answer; MCR: the "
    "same as a share of each text's words. A wrong or undecided text counts as less than 0; n/a (× in the plot): fewer "
    "than half of the texts are certified at all, and 0 means that the answer is certain and no change allowed. "
    "Accuracy is that of the vote, with 95 % Wilson intervals; “right and certain” leaves out texts whose vote is too "
    "close to be sure of. Proved by ",
    code("ranmask-gap"),
    ", which may be wrong on a text with probability 5 %.",
)
_LEGACY = (
    strong("Not a certificate:"),
    " the published procedure (",
    code("ranmask-legacy"),
    ") prints the first number of words that fails its test, so one less is what its test says; and the test takes p "
    "for a bound on β, which it is not (see below). The last column counts texts for which it claims more, one already "
    "taken off, than is proved.",
)
_ROBUST = (
    "Texts that are right and stay right, of all texts, with 95 % Wilson intervals. Attacks query the ensemble itself, "
    "with fresh masks each time (the direct view of ",
    code("stockade evaluate"),
    "). ",
    strong("Votes starve attackers:"),
    " where nearly all copies vote alike, a changed word hardly moves the votes, and a search that follows scores is "
    "blind. Robust accuracy by vote is then no evidence of robustness; logit and probability show more of it, and the "
    "other views of ",
    code("stockade evaluate"),
    " most.",
)
_BOTH_RULES = (
    " First flip: one wrong answer of the ensemble is a success, as in the paper. Repeatable: the text found must fool "
    "at least half of its answers, and the search goes on until it has one that does; queries are those of the whole "
    "search.",
)
_VOTES = (
    "Of the copies that choose the class; entropy with natural logarithm, mean over texts. The paper has 0.025, 0.036, "
    "0.102 and 0.587 at rates of 5, 10, 50 and 90 % on AG-News."
)
_DIVERGENCE = (
    "If words of a set D change, p falls by at most βΔ, where β is the probability that a copy votes for the class "
    "given that it shows a word of D. The paper takes p for β, because the Jensen–Shannon divergence (JS) between the "
    f"means of β over {SETS} random sets and p, one pair per text, is below {DIVERGENCE:.1e}. ",
    strong("That proves nothing:"),
    " each copy shows equally many words, so it meets the same share of all sets, and the mean of β over all sets is p "
    "exactly, for every classifier; the divergence measures the noise of its own sampling. Nor would it see a "
    "difference: both lists are scaled to sum to 1, and if β were p + 0.05 for every text, the divergence would be the "
    "small number in that column.",
)
_CHOSEN = (
    "An attacker takes no mean. “Chosen word”: for each text the word with the largest β, chosen on one half of the "
    "copies and measured on the other (on all where a text has no more copies than were asked); means with 95 % "
    "bootstrap intervals. The last column counts texts of which the published test says that one word may change, and "
    "no longer says so with the chosen word's β; p and β are estimates there, without the limits that a certificate "
    "needs."
)
_BARS = (
    "Of several trainings of a rate the mean, of MCB and MCR the median; bars and bands go from the smallest to the "
    "largest."
)
_CLAIMS = (
    "Held or not held with p < 0.05, else undecided: rates and ensembles are compared on the same texts, by McNemar's "
    "exact test or by flipping signs; the divergence by its 95 % interval over resampled texts. No correction for many "
    "comparisons. The paper had other models and data."
)


def masking_document(result: MaskingResult) -> Document:
    """The whole page."""
    return study_document(
        result, about=_about(result), findings=findings(result), blocks=_blocks(result, result.numbers)
    )


def _about(result: MaskingResult) -> Prose:
    summary, numbers = result.summary, result.numbers
    budget = f", at most {summary['budget']:,} queries per text" if summary["budget"] else ""
    models: list[str | Span] = []
    for rate, reference in [
        *([] if numbers.undefended is None else [("0 %", numbers.undefended.reference)]),
        *((_rate(entry), entry.reference) for entry in numbers.rates),
    ]:
        models += [f"{', ' if models else ''}{rate} ", code(reference)]
    return (
        "Random masking at several mask rates (Zeng et al. 2021). Data ",
        code(summary["data"]),
        f", {summary['texts']:,} of {count(summary['total'], 'text')}, seed {summary['seed']}, {summary['copies']:,} "
        f"masked copies per text{budget}. Models: ",
        *models,
        ".",
    )


def findings(result: MaskingResult) -> list[str]:
    """The study in a few sentences; every one follows from the tables."""
    rates = one_per_rate(result.numbers.rates)
    return [
        _most_certified(rates, result.numbers.chosen),
        *_seeds(result.numbers.runs),
        *(sentence for attack in result.attacks for sentence in _most_robust(rates, attack)),
        *_chosen_words(rates),
        *_risks(rates),
        claims_in_short(result.claims),
    ]


def _most_certified(rates: Sequence[RateNumbers], chosen: ChosenRate | None) -> str:
    if chosen is None:
        return "At no rate is the class of half of the texts certified."
    (entry,) = (entry for entry in rates if entry.rate == chosen.rate)
    printed = number(entry.certificates.claimed.median_radius, 0)
    if not chosen.median_radius:
        return (
            "At no rate are half of the texts certified against a change of one word. The published procedure prints "
            f"an MCB of {printed} at a mask rate of {_rate(entry)}, which is {NOT_A_CERTIFICATE}."
        )
    return (
        f"Most is certified at a mask rate of {_rate(entry)}: half of the texts keep their class whatever becomes of "
        f"{chosen.median_radius} of their words, with an accuracy of {plain_percent(chosen.accuracy)}. "
        f"The published procedure prints {printed} there, which is {NOT_A_CERTIFICATE}."
    )


def _seeds(runs: Sequence[RateRuns]) -> Iterator[str]:
    widest = max(runs, key=lambda entry: (entry.accuracy.high or 0) - (entry.accuracy.low or 0), default=None)
    if widest is not None:
        models = ", ".join(f"{len(entry.models)} at {100 * entry.rate:g} %" for entry in runs)
        yield (
            f"Several trainings of a rate ({models}): numbers by rate are their means. Single accuracies lie farthest "
            f"apart at {100 * widest.rate:g} %, from {plain_percent(widest.accuracy.low)} to "
            f"{plain_percent(widest.accuracy.high)}."
        )


def _most_robust(rates: Sequence[RateNumbers], attack: str) -> Iterator[str]:
    best = []
    for ensemble in ("logit", "vote"):
        robust = {_rate(entry): robust_accuracy(entry, ensemble, attack) for entry in rates}
        measured = {rate: value for rate, value in robust.items() if value is not None}
        if measured:
            rate = max(measured, key=lambda rate: measured[rate])
            repeatable = plain_percent(
                next(
                    robust_accuracy(entry, ensemble, attack, published=False) for entry in rates if _rate(entry) == rate
                )
            )
            beside = f" ({repeatable} by what repeats)" if repeatable != plain_percent(measured[rate]) else ""
            best.append(f"{plain_percent(measured[rate])} at {rate} by {ensemble}{beside}")
    if best:
        yield f"{attack} leaves at most {' and '.join(best)}; the first flip counts, as published."


def _chosen_words(rates: Sequence[RateNumbers]) -> Iterator[str]:
    measured = [(entry, entry.check.excess["value"]) for entry in rates]
    excesses = [f"{excess:+.3f} at {_rate(entry)}" for entry, excess in measured if excess is not None]
    if excesses:
        claims = sum(entry.check.claims for entry in rates)
        broken = sum(entry.check.broken_claims for entry in rates)
        failing = f" Of {claims:,} claims that one word may change, {broken:,} fail with it." if claims else ""
        yield (
            f"β of the word that an attacker chooses is above p by {', '.join(excesses)} on average; the published "
            f"check sees nothing of it.{failing}"
        )


def _risks(rates: Sequence[RateNumbers]) -> Iterator[str]:
    risks = [f"{entry.risk.mean:.2f} at {_rate(entry)}" for entry in rates if entry.risk.mean is not None]
    if risks:
        yield (
            "If a tenth of the words is attacked, a copy shows them all with a mean probability of "
            f"{', '.join(risks)}; it must be below one half."
        )


def _blocks(result: MaskingResult, numbers: MaskingNumbers) -> Iterator[Block]:
    rates, published, means = numbers.rates, bool(result.spec.published), one_per_rate(numbers.rates)
    yield Heading("Accuracy and certificates", aside="Tables 2 and 3")
    yield Plot(lambda: rate_plot(means, published=published), _BARS if numbers.runs else "", name="rates")
    yield certificate_table(rates)
    yield Note(_LEGACY, kind="aside")
    yield Details("Share of texts certified, by the number of changed words", [curve_table(rates)])
    if published:
        yield Details("The paper's numbers", [published_table()], unfolded=True)
    if numbers.runs:
        yield Heading("Several trainings of one rate")
        yield run_table(numbers.runs, result.attacks)
    yield Heading("Robust accuracy against the mask rate", aside="Figure 3")
    if result.attacks:
        mean = dataclasses.replace(numbers, rates=tuple(means))
        caption = _BARS if numbers.runs else ""
        yield Plot(lambda: attack_plot(mean, result.attacks), caption, name="attacks")
        yield attack_table(numbers, result.attacks)
    else:
        yield Note(
            ("No attack was named: ", code("--attack textfooler"), " adds this part in another folder."), "aside"
        )
    yield vote_table(rates)
    yield Heading("Why the published bound is none", aside="Figure 2")
    yield Plot(lambda: excess_plot(rates), name="excess")
    yield check_table(rates)
    yield Note(_CHOSEN, kind="aside")
    yield Heading("Risk of a rate", aside="equation 10")
    yield risk_table(rates)
    yield Heading("What the paper claims, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)


def certificate_table(rates: Sequence[RateNumbers]) -> Table:
    """Tables 2 and 3."""
    rows: list[Sequence[str | Cell]] = []
    for entry in rates:
        certificates = entry.certificates
        rows.append(
            (
                _rate(entry),
                percent_cell(certificates.accuracy),
                percent_cell(certificates.sound.accuracy),
                number(certificates.sound.median_radius, 0),
                plain_percent(certificates.sound.median_rate),
                Cell(number(certificates.claimed.median_radius, 0), tone="bad"),
                Cell(plain_percent(certificates.claimed.median_rate), tone="bad"),
                Cell(number(certificates.corrected.median_radius, 0), tone="bad"),
                Cell(plain_percent(certificates.corrected.median_rate), tone="bad"),
                f"{certificates.claimed_more:,} of {certificates.texts:,}",
            )
        )
    columns = ("mask rate", "accuracy", "right and certain", "MCB", "MCR")
    legacy = (f"MCB printed ({NOT_A_CERTIFICATE})", "MCR printed", "MCB − 1", "MCR, one less", "claims too much")
    return Table((*columns, *legacy), rows, caption=_MEDIANS)


def run_table(runs: Sequence[RateRuns], attacks: Sequence[str]) -> Table:
    """Mean and spread over the trainings of each rate, and the rate of the largest MCB."""
    rows: list[Sequence[str | Cell]] = []
    for entry in runs:
        cells = [_spread(entry.accuracy), _spread(entry.median_radius, percent=False), _spread(entry.median_rate)]
        for attack in attacks:
            cells += [_spread(by_attack[attack]) for by_attack in entry.robust.values() if attack in by_attack]
        rows.append((f"{100 * entry.rate:g} %", f"{len(entry.models)}", *cells))
    ensembles = list(runs[0].robust)
    robust = [f"robust, {attack}, {ensemble}" for attack in attacks for ensemble in ensembles]
    columns = ("mask rate", "trainings", "accuracy", "MCB", "MCR", *robust)
    caption = (
        "Mean ± standard deviation of single trainings (n − 1), from the smallest to the largest. The paper's Figure 3 "
        "has the mean over five trainings with other first weights."
    )
    return Table(columns, rows, caption=caption, numeric=range(1, len(columns)))


def _spread(spread: Spread, *, percent: bool = True) -> Cell:
    if spread.mean is None or spread.low is None or spread.high is None:
        return Cell(NOT_AVAILABLE)
    scale, unit = (100, " %") if percent else (1, "")
    deviation = "" if spread.deviation is None else f" ± {scale * spread.deviation:.1f}"
    return Cell(f"{scale * spread.mean:.1f}{deviation}{unit}", f"{scale * spread.low:.1f}–{scale * spread.high:.1f}")


def curve_table(rates: Sequence[RateNumbers]) -> Table:
    """The share of texts that are certified at each radius, soundly."""
    curves = {_rate(entry): entry.certificates.sound.curve for entry in rates}
    radii = range(max(map(len, curves.values()), default=0))
    rows = [
        (rate, *(plain_percent(curve[radius].share) if radius < len(curve) else "0 %" for radius in radii))
        for rate, curve in curves.items()
    ]
    return Table(("mask rate", *("certain" if not radius else count(radius, "word") for radius in radii)), rows)


def attack_table(numbers: MaskingNumbers, attacks: Sequence[str]) -> Table:
    """Figure 3 as numbers."""
    ensembles: list[tuple[str, str, dict[str, AttackNumbers]]] = []
    if numbers.undefended is not None:
        ensembles.append(("0 %", "undefended", dict(numbers.undefended.attacks)))
    for entry in numbers.rates:
        ensembles += [(_rate(entry), ensemble, dict(cells)) for ensemble, cells in entry.attacks.items()]
    two_rules = any(cell.first_flip_robust_accuracy is not None for _, _, cells in ensembles for cell in cells.values())
    rows = [
        (
            rate,
            ensemble,
            plain_percent(next((cell.clean_accuracy["value"] for cell in cells.values()), None)),
            *(cell for attack in attacks for cell in _robust_cells(cells.get(attack), two_rules)),
            *(number(cells[attack].mean_queries) if attack in cells else NOT_AVAILABLE for attack in attacks),
        )
        for rate, ensemble, cells in ensembles
    ]
    rules = (", first flip", ", repeatable") if two_rules else ("",)
    robust = [f"robust, {attack}{rule}" for attack in attacks for rule in rules]
    columns = ("mask rate", "ensemble", "clean", *robust, *(f"queries, {attack}" for attack in attacks))
    caption = (*_ROBUST, *(_BOTH_RULES if two_rules else ()))
    return Table(columns, rows, caption=caption, numeric=range(2, len(columns)), grouped=1)


def _robust_cells(numbers: AttackNumbers | None, two_rules: bool) -> list[str | Cell]:
    """Robust accuracy as published and by what repeats, which are the same for the undefended model."""
    if numbers is None:
        return [NOT_AVAILABLE] * (1 + two_rules)
    cells: list[str | Cell] = [percent_cell(numbers.published_robust_accuracy)]
    return [*cells, percent_cell(numbers.robust_accuracy)] if two_rules else cells


def vote_table(rates: Sequence[RateNumbers]) -> Table:
    """How much votes tell a search."""
    votes = {_rate(entry): entry.certificates.votes for entry in rates}
    rows = [(rate, number(cell.entropy, 3), plain_percent(cell.unanimous, 0)) for rate, cell in votes.items()]
    return Table(("mask rate", "mean entropy of the votes", "texts on which all copies agree"), rows, caption=_VOTES)


def check_table(rates: Sequence[RateNumbers]) -> Table:
    """The published check, and what one word does."""
    rows: list[Sequence[str | Cell]] = []
    for entry in rates:
        check = entry.check
        rows.append(
            (
                _rate(entry),
                *(_tiny(check.divergence[str(size)]) for size in SIZES),
                _tiny(check.divergence_if_fatal),
                ranged_cell(check.random_excess, 4),
                ranged_cell(check.excess, 3),
                number(None if check.largest is None else check.largest.excess, 3),
                f"{check.broken_claims:,} of {check.claims:,}",
            )
        )
    sizes = (f"JS, {count(size, 'word')}" for size in SIZES)
    chosen = ("β − p, random word", "β − p, chosen word", "largest", "claims for one word that fail then")
    return Table(("mask rate", *sizes, "JS if β were p + 0.05", *chosen), rows, caption=_DIVERGENCE)


def risk_table(rates: Sequence[RateNumbers]) -> Table:
    """Equation 10."""
    rows: list[Sequence[str | Cell]] = []
    for entry in rates:
        risk = entry.risk
        at_median = NOT_AVAILABLE if risk.at_median is None else f"{risk.at_median:.3f} ({risk.median_words} words)"
        lowest = plain_percent(risk.lowest_rate, 0)
        rows.append((_rate(entry), number(risk.mean, 3), percent_cell(risk.safe), at_median, lowest))
    short = max((entry.risk.too_short for entry in rates), default=0)
    too_short = f" {count(short, 'text is', 'texts are')} so short that no word would be attacked, and left out."
    caption = (
        f"The probability that a copy shows all attacked words, if a share of γ = {GAMMA} of the words is attacked, "
        "over the lengths of the texts. It must be ",
        strong("below"),
        f" 0.5, else most copies hold the whole attack; the paper asks for more than 0.5 by mistake."
        f"{too_short if short else ''} The last column is the lowest rate, in steps of 5 %, with a risk below 0.5 at "
        "the median length.",
    )
    columns = ("mask rate", "mean risk", "texts with a risk below 0.5", "at the median length", "lowest rate for that")
    return Table(columns, rows, caption=caption)


def _rate(entry: RateNumbers) -> str:
    """The mask rate, and the model where several have it."""
    return f"{100 * entry.rate:g} %" + (f", {entry.run}" if entry.run else "")


def _tiny(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.1e}"
