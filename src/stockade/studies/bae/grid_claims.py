"""What the BAE paper claims of all models and data sets, held against a grid: reported, never enforced.

Every claim is decided over all cells by text: the models of a data set share its texts, so the differences of a text
are averaged over its models, and the test asks whether each text's difference could as well have the other sign. Behind
that stands in how many cells it holds by itself, and in how many of the paper's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

import numpy as np

from stockade.report.numbers import Interval, count, p_value
from stockade.studies.bae.analysis import (
    ATTACKS,
    BASELINE,
    BOTH,
    EITHER,
    INSERT,
    MODES,
    REPLACE,
    split_texts,
)
from stockade.studies.bae.grid_analysis import (
    CellResults,
    Values,
    by_text,
    compare_attacks,
    similarity_difference,
    strength_difference,
    strength_difference_within,
)
from stockade.studies.bae.published import DATA_SETS, MODELS, PUBLISHED, published_count
from stockade.studies.claims import LEVEL, Claim, PairedTest, all_of, by_interval, by_test
from stockade.studies.records import attacked_by_all, succeeded, was_attacked

CAPS = (0.1, 0.2, 0.3, 0.4, 0.5)
"""Where Figure 2 is read."""
PUBLISHED_CELLS = len(MODELS) * len(DATA_SETS)
_RESAMPLES = 2_000
Measure = Callable[[CellResults], Values]


def check_grid(cells: Mapping[str, CellResults]) -> tuple[Claim, ...]:
    """Every claim of the paper across models and data sets.

    Parameters
    ----------
    cells
        What happened in each.
    """
    every = list(cells.values())
    return (
        _every_mode_is_stronger(every),
        *(_stronger(every, mode, BASELINE) for mode in MODES),
        _strongest(every),
        _stronger(every, EITHER, REPLACE),
        _stronger(every, EITHER, INSERT),
        _stronger_at_every_cap(every),
        _most_similar(every),
        _more_similar(every, BOTH, REPLACE),
        *(_more_similar(every, mode, BASELINE) for mode in MODES),
        _insertions_matter_more(every),
        *_about_bert(every),
        *_about_subj(every),
    )


def _strength(first: str, second: str) -> Measure:
    return lambda cell: strength_difference(cell, first, second)


def _strength_within(first: str, second: str, cap: float) -> Measure:
    return lambda cell: strength_difference_within(cell, first, second, cap)


def _similarity(first: str, second: str) -> Measure:
    return lambda cell: similarity_difference(cell, first, second)


def _test(cells: Iterable[CellResults], measure: Measure) -> PairedTest:
    return PairedTest.of(by_text(cells, measure))


def _by_cell(cells: Iterable[CellResults], measure: Measure) -> Counter[bool | None]:
    """In how many cells the difference is positive, is not, and is undecided, each by itself."""
    return Counter(_test([cell], measure).positive for cell in cells)


def _in_cells(verdicts: Counter[bool | None]) -> str:
    return f"by cell {verdicts[True]} held, {verdicts[False]} not held, {verdicts[None]} undecided"


def _decide(claim: str, cells: Sequence[CellResults], measure: Measure, unit: str, paper: str) -> Claim:
    """A claim about one difference by text."""
    test = _test(cells, measure)
    if test.difference is None or test.p is None:
        return Claim(claim, None, "no text has both")
    size = f"{100 * test.difference:+.1f} points" if unit == "points" else f"{test.difference:+.3f}"
    numbers = f"{size} on {count(test.texts, 'text')}, {p_value(test.p)}; {_in_cells(_by_cell(cells, measure))}"
    return Claim(claim, test.positive, f"{numbers}{paper}")


def _published(ahead: int, cells: int) -> str:
    return f"; in {ahead} of the paper's {cells} cells"


def _stronger(cells: Sequence[CellResults], first: str, second: str) -> Claim:
    return _decide(
        f"{first} is stronger than {second}",
        cells,
        _strength(first, second),
        "points",
        _published(*published_count(first, second)),
    )


def _every_mode_is_stronger(cells: Sequence[CellResults]) -> Claim:
    """The paper's main claim; held if it is held for each mode."""
    parts = [_test(cells, _strength(mode, BASELINE)) for mode in MODES]
    verdicts = Counter(
        by_test(compared.difference["value"], compared.p)
        for cell, mode in product(cells, MODES)
        for compared in [compare_attacks(cell.results, mode, BASELINE)]
    )
    ahead = sum(published_count(mode, BASELINE)[0] for mode in MODES)
    numbers = (
        f"of {count(sum(verdicts.values()), 'comparison')} (cell and mode) {verdicts[True]} held, {verdicts[False]} "
        f"not held, {verdicts[None]} undecided; in {ahead} of the paper's {len(MODES) * PUBLISHED_CELLS}"
    )
    return Claim(
        "BAE is stronger than TextFooler, in each of its four modes", all_of(t.positive for t in parts), numbers
    )


