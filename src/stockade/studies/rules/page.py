"""The page of the study of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from stockade.core.errors import InputError
from stockade.lexicon.rules import Rule, load_rules
from stockade.report.charts import Series, plot_curves, plot_rows
from stockade.report.document import Block, Cell, Details, Document, Heading, Note, Plot, Prose, Table, code
from stockade.report.examples import Example, Examples, record_example
from stockade.report.figures import AMBER, BLUE, GREEN, GREY, PALETTE, RED, draw_plot
from stockade.report.numbers import NOT_AVAILABLE, count, number, p_value, percent_cell, plain_percent, ranged_cell
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.frame import study_document
from stockade.studies.rules.analysis import FINAL, RulesNumbers, Success
from stockade.studies.rules.claims import compared
from stockade.studies.rules.outcomes import ALL, HELD_OUT
from stockade.studies.rules.published import BY_BUDGET, BY_SIZE, CHANGED, CORPORA, FAMILIES, SUCCESS
from stockade.studies.rules.study import RulesResult
from stockade.workflows.mine.page import rule_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN, _UNIVERSAL = 10, 6
_NAMES = {"random": "random synonyms", "pmi": "PMI", "pmi-smoothed": "smoothed PMI"}
_COLOURS = (BLUE, RED, AMBER, GREY, GREEN)
_FAMILIES = (
    "Succ %: texts that the model gets right and that fool it, mean over the models of a family, with 95 % intervals "
    "by text. Word %: changed words of those texts. Held-out: models that no rules were mined with. Judged after each "
    "replacement, as the paper must have done; in the rows “last text” only the text with all replacements counts, "
    "which is what an attacker gets who cannot ask the model."
)
_COMPARED = (
    "The same texts and models. Only: pairs of a text and a model that only one of the two fools. p: exact, two-sided, "
    "by text (sign flips of each text's balance over the models; with one model McNemar's test), because models share "
    "texts and are no independent trials."
)
_CLAIMS = (
    "A claim that one is more than another is held or not held with p < 0.05, by text; otherwise it is undecided. "
    "Families of models are compared on the same texts."
)
_BUDGETS = (
    "Success over all models if at most this share of the words may change, rounded down to whole words. The order of "
    "replacements does not depend on the budget, so one attack gives all rows."
)


def rules_document(result: RulesResult) -> Document:
    """The whole page."""
    return study_document(result, about=_about(result), findings=findings(result), blocks=_blocks(result))


def _about(result: RulesResult) -> Prose:
    summary = result.summary
    mined: Prose = f", mined with {', '.join(summary['mined_with'])}" if summary["mined_with"] else ""
    trained = (" from ", code(summary["train_data"])) if summary["train_data"] else ()
    return (
        "Word replacement rules (section 4.2 of the transfer paper)",
        mined,
        *trained,
        ", applied to ",
        code(summary["data"]),
        f", {count(summary['texts'], 'text')}, {count(len(result.numbers.targets), 'model')}, at most "
        f"{plain_percent(summary['max_changed'], 0)} of the words changed, seed {summary['seed']}.",
    )


def findings(result: RulesResult) -> list[str]:
    """The study in a few sentences; every one follows from the tables."""
    numbers = result.numbers
    if not numbers.targets:
        return ["No model could be attacked."]
    family = numbers.families[numbers.main]
    sentences = [_strength(numbers, family[ALL], "all models")]
    if HELD_OUT in family:
        sentences.append(_strength(numbers, family[HELD_OUT], "models that no rules were mined with"))
        for baseline in ("pmi", "random"):
            comparison = compared(numbers, numbers.main, baseline, HELD_OUT)
            if comparison is not None and comparison.p is not None:
                first, second = comparison.success
                sentences.append(
                    f"On those, {_NAMES[baseline]} reaches {plain_percent(second)} against {plain_percent(first)} "
                    f"({p_value(comparison.p)})."
                )
    if numbers.universal:
        sentences.append(f"{count(len(numbers.universal), 'text')} fool every model with the same replacements.")
    sentences.append(claims_in_short(result.claims))
    return sentences


def _strength(numbers: RulesNumbers, success: Success, of: str) -> str:
    return (
        f"{_name(numbers.main)} fools {of} on {percent_cell(success.success).text} of the texts "
        f"({count(success.targets, 'model')}), with {number(success.changed, 1, ' %')} of the words changed."
    )


def _blocks(result: RulesResult) -> Iterator[Block]:
    numbers = result.numbers
    if not numbers.targets:
        return
    yield Heading("By what the models read", aside="Table 5")
    yield _family_table(numbers)
    yield Details("The paper's Table 5", (_published_families(),), unfolded=True)
    yield Heading("Mined rules against the others")
    yield _comparison_table(numbers)
    yield Heading("What the paper claims, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)
    if len(numbers.sizes) > 1:
        yield Heading("How many models to mine with", aside="Table 9")
        yield Plot(lambda: size_plot(numbers), name="sizes")
        yield _size_table(numbers, result.spec.mined_with)
        yield Details("The paper's Table 9", (_published_sizes(),))
    yield Heading("How many words may change", aside="Table 10")
    yield Plot(lambda: budget_plot(numbers), name="budgets")
    yield _budget_table(numbers)
    yield Heading("Each model")
    yield Plot(lambda: target_plot(numbers), name="targets")
    yield Details("Numbers of each model", (_target_table(numbers),))
    yield from _texts(result)
    yield from _rules(result)


def _name(key: str) -> str:
    plain = key.removesuffix(FINAL)
    size = plain.removeprefix("uawr-")
    name = f"UAWR, {count(int(size), 'model')}" if size != plain and size.isdecimal() else _NAMES.get(plain, plain)
    return f"{name}, last text" if key.endswith(FINAL) else name


def _shown_sets(numbers: RulesNumbers) -> list[str]:
    """The main rule set and the baselines, by both judges."""
    baselines = [key for key in numbers.families if key.removesuffix(FINAL) not in _of_sizes(numbers)]
    return [key for key in numbers.families if key.removesuffix(FINAL) == numbers.main or key in baselines]


def _of_sizes(numbers: RulesNumbers) -> set[str]:
    return {f"uawr-{size}" for size in numbers.sizes}


def _family_table(numbers: RulesNumbers) -> Table:
    groups = list(numbers.families[numbers.main])
    rows = [
        (_name(key), *(cell for group in groups for cell in _success_cells(numbers.families[key][group])))
        for key in _shown_sets(numbers)
    ]
    columns = ("rules", *(f"{group} {what} %" for group in groups for what in ("Succ", "Word")))
    return Table(columns, rows, caption=_FAMILIES)


def _success_cells(success: Success) -> tuple[Cell, str]:
    interval = percent_cell(success.success)
    return Cell(interval.text.removesuffix(" %"), interval.detail), number(success.changed, 1)


def _published_families() -> Table:
    rows = [
        (
            f"{_NAMES.get(method, method.upper())}, {corpus}",
            *(
                f"{value:.1f}"
                for pair in zip(SUCCESS[corpus][method], CHANGED[corpus][method], strict=True)
                for value in pair
            ),
        )
        for corpus in CORPORA
        for method in ("pmi", "uawr")
    ]
    columns = ("rules", *(f"{family} {what} %" for family in FAMILIES for what in ("Succ", "Word")))
    caption = (
        "63 models; rules mined with six. For reference, PWWS with queries fools 66.6 % (AG-News) and 90.8 % (MR)."
    )
    return Table(columns, rows, caption=caption)


def _comparison_table(numbers: RulesNumbers) -> Table:
    rows = [
        (
            entry.among,
            _name(entry.first),
            _name(entry.second),
            f"{entry.targets:,}",
            plain_percent(entry.success[0]),
            plain_percent(entry.success[1]),
            ranged_cell(_in_percent(entry.difference), 1),
            f"{entry.only[0]:,} : {entry.only[1]:,}",
            NOT_AVAILABLE if entry.p is None else p_value(entry.p).removeprefix("p "),
        )
        for entry in numbers.comparisons
    ]
    columns = ("models", "rules", "against", "n", "first", "second", "difference", "only", "p")
    return Table(columns, rows, caption=_COMPARED, numeric=range(3, 9), grouped=1)


def _in_percent(interval: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if end is None else 100 * end for name, end in interval.items()}


def _size_table(numbers: RulesNumbers, mined_with: Sequence[str]) -> Table:
    groups = list(numbers.families[numbers.main])
    rows: list[tuple[str | Cell, ...]] = [
        (
            Cell(
                str(size), f"+ {mined_with[size - 1]}" if size > min(numbers.sizes) else " + ".join(mined_with[:size])
            ),
            *(cell for group in groups for cell in _success_cells(families[group])),
        )
        for size, families in numbers.sizes.items()
    ]
    columns = ("models", *(f"{group} {what} %" for group in groups for what in ("Succ", "Word")))
    caption = (
        "Rules mined with the first models of the list. A model that is added is no longer asked as a stranger, so "
        "“All” rises with the size for that reason too; “Held-out” are the models that are in none of the ensembles."
    )
    return Table(columns, rows, caption=caption)


def _published_sizes() -> Table:
    rows = [
        (corpus, str(size), *(f"{value:.1f}" for value in values))
        for corpus in CORPORA
        for size, values in BY_SIZE[corpus].items()
    ]
    return Table(("data", "models", *(f"{family} Succ %" for family in FAMILIES)), rows, grouped=1)


def _budget_table(numbers: RulesNumbers) -> Table:
    keys = list(next(iter(numbers.budgets.values()), {}))
    rows: list[tuple[str | Cell, ...]] = []
    for budget, rates in numbers.budgets.items():
        published = [BY_BUDGET[corpus].get(float(budget)) for corpus in CORPORA]
        cells = [percent_cell(rates[key]) for key in keys]
        rows.append((plain_percent(float(budget), 0), *cells, *(number(value, 1, " %") for value in published)))
    columns = ("words", *map(_name, keys), *(f"paper, {corpus}" for corpus in CORPORA))
    return Table(columns, rows, caption=_BUDGETS)


def _target_table(numbers: RulesNumbers) -> Table:
    keys = _shown_sets(numbers)
    rows: list[tuple[str | Cell, ...]] = [
        (
            Cell(name, "held-out" if target.held_out else "mined with"),
            target.family,
            f"{target.attacked:,}",
            *(plain_percent(target.success[key]) for key in keys),
        )
        for name, target in numbers.targets.items()
    ]
    return Table(("model", "reads", "texts", *map(_name, keys)), rows, numeric=range(2, 3 + len(keys)))


def _texts(result: RulesResult) -> Iterator[Block]:
    """Texts that fool every model: the paper's Table 1."""
    numbers = result.numbers
    yield Heading("Texts that fool every model", aside="Table 1")
    if not numbers.universal:
        yield Note("There is none that every model gets right before and wrong after all replacements.", kind="aside")
        return
    run = next(iter(result.runs.values()))
    wanted = set(numbers.universal)
    records = (record for record in run.records(numbers.main + FINAL, "success") if record.id in wanted)
    items: list[Example] = [record_example(record) for record in islice(records, _UNIVERSAL)]
    yield Examples(
        items=items,
        preview=3,
        more=f"{count(len(numbers.universal), 'text')} of {len(result.outcomes.ids):,}; what is shown is what "
        f"{next(iter(result.runs))} says.",
    )


