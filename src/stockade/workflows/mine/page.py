"""The report of a mining job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from stockade.lexicon.rules import Rule
from stockade.report.document import Block, Details, Document, Heading, Note, Table, code
from stockade.report.numbers import count, number
from stockade.report.render_json import indented
from stockade.workflows.mine.result import MineResult
from stockade.workflows.mine.spec import Method

STRONGEST = 10
"""How many rules of each class are shown first."""
MOST_ROWS = 1_000
"""How many rules of each class the page has to search in; all are in the file."""
UNITS: dict[Method, str] = {
    "uawr": "Salience is the mean change of the models' mean logits that a replacement makes: away from the true "
    "class, and towards the others.",
    "pmi": "Salience is the change in pointwise mutual information (bits) with the class, and towards the others.",
    "pmi-smoothed": "Salience is the change in the smoothed log2 share of texts that have the word.",
}
_COUNTS = " Count: at how many places it was measured."


def mine_document(result: MineResult) -> Document:
    """Findings, the strongest rules of each class, a table of all to search in, manifest."""
    summary = result.summary
    rules = result.rules().rules
    models = ", ".join(result.members)
    with_models = (", with ", code(models)) if models else ()
    return Document(
        title=f"{count(len(rules), 'replacement rule')} found" if result.complete else "Replacement rules so far",
        about=(
            f"{result.name}, mined by {summary['method']} from ",
            code(summary["data"]),
            f", {count(summary['texts'], 'text')}",
            *with_models,
        ),
        blocks=tuple(_blocks(result, rules)),
        data=summary,
    )


def _blocks(result: MineResult, rules: Sequence[Rule]) -> Iterator[Block]:
    summary = result.summary
    if result.complete:
        yield Note(finding(result, rules), kind="finding")
    else:
        yield Note(("Not complete. Resume it with ", code(f"stockade resume {result.folder}")), kind="warning")
    yield from (Note(warning, kind="warning") for warning in summary["warnings"])
    if rules:
        yield Heading("The strongest rules")
        first_of_each_word = {(rule.label, rule.word): rule for rule in reversed(rules)}
        strongest = [rule for rule in rules if first_of_each_word[rule.label, rule.word] is rule]
        caption = f"Of each word the strongest rule. {UNITS[result.spec.method]}{_COUNTS}"
        yield rule_table(_strongest(strongest, STRONGEST), caption=caption)
        yield Note(
            (
                "See what the data say about these words with ",
                code(f"stockade rules explain {result.path} {summary['data']}"),
            ),
            kind="aside",
        )
        searchable = _strongest(rules, MOST_ROWS)
        more = f" The other {len(rules) - len(searchable):,} are in the file." if len(rules) > len(searchable) else ""
        # Folded, so that a command does not print them: it has shown the strongest.
        yield Heading("All rules")
        yield Details(
            f"{count(len(searchable), 'rule')} to search in",
            (rule_table(searchable, caption=f"Rules of positive salience.{more}", searchable=True, preview=STRONGEST),),
            unfolded=True,
        )
    yield Details("Manifest", indented(result.manifest.described()))


def finding(result: MineResult, rules: Sequence[Rule]) -> str:
    """What was mined, in a sentence or two."""
    summary = result.summary
    if not rules:
        return "No rule has a positive salience: no replacement moves the models away from a class."
    scored = sum(label["scored"] for label in summary["rules"].values())
    first = max(rules, key=lambda rule: rule.salience)
    places = f", measured at {summary['scored']:,} places" if summary["scored"] else ""
    of_all = f" of {scored:,}" if scored != len(rules) else ""
    return (
        f"{len(rules):,}{of_all} rules have a positive salience{places}. The strongest replaces “{first.word}” by "
        f"“{first.replacement}” in texts of the class {first.label} ({number(first.salience, 2)})."
    )


def rule_table(
    rules: Sequence[Rule], *, caption: str = "", searchable: bool = False, preview: int | None = None
) -> Table:
    """Rules with their salience and count.

    Parameters
    ----------
    rules
        The rules in the order of the rows.
    caption
        Stands below the table.
    searchable, preview
        As for `Table`.
    """
    rows = [
        (
            rule.label,
            rule.word,
            rule.replacement,
            number(rule.salience, 3),
            "" if rule.count is None else str(rule.count),
        )
        for rule in rules
    ]
    return Table(
        ("class", "word", "replacement", "salience", "count"),
        rows,
        caption=caption,
        numeric=(3, 4),
        grouped=0 if searchable else 1,
        searchable=searchable,
        preview=preview,
    )


def _strongest(rules: Sequence[Rule], most: int) -> list[Rule]:
    """The first rules of each class; rules come by class, the highest salience first."""
    labels = dict.fromkeys(rule.label for rule in rules)
    return [rule for label in labels for rule in islice((rule for rule in rules if rule.label == label), most)]
