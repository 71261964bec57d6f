"""What data say about the words of rules: how strongly each word goes with a class, and the texts behind that.

A rule that fools models trained on the data often replaces a word that the data tie to a class by one that they tie to
another, or hardly have. That is a bias of the data set as much as a weakness of the models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.attacks.rules import check_present, match_labels
from stockade.core.errors import OptionError
from stockade.core.text import Text
from stockade.datasets.examples import ExampleSet, by_own_classes
from stockade.experiment.inputs import DataOptions, reference_of
from stockade.lexicon.association import WordCounts, count_words
from stockade.lexicon.rules import Rule, RuleSet, load_rules
from stockade.workflows.mine.result import RULES_FILE
from stockade.workflows.mine.word_use import WordUse, use_of

if TYPE_CHECKING:
    from stockade.report.document import Document

TOP = 20
_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRule:
    """A rule and what the data say about its two words.

    Parameters
    ----------
    rule
        The rule.
    label
        Its class, as the data call it.
    before, after
        The word that is replaced, and its replacement.
    """

    rule: Rule
    label: str
    before: WordUse
    after: WordUse

    @property
    def is_used(self) -> bool:
        """Whether a text of the class has the word."""
        return self.before.texts[self.label] > 0


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text that has a word of a rule: its id, its class, the text, and the index of the word."""

    id: str
    label: str
    text: Text
    index: int


@dataclass(frozen=True, eq=False)
class RulesExplanation:
    """Rules held against data; `document()` is the report.

    Parameters
    ----------
    rules
        The rules for classes that the data have, as they come in the file.
    name, data
        What the report calls the rules and the data.
    labels
        The classes of the data.
    texts
        How many texts each class has.
    foreign
        How many rules are for classes that the data do not have.
    provenance
        What the file says of where the rules come from.
    sentences
        For the strongest rules, by their key: texts of the class that have the word.
    counterparts
        For the same rules: texts of other classes that have the replacement.
    top
        How many words of each class are shown with their texts.
    """

    rules: tuple[ExplainedRule, ...]
    name: str
    data: str
    labels: tuple[str, ...]
    texts: Mapping[str, int]
    foreign: int
    provenance: Mapping[str, Any]
    sentences: Mapping[tuple[str, str, str], tuple[Sentence, ...]]
    counterparts: Mapping[tuple[str, str, str], tuple[Sentence, ...]]
    top: int = TOP

    @cached_property
    def unused(self) -> tuple[ExplainedRule, ...]:
        """The rules whose word is in no text of their class."""
        return tuple(rule for rule in self.rules if not rule.is_used)

    @cached_property
    def strongest(self) -> tuple[ExplainedRule, ...]:
        """Of each class the words with the strongest rules, each with that rule."""
        return tuple(rule for rule in self.rules if rule.rule.key in self.sentences)

    @cached_property
    def tied_words(self) -> tuple[ExplainedRule, ...]:
        """The words of rules that the data clearly tie to the rule's class, each with its strongest rule, by class and
        from the surest tie down.
        """
        first: dict[tuple[str, str], ExplainedRule] = {}
        for rule in sorted(self.rules, key=lambda rule: -rule.rule.salience):
            first.setdefault((rule.label, rule.before.word), rule)
        tied = [rule for rule in first.values() if rule.rule.salience > 0 and rule.before.log_odds.low > 0]
        return tuple(sorted(tied, key=lambda rule: (self.labels.index(rule.label), -rule.before.log_odds.low)))

    @property
    def words(self) -> int:
        """How many different words the rules replace, by class."""
        return len({(rule.label, rule.before.word) for rule in self.rules})

    def described(self) -> dict[str, Any]:
        """Everything as plain values, as the report's JSON has it."""
        return {
            "rules": self.name,
            "data": self.data,
            "texts": dict(self.texts),
            "provenance": dict(self.provenance),
            "words": self.words,
            "tied_words": [_row(rule) for rule in self.tied_words],
            "unused": [rule.rule.key for rule in self.unused],
            "foreign": self.foreign,
            "explained": [
                {
                    **_row(rule),
                    "sentences": [_sentence(item) for item in self.sentences.get(rule.rule.key, ())],
                    "counterparts": [_sentence(item) for item in self.counterparts.get(rule.rule.key, ())],
                }
                for rule in self.rules
            ],
        }

    def document(self) -> Document:
        """The report: words that the data tie to a class, PMI before and after each replacement, the texts."""
        from stockade.workflows.mine.explain_page import explain_document

        return explain_document(self)

    def _repr_html_(self) -> str:
        return self.document().to_html_fragment()