def _strongest(cells: Sequence[CellResults]) -> Claim:
    others = [attack for attack in ATTACKS if attack != BOTH]
    tests = {other: _test(cells, _strength(BOTH, other)) for other in others}
    ahead = sum(
        all(cell[BOTH].accuracy < cell[other].accuracy for other in others)
        for data_sets in PUBLISHED.values()
        for cell in data_sets.values()
    )
    against = ", ".join(f"{other} {_points(test)}" for other, test in tests.items())
    paper = _published(ahead, PUBLISHED_CELLS)
    verdict = all_of(test.positive for test in tests.values())
    return Claim(f"{BOTH} is the strongest attack", verdict, f"against {against}{paper}")


def _points(test: PairedTest) -> str:
    if test.difference is None or test.p is None:
        return "n/a"
    return f"{100 * test.difference:+.1f} points ({p_value(test.p)})"


def _stronger_at_every_cap(cells: Sequence[CellResults]) -> Claim:
    """Figure 2: each mode fools more texts than TextFooler, whatever share of the words may change."""
    tests = {(mode, cap): _test(cells, _strength_within(mode, BASELINE, cap)) for mode, cap in product(MODES, CAPS)}
    verdicts = Counter(test.positive for test in tests.values())
    exceptions = [f"{mode} at {100 * cap:.0f} %" for (mode, cap), test in tests.items() if test.positive is False]
    numbers = (
        f"of {len(tests)} comparisons (mode and cap) {verdicts[True]} held, {verdicts[False]} not held, "
        f"{verdicts[None]} undecided" + (f"; not held: {', '.join(exceptions)}" if exceptions else "")
    )
    claim = f"each mode is stronger than {BASELINE} at every cap from {100 * CAPS[0]:.0f} to {100 * CAPS[-1]:.0f} %"
    return Claim(claim, all_of(test.positive for test in tests.values()), numbers)


def _more_similar(cells: Sequence[CellResults], first: str, second: str) -> Claim:
    return _decide(
        f"{first} has a higher mean similarity than {second} on the texts both fool",
        cells,
        _similarity(first, second),
        "",
        _published(*published_count(first, second, similarity=True)),
    )


def _most_similar(cells: Sequence[CellResults]) -> Claim:
    others = [mode for mode in MODES if mode != INSERT]
    tests = {other: _test(cells, _similarity(INSERT, other)) for other in others}
    ahead = sum(
        all(cell[INSERT].similarity > cell[other].similarity for other in others)
        for data_sets in PUBLISHED.values()
        for cell in data_sets.values()
    )
    against = ", ".join(
        f"{other} n/a"
        if test.difference is None or test.p is None
        else f"{other} {test.difference:+.3f} ({p_value(test.p)})"
        for other, test in tests.items()
    )
    paper = _published(ahead, PUBLISHED_CELLS)
    verdict = all_of(test.positive for test in tests.values())
    return Claim(f"{INSERT} has the highest mean similarity of the four modes", verdict, f"against {against}{paper}")


def _insertions_matter_more(cells: Sequence[CellResults]) -> Claim:
    def measure(cell: CellResults) -> Values:
        splits = split_texts(cell.results)
        attacked = attacked_by_all(cell.results, (REPLACE, INSERT, EITHER))
        return {text: float((text in splits["A"]) - (text in splits["B"])) for text in attacked}

    return _decide("split A is larger than split B (Table 5)", cells, measure, "points", "")


