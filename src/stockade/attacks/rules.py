"""Word replacement rules as an attack (Generating universal language adversarial examples by understanding and
enhancing the transferability across neural models, ICLR 2021 submission, section 4.2).

The rules of the text's class are applied in the order of their salience, at most floor(budget * n) of n words. Which
words change never depends on the model. When the model is judged does:

    any-prefix   after each replacement; the first text that fools it is the result
    final        once, when all replacements are made

The paper does not say which it used. Its mean share of changed words differs between models and is far below the
budget, which only a stop at the first success can give, so `any-prefix` is the default. It asks the model up to
floor(budget * n) times; `final` needs no access to the model at all.

Rules come from a file (`lexicon/rules.py`), whose labels are matched to the model's classes as labels of data are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal

from stockade.attacks.word_attack import NOT_EVEN_ONE, WordAttack, changes_allowed
from stockade.core.errors import DataError, OptionError
from stockade.core.example import Example
from stockade.core.files import FileState, file_state
from stockade.core.records import Outcome
from stockade.core.registry import published
from stockade.engine.requests import ClassNames, Score
from stockade.lexicon.rules import RuleSet, check_budget, load_rules, plan_replacements, rules_hash, words_allowed

Judge = Literal["any-prefix", "final"]
BUDGET = 0.3


@published("rules", paper="ICLR 2021 submission", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(WordAttack):
    """Applies word replacement rules from a file.

    Parameters
    ----------
    file : str
        The rules, as `stockade rules mine` writes them; an attack without a file cannot be run.
    budget : float
        The largest share of the words that may change, rounded down to a number of words.
    judge : {"any-prefix", "final"}
        Ask the model after each replacement, or once about the final text.
    max_changed, constraint, repair_articles
        As for every `WordAttack`; of `budget` and `max_changed` the smaller counts.
    """

    file: str = ""
    budget: float = BUDGET
    judge: Judge = "any-prefix"

    def __post_init__(self) -> None:
        check_budget(self.budget)

    def resources(self) -> Mapping[str, str]:
        """The fingerprint of the file."""
        return {"rules": rules_hash(self._path)}

    def check_classes(self, classes: Sequence[str], present: Collection[str]) -> None:
        """Refuse rules for classes that the model does not have, and data without any class that there are rules for.

        Parameters
        ----------
        classes
            The model's classes.
        present
            Those that the data have.
        """
        check_present(rule_labels(self._path, classes), load_rules(self._path), classes, present)

    async def search(self, example: Example, rng: Random) -> Outcome:
        classes = await ClassNames()
        label = rule_labels(self._path, classes).get(example.label)
        if label is None:
            return Outcome.failed(f"there is no rule for the class {classes[example.label]}")
        plan = plan_replacements(example.text.words, label, load_rules(self._path), 1.0, indices=example.indices)
        return await replace_in_order(self, example, plan, self.budget, self.judge)

    @property
    def _path(self) -> str:
        if not self.file:
            raise OptionError("The attack rules needs a file of rules: write it, as in rules:file=rules.jsonl.")
        return self.file


async def replace_in_order(
    attack: WordAttack, example: Example, plan: Iterable[tuple[int, str]], budget: float, judge: Judge
) -> Outcome:
    """Make replacements one after the other within a budget and judge the result.

    Parameters
    ----------
    attack
        Whose constraint the replacements must hold; one that does not is left out.
    example
        The text under attack.
    plan
        The index of each word and what replaces it, each index at most once.
    budget
        The largest share of the words that may change.
    judge
        When the model is asked.
    """
    text = example.text
    allowed = min(words_allowed(len(text), budget), changes_allowed(example, attack.max_changed))
    if not allowed:
        return Outcome.failed(NOT_EVEN_ONE)
    for index, word in plan:
        if len(text.edits) >= allowed:
            break
        kept = await attack.allowed([text.replace(index, word)], text, index)
        if not kept or len(kept[0].edits) > allowed:  # an article that was put right counts too
            continue
        text = kept[0]
        if judge == "any-prefix" and example.fooled((await Score([text]))[0]):
            return Outcome.found(text)
    if not text.edits:
        return Outcome.failed("no word can be replaced")
    if judge == "final" and example.fooled((await Score([text]))[0]):
        return Outcome.found(text)
    return Outcome.failed(f"not fooled by {len(text.edits)} replaced words", text)


def rule_labels(path: str, classes: Sequence[str], owner: str = "the model") -> Mapping[int, str]:
    """What a file of rules calls each class that it has rules for, by the number of the class.

    Labels are matched to classes by name as those of data are. A label that is none of the classes is an error, because
    a misspelled one would silently switch its rules off.

    Parameters
    ----------
    path
        The file of rules.
    classes
        The names of the classes, in order.
    owner
        Whose classes these are, for errors.
    """
    return _rule_labels(path, file_state(path), tuple(classes), owner)


@lru_cache(maxsize=64)
def _rule_labels(path: str, _state: FileState | None, classes: tuple[str, ...], owner: str) -> Mapping[int, str]:
    return match_labels(load_rules(path).labels, classes, path, owner)


def match_labels(
    labels: Sequence[str], classes: Sequence[str], name: str, owner: str, *, all_labels: bool = True
) -> dict[int, str]:
    """Which of the labels of rules means which class, by the number of the class.

    Parameters
    ----------
    labels
        The labels that there are rules for.
    classes
        The names of the classes, in order.
    name, owner
        What errors call the rules, and whose classes these are.
    all_labels
        Whether a label that is none of the classes is an error; if not, it is left out.
    """
    from stockade.datasets.labels import align_labels
    from stockade.datasets.source import as_label

    matched: dict[int, str] = {}
    for written in labels:
        label = as_label(written)
        assert label is not None  # every string is a label
        try:
            number = align_labels([label], None, classes)[label]
        except DataError:
            if not all_labels:
                continue
            raise DataError(
                f'{name} has rules for the label "{written}" (found: {", ".join(labels)}), which is no class of '
                f"{owner} ({', '.join(classes)}). Rename it in the file."
            ) from None
        if number in matched:
            raise DataError(
                f'{name} has rules for "{matched[number]}" and for "{written}", which are the same class of {owner} '
                f"({', '.join(classes)}). Give them one name in the file."
            )
        matched[number] = written
    return matched


def check_present(labels: Mapping[int, str], rules: RuleSet, classes: Sequence[str], present: Collection[str]) -> None:
    """Refuse rules of which none is for a class that the data have.

    Parameters
    ----------
    labels
        What the rules call each class, by its number.
    rules
        The rules.
    classes
        All classes, in order.
    present
        Those that the data have.
    """
    if not {classes[number] for number in labels} & set(present):
        raise DataError(
            f"The rules are for the labels {', '.join(rules.labels)}, but the data have only texts of "
            f"{', '.join(name for name in classes if name in present)}. Give rules for those classes or other data, or "
            "say which is which with --label-map."
        )