def explain_rules(
    rules: str | Path | RuleSet,
    data: object,
    *,
    top: int = TOP,
    limit: int | None = None,
    seed: int = 0,
    data_options: DataOptions | None = None,
) -> RulesExplanation:
    """Say what labelled texts have to do with rules: word counts, PMI before and after, and the texts themselves.

    Parameters
    ----------
    rules
        A file of rules, the folder of a mining job, or the rules themselves.
    data
        Labelled texts as `st.attack` takes them: best those that the rules were mined from. Classes are matched to the
        labels of the rules by name.
    top
        How many words of each class are shown with their texts.
    limit, seed
        A seeded sample of this many rows; all by default.
    data_options
        How the data are read; `label_map` says what the rules call a label of the data. By default what it was called
        when the rules were mined, if their file says so.
    """
    if top < 1:
        raise OptionError(f"--top is {top}, expected a whole number from 1 up.")
    name, ruleset = _loaded(rules)
    options = data_options or DataOptions()
    label_map = options.label_map or _recorded_labels(ruleset)
    examples = by_own_classes(options.load(data), limit=limit, seed=seed, label_map=label_map)
    classes = match_labels(ruleset.labels, examples.labels, name, "the data", all_labels=False)
    check_present(classes, ruleset, examples.labels, [label for label, count in examples.label_counts.items() if count])
    label_of = {written: examples.labels[number] for number, written in classes.items()}
    known = [rule for rule in ruleset.rules if rule.label in label_of]
    gathering = _Gathering(_strongest(known, top), label_of)
    counts = count_words(gathering.read(examples))
    return RulesExplanation(
        rules=tuple(_explained(rule, label_of[rule.label], counts) for rule in known),
        name=name,
        data=reference_of(data),
        labels=tuple(label for label in examples.labels if label in counts.texts),
        texts=dict(counts.texts),
        foreign=len(ruleset) - len(known),
        provenance=ruleset.provenance,
        sentences={key: tuple(texts) for key, texts in gathering.sentences.items()},
        counterparts={key: tuple(texts) for key, texts in gathering.counterparts.items()},
        top=top,
    )


class _Gathering:
    """Notes a few texts for each of some rules while all texts go by."""

    def __init__(self, rules: Sequence[Rule], label_of: Mapping[str, str]) -> None:
        self.sentences: dict[tuple[str, str, str], list[Sentence]] = {rule.key: [] for rule in rules}
        self.counterparts: dict[tuple[str, str, str], list[Sentence]] = {rule.key: [] for rule in rules}
        self._by_word: dict[str, list[tuple[str, list[Sentence], bool]]] = {}
        for rule in rules:
            label = label_of[rule.label]
            self._note(rule.word, label, self.sentences[rule.key], True)
            self._note(rule.replacement, label, self.counterparts[rule.key], False)

    def _note(self, word: str, label: str, texts: list[Sentence], of_class: bool) -> None:
        self._by_word.setdefault(word.lower(), []).append((label, texts, of_class))

    def read(self, examples: ExampleSet) -> Iterator[tuple[str, Text]]:
        """The texts with their classes, as `count_words` takes them."""
        for example in examples:
            label, seen = examples.labels[example.label], set()
            for index, word in enumerate(example.text.words):
                lowered = word.lower()
                if lowered in seen or lowered not in self._by_word:
                    continue
                seen.add(lowered)
                for wanted, texts, of_class in self._by_word[lowered]:
                    if (label == wanted) == of_class and len(texts) < (_SENTENCES if of_class else 1):
                        texts.append(Sentence(example.id, label, example.text, index))
            yield label, example.text


def _strongest(rules: Iterable[Rule], top: int) -> list[Rule]:
    """The strongest rule of each word, for the words of each class with the strongest rules."""
    first: dict[tuple[str, str], Rule] = {}
    for rule in sorted(rules, key=lambda rule: (-rule.salience, rule.word, rule.replacement)):
        if rule.salience > 0:
            first.setdefault((rule.label, rule.word.lower()), rule)
    labels = dict.fromkeys(rule.label for rule in first.values())
    return [rule for label in labels for rule in islice((rule for rule in first.values() if rule.label == label), top)]


def _explained(rule: Rule, label: str, counts: WordCounts) -> ExplainedRule:
    before, after = (use_of(word, label, counts) for word in (rule.word, rule.replacement))
    return ExplainedRule(rule=rule, label=label, before=before, after=after)


def _loaded(rules: str | Path | RuleSet) -> tuple[str, RuleSet]:
    if isinstance(rules, RuleSet):
        return "The set of rules", rules
    path = Path(rules)
    if path.is_dir() and (path / RULES_FILE).exists():
        path = path / RULES_FILE
    return str(path), load_rules(path)


def _recorded_labels(ruleset: RuleSet) -> Mapping[str, str]:
    """What the labels of the mined data are called in the rules: 0 may be "negative"."""
    recorded = ruleset.provenance.get("label_map")
    if not isinstance(recorded, Mapping):
        return {}
    return {label: name for label, name in recorded.items() if isinstance(name, str)}


def _row(rule: ExplainedRule) -> dict[str, Any]:
    return {
        "label": rule.label,
        "word": rule.rule.word,
        "replacement": rule.rule.replacement,
        "salience": rule.rule.salience,
        "count": rule.rule.count,
        "before": asdict(rule.before),
        "after": asdict(rule.after),
    }


def _sentence(sentence: Sentence) -> dict[str, Any]:
    return {"id": sentence.id, "label": sentence.label, "text": str(sentence.text), "word": sentence.index}