def _rules(result: RulesResult) -> Iterator[Block]:
    """The strongest rules of the main rule set, if its file is still there."""
    entry = next(entry for entry in result.sets if entry.key == result.main)
    try:
        rules = load_rules(entry.file or "").rules
    except InputError:  # the page of a study must not depend on a file that somebody moved
        return
    first: dict[tuple[str, str], Rule] = {}
    for rule in rules:
        first.setdefault((rule.label, rule.word), rule)
    labels = dict.fromkeys(rule.label for rule in rules)
    strongest = [
        rule for label in labels for rule in islice((rule for rule in first.values() if rule.label == label), _SHOWN)
    ]
    yield Heading("The strongest rules")
    yield rule_table(strongest, caption=f"Of {count(len(rules), 'rule')}; of each word the strongest.")
    if result.spec.train_data is not None:
        command = f"stockade rules explain {entry.file} {result.summary['train_data']}"
        yield Note(("What the data have to do with them: ", code(command)), kind="aside")


def size_plot(numbers: RulesNumbers) -> str:
    """Table 9: success against the number of models, for each family."""
    groups = list(numbers.families[numbers.main])
    sizes = list(numbers.sizes)
    series = [
        Series(group, [numbers.sizes[size][group].success for size in sizes], PALETTE[place % len(PALETTE)], sizes)
        for place, group in enumerate(groups)
    ]

    def draw(axes: Axes) -> None:
        plot_curves(axes, series, xlabel="models that the rules were mined with", ylabel="success, %", spread="bars")
        axes.set_xticks(sizes)

    return draw_plot("rule-sizes", (8.2, 3.6), draw)