def _about_bert(cells: Sequence[CellResults]) -> list[Claim]:
    """What the paper says of BERT, where a model of the grid is or stands for it."""
    bert = [cell for cell in cells if cell.paper_model == "BERT"]
    if not bert:
        return []
    claims = [_bert_is_more_robust(bert, [cell for cell in cells if cell.paper_model in ("wordLSTM", "wordCNN")])]
    verdicts = Counter(
        by_test(compared.difference["value"], compared.p)
        for compared in (compare_attacks(cell.results, BASELINE, REPLACE) for cell in bert)
    )
    # One cell is enough for "sometimes", but of several that many are tried: Bonferroni.
    smallest = min(
        (c.p for cell in bert if (c := compare_attacks(cell.results, BASELINE, REPLACE)).only_first > c.only_second),
        default=1.0,
    )
    holds = True if smallest < LEVEL / len(bert) else False if verdicts[False] == len(bert) else None
    paper = [PUBLISHED["BERT"][data] for data in PUBLISHED["BERT"]]
    ahead = sum(cell[BASELINE].accuracy < cell[REPLACE].accuracy for cell in paper)
    claims.append(
        Claim(
            f"{BASELINE} is sometimes stronger than {REPLACE} on BERT",
            holds,
            f"{_in_cells(verdicts)}; in {ahead} of the paper's {len(paper)} data sets",
        )
    )
    return claims


def _bert_is_more_robust(bert: Sequence[CellResults], others: Sequence[CellResults]) -> Claim:
    """Fooled less often than the word models, on the texts of the same data that both get right."""
    differences: dict[tuple[str, str], list[float]] = {}
    for cell, other in product(bert, others):
        if cell.data != other.data:
            continue
        for attack in ATTACKS:
            for text, record in cell.results[attack].items():
                theirs = other.results[attack].get(text)
                if was_attacked(record) and theirs is not None and was_attacked(theirs):
                    difference = float(succeeded(theirs) - succeeded(record))
                    differences.setdefault((cell.data, text), []).append(difference)
    test = PairedTest.of([sum(values) / len(values) for values in differences.values()])
    claim = "BERT is more robust than the word models"
    if test.difference is None or test.p is None:
        return Claim(claim, None, "no text was attacked on both")
    numbers = (
        f"fooled less often by {100 * test.difference:+.1f} points over all attacks on {count(test.texts, 'text')}"
    )
    return Claim(claim, test.positive, f"{numbers}, {p_value(test.p)}")


def _about_subj(cells: Sequence[CellResults]) -> list[Claim]:
    """Table 5: split C is largest on Subj, where the grid has it and another data set."""
    shares = {data: _needs_both(cells, data) for data in dict.fromkeys(cell.data for cell in cells)}
    subj = next((cell.data for cell in cells if cell.paper_data == "subj"), None)
    if subj is None or len(shares) < 2:
        return []
    intervals = {data: _difference(shares[subj], values) for data, values in shares.items() if data != subj}
    listed = ", ".join(
        f"{data} n/a" if interval["value"] is None else f"{data} {100 * interval['value']:+.1f} points"
        for data, interval in intervals.items()
    )
    verdict = all_of(by_interval(interval) for interval in intervals.values())
    return [Claim("split C is largest on subj (Table 5)", verdict, f"against {listed}; 95 % bootstrap intervals")]


def _needs_both(cells: Sequence[CellResults], data: str) -> list[float]:
    def measure(cell: CellResults) -> Values:
        both = set(split_texts(cell.results)["C"])
        return {text: float(text in both) for text, record in cell.results[EITHER].items() if record.status != "error"}

    return by_text([cell for cell in cells if cell.data == data], measure)


def _difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """The difference of the means of two sets of texts with its 95 % bootstrap interval."""
    if len(first) < 2 or len(second) < 2:
        return {"value": None, "low": None, "high": None}
    rng = np.random.default_rng(0)
    means = [
        np.asarray(values)[rng.integers(len(values), size=(_RESAMPLES, len(values)))].mean(1)
        for values in (first, second)
    ]
    low, high = np.percentile(means[0] - means[1], [2.5, 97.5]).tolist()
    return {"value": float(np.mean(first) - np.mean(second)), "low": low, "high": high}
