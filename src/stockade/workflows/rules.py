"""Replacement rules on data: what they make of its texts, and whether a model withstands them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stockade.attacks.rules import BUDGET, check_present, match_labels
from stockade.core.errors import OptionError
from stockade.core.statistics import wilson
from stockade.core.text import Edit, Text
from stockade.datasets.examples import ExampleSet, by_own_classes
from stockade.experiment.inputs import DataOptions
from stockade.lexicon.rules import Rule, RuleSet, apply_to_text, check_budget, load_rules

if TYPE_CHECKING:
    from stockade.report.document import Document
    from stockade.workflows.attack.result import AttackResult

Verdict = Literal["pass", "fail", "cannot tell"]
_HOW_TO_READ = (
    "Right: texts that the model gets right. Success rate: the share of those that rules change and that then fool it, "
    "with its 95 % Wilson interval."
)
_CHANGED_NOTHING = 0
"""The queries of a text that no rule changes: the attack asks after a replacement, never before."""


@dataclass(frozen=True, slots=True)
class AppliedText:
    """A text of the data and what the rules make of it.

    Parameters
    ----------
    id, label
        The row's id and its class, as the data call it.
    text
        The text with the rules of its class applied; it knows its original.
    """

    id: str
    label: str
    text: Text

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The words that were replaced, in the order of the text."""
        return self.text.edits

    def row(self) -> dict[str, Any]:
        """The text as a row of a table that can be read as data again."""
        premise = self.text.premise
        written = {"text": str(self.text)} if premise is None else {"premise": premise, "hypothesis": str(self.text)}
        changed = "; ".join(f"{edit.before} -> {edit.after}" for edit in self.edits)
        return {"id": self.id, **written, "label": self.label, "original": str(self.text.original), "changed": changed}


@dataclass(frozen=True, slots=True)
class AppliedRules:
    """The texts of data with rules applied; iterate over it as often as you like, it reads the data anew each time.

    Parameters
    ----------
    rules
        The rules.
    examples
        The texts with the data's own classes.
    labels
        What the rules call each class, by its number; a class without rules is not in it.
    budget
        The largest share of the words that may change.
    """

    rules: RuleSet
    examples: ExampleSet
    labels: Mapping[int, str]
    budget: float

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[AppliedText]:
        for example in self.examples:
            label = self.labels.get(example.label)
            text = example.text
            changed = text if label is None else apply_to_text(text, label, self.rules, self.budget)
            yield AppliedText(example.id, self.examples.labels[example.label], changed)

    def unused_rules(self) -> list[Rule]:
        """The rules whose word is in no text of their class, in the order of the rules."""
        words: set[tuple[str | None, str]] = set()
        for example in self.examples:
            words.update((self.labels.get(example.label), word.lower()) for word in example.text.words)
        return [rule for rule in self.rules.rules if (rule.label, rule.word.lower()) not in words]


def apply_rules(
    rules: str | Path | RuleSet,
    data: object,
    *,
    budget: float = BUDGET,
    limit: int | None = None,
    seed: int = 0,
    data_options: DataOptions | None = None,
) -> AppliedRules:
    """Apply word replacement rules to labelled texts, without any model.

    To see which of the texts fool a model, attack it: `st.attack(model, data, "rules:file=rules.jsonl")`.

    Parameters
    ----------
    rules
        A file of rules, or the rules themselves.
    data
        Labelled texts as `st.attack` takes them. Their classes are matched to the labels of the rules by name.
    budget
        The largest share of the words that may change.
    limit, seed
        A seeded sample of this many rows; all by default.
    data_options
        How the data are read; `label_map` says what the rules call a label of the data.
    """
    check_budget(budget)
    name, ruleset = ("The set of rules", rules) if isinstance(rules, RuleSet) else (str(rules), load_rules(rules))
    options = data_options or DataOptions()
    examples = by_own_classes(options.load(data), limit=limit, seed=seed, label_map=options.label_map, fewest_classes=1)
    present = [label for label, count in examples.label_counts.items() if count]
    labels = match_labels(ruleset.labels, examples.labels, name, "the data", all_labels=False)
    check_present(labels, ruleset, examples.labels, present)
    return AppliedRules(ruleset, examples, labels, budget)


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """What the rules did to the texts of one class.

    Parameters
    ----------
    label
        The class.
    right
        Texts that the model gets right.
    changed
        Those of them that a rule changes.
    fooled
        Those of them that fool the model.
    """

    label: str
    right: int
    changed: int
    fooled: int