def budget_plot(numbers: RulesNumbers) -> str:
    """Table 10: success against the share of words that may change, for each rule set."""
    budgets = list(numbers.budgets)
    keys = list(next(iter(numbers.budgets.values()), {}))
    series = [
        Series(
            _name(key),
            [numbers.budgets[budget][key] for budget in budgets],
            _COLOURS[place % len(_COLOURS)],
            [100 * float(budget) for budget in budgets],
        )
        for place, key in enumerate(keys)
    ]

    def draw(axes: Axes) -> None:
        plot_curves(
            axes, series, xlabel="largest share of words that may change, %", ylabel="success, %", spread="band"
        )

    return draw_plot("rule-budgets", (8.2, 3.6), draw)


def target_plot(numbers: RulesNumbers) -> str:
    """Success on each model, the main rule set beside its baselines."""
    names = sorted(numbers.targets, key=lambda name: (numbers.targets[name].family, name))
    keys = [key for key in _shown_sets(numbers) if not key.endswith(FINAL)]
    series = [
        Series(_name(key), [numbers.targets[name].success[key] for name in names], _COLOURS[place % len(_COLOURS)])
        for place, key in enumerate(keys)
    ]
    labels = [name if numbers.targets[name].held_out else f"{name} (mined with)" for name in names]
    size = (8.2, 0.9 + 0.34 * len(names))
    return draw_plot("rule-targets", size, lambda axes: plot_rows(axes, labels, series, xlabel="success, %"))