@dataclass(frozen=True, slots=True)
class RuleTest:
    """Whether a model withstands rules, by the share of the changed texts that fool it.

    The model passes if the upper end of the share's 95 % interval is at most `max_success`, and fails if the lower end
    is above it. In between, or with fewer than `min_texts` changed texts, the test cannot tell.

    Parameters
    ----------
    counts
        What was counted, by class.
    max_success
        The largest share of changed texts that may fool the model.
    min_texts
        The fewest changed texts that say anything.
    errors
        Texts that ended in an error and count nowhere.
    """

    counts: tuple[ClassCounts, ...]
    max_success: float
    min_texts: int
    errors: int = 0

    @property
    def changed(self) -> int:
        """Texts that the model gets right and that a rule changes."""
        return sum(count.changed for count in self.counts)

    @property
    def fooled(self) -> int:
        """Those of them that fool the model."""
        return sum(count.fooled for count in self.counts)

    @property
    def verdict(self) -> Verdict:
        """pass, fail, or cannot tell."""
        if self.changed < self.min_texts:
            return "cannot tell"
        share = wilson(self.fooled, self.changed)
        assert share["low"] is not None
        assert share["high"] is not None
        if share["high"] <= self.max_success:
            return "pass"
        return "fail" if share["low"] > self.max_success else "cannot tell"

    def sentence(self) -> str:
        """The verdict with its reason."""
        allowed = f"{100 * self.max_success:g} % allowed"
        if self.changed < self.min_texts:
            return (
                f"Cannot tell: the rules change only {self.changed:,} texts that the model gets right, expected at "
                f"least {self.min_texts:,}. Give more data, or rules that fit it."
            )
        share = wilson(self.fooled, self.changed)
        measured = (
            f"{self.fooled:,} of {self.changed:,} changed texts fool the model ({100 * (share['value'] or 0):.1f} %, "
            f"95 % interval {100 * (share['low'] or 0):.1f}–{100 * (share['high'] or 0):.1f} %)"
        )
        if self.verdict == "cannot tell":
            return f"Cannot tell: {measured}, and the interval has the {allowed} in it. Give more data."
        return f"{self.verdict.capitalize()}: {measured}, {allowed}."

    def document(self) -> Document:
        """The verdict and the counts as a page."""
        from stockade.report.document import Document, Note, Table
        from stockade.report.numbers import percent

        total = ClassCounts("all", sum(count.right for count in self.counts), self.changed, self.fooled)
        rows = [
            (
                count.label,
                f"{count.right:,}",
                f"{count.changed:,}",
                f"{count.fooled:,}",
                percent(wilson(count.fooled, count.changed)),
            )
            for count in (*self.counts, total)
        ]
        columns = ("class", "right", "changed by rules", "fooled", "success rate")
        notes = [Note(self.sentence(), kind="finding")]
        if self.errors:
            notes.append(Note(f"{self.errors:,} texts ended in an error and count nowhere.", kind="warning"))
        table = Table(columns, tuple(rows), numeric=range(1, len(columns)), caption=_HOW_TO_READ)
        return Document(title="Rules test", blocks=(*notes, table))


def check_limits(max_success: float, min_texts: int) -> None:
    """Refuse limits that no test could use.

    Parameters
    ----------
    max_success, min_texts
        As for `judge_rules`.
    """
    if not 0 < max_success < 1:
        raise OptionError(f"--max-success is {max_success:g}, expected a share of texts above 0, below 1, such as 0.2.")
    if min_texts < 1:
        raise OptionError(f"--min-texts is {min_texts}, expected at least 1.")


def judge_rules(result: AttackResult, max_success: float, min_texts: int) -> RuleTest:
    """Whether the model of an attack with rules withstands them.

    Parameters
    ----------
    result
        The result of the attack `rules`.
    max_success
        The largest share of changed texts that may fool the model.
    min_texts
        The fewest changed texts that say anything.
    """
    check_limits(max_success, min_texts)
    right: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    fooled: Counter[str] = Counter()
    errors = 0
    for record in result.records():
        errors += record.status == "error"
        if record.status in ("success", "failed"):
            right[record.label] += 1
            changed[record.label] += record.queries > _CHANGED_NOTHING
            fooled[record.label] += record.status == "success"
    counts = tuple(ClassCounts(label, right[label], changed[label], fooled[label]) for label in sorted(right))
    return RuleTest(counts, max_success, min_texts, errors)
