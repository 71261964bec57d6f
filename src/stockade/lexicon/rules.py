"""Word replacement rules: how they are written to files, and how they are applied to a text.

A rule (z, w -> v) says: in a text of class z, replace the word w by v. Its salience h says which rule goes first. Rules
come from an ensemble of models (UAWR) or from word counts (PMI, see `association.py`), both as in "Generating universal
language adversarial examples by understanding and enhancing the transferability across neural models" (ICLR 2021
submission, section 4.2). Applying them asks no model:

    pool = {(i, v) : there is a rule (y, x_i -> v) with h > 0}
    repeat: apply the highest h over unchanged positions, until floor(budget * n) words are changed or the pool is empty

A file of rules is JSON lines that a person can read, edit and share:

    {"stockade_rules": 1, "method": "uawr", "models": ["CNN-W-GloVe-1"], "data": "reviews.csv", "seed": 0}
    {"label": "positive", "word": "funny", "replacement": "laughable", "salience": 3.12, "count": 41}

The first line may say where the rules come from. Blank lines and lines that begin with # are skipped. A rule may have
further keys, which are written back and otherwise ignored. Files come from anywhere: a line that is no rule is refused
with its number, and there are limits to the size of a file and of a line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from stockade.core.errors import DataError, OptionError
from stockade.core.files import FileState, file_state, replace_file
from stockade.core.sanitize import terminal
from stockade.core.shares import at_most
from stockade.core.text import Text, is_single_word, match_case
from stockade.lexicon.json_lines import Lines, read_objects, shown

FORMAT = 1
_MARK = "stockade_rules"
"""The key of a provenance line; its value is the format of the file."""
_KEYS = ("label", "word", "replacement", "salience")
_EXAMPLE = '{"label": "positive", "word": "funny", "replacement": "laughable", "salience": 3.1}'
_RULES_FILE = Lines("file of rules", _EXAMPLE, "Make one with: stockade rules mine")
_LONGEST_NAME = 200
"""The most characters of a label or a word."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Replace `word` by `replacement` in texts of class `label`.

    Parameters
    ----------
    label
        The class whose texts the rule is for.
    word
        The word to replace; case is ignored.
    replacement
        The word to write instead, in the case of the word it replaces.
    salience
        How much the rule pushes a model away from the class: rules of more salience are applied first, those without
        positive salience never.
    count
        How many places of the mined texts the salience is a mean over, if it is one.
    extra
        What else stands on the rule's line of a file.
    """

    label: str
    word: str
    replacement: str
    salience: float
    count: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        fault = _fault(self)
        if fault is not None:
            raise DataError(f"This rule cannot be used: {fault}.")

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes a rule the same as another one: its label, its word in whatever case, its replacement."""
        return self.label, self.word.lower(), self.replacement


@dataclass(frozen=True)
class RuleSet:
    """Rules and where they come from.

    Parameters
    ----------
    rules
        The rules, each once.
    provenance
        How they were made: `method` ("uawr", "pmi", "pmi-smoothed"), `models`, `data`, `seed` and more.
    """

    rules: tuple[Rule, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[tuple[str, str, str]] = set()
        for rule in self.rules:
            if rule.key in seen:
                raise DataError(f"The rule {_arrow(rule)} is listed twice. Remove one of them.")
            seen.add(rule.key)

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes that there are rules for, in the order of the rules."""
        return tuple(dict.fromkeys(rule.label for rule in self.rules))

    def replacements(self, label: str, word: str) -> tuple[Rule, ...]:
        """The rules of positive salience for a word in texts of a class, the highest salience first.

        Parameters
        ----------
        label
            The class of the text, as the rules call it.
        word
            A word of the text; case is ignored.
        """
        return self._index.get((label, word.lower()), ())

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], tuple[Rule, ...]]:
        found: dict[tuple[str, str], list[Rule]] = {}
        for rule in self.rules:
            if rule.salience > 0:
                found.setdefault((rule.label, rule.word.lower()), []).append(rule)
        return {key: tuple(sorted(rules, key=_first_to_apply)) for key, rules in found.items()}


def _first_to_apply(rule: Rule) -> tuple[float, str]:
    return -rule.salience, rule.replacement


def plan_replacements(
    words: Sequence[str], label: str, rules: RuleSet, budget: float, *, indices: Iterable[int] | None = None
) -> tuple[tuple[int, str], ...]:
    """Which words of a text the rules replace, in the order of falling salience.

    Parameters
    ----------
    words
        The words of the text.
    label
        The class of the text, as the rules call it.
    rules
        The rules.
    budget
        The largest share of the words that may change.
    indices
        The words that may change; all by default.

    Returns
    -------
    tuple of (int, str)
        The index of each word and what replaces it, in the case of that word. Equal salience goes to the first word,
        then to the first replacement by its letters.
    """
    check_budget(budget)
    pool = []
    for index in range(len(words)) if indices is None else indices:
        for rule in rules.replacements(label, words[index]):
            replacement = match_case(rule.replacement, words[index])
            if replacement != words[index]:  # ß in capitals is SS: some words differ in lower case only
                pool.append((-rule.salience, index, replacement))
                break
    return tuple((index, replacement) for _, index, replacement in sorted(pool)[: words_allowed(len(words), budget)])


def apply_to_text(
    text: Text, label: str, rules: RuleSet, budget: float, *, indices: Iterable[int] | None = None
) -> Text:
    """A text with the rules of its class applied; the text itself where none applies.

    Parameters
    ----------
    text
        The text; of a pair the hypothesis is changed.
    label, rules, budget, indices
        As for `plan_replacements`.
    """
    plan = plan_replacements(text.words, label, rules, budget, indices=indices)
    return text.replace_all(dict(plan)) if plan else text


def words_allowed(words: int, budget: float) -> int:
    """floor(budget * words), exactly."""
    return at_most(budget, words)


def check_budget(budget: float) -> None:
    """Refuse a budget in percent, or one that allows no change at all."""
    if not 0 < budget <= 1:
        raise OptionError(f"The budget is {budget:g}, expected a share of the words above 0, at most 1, such as 0.3.")


def read_rules(path: str | Path) -> RuleSet:
    """The rules of a file; a line that is no rule is refused with its number.

    Parameters
    ----------
    path
        A file of JSON lines, as `write_rules` or a person wrote it.
    """
    rules: list[Rule] = []
    provenance: Mapping[str, Any] = {}
    lines: dict[tuple[str, str, str], int] = {}
    is_first = True
    for number, values in read_objects(path, _RULES_FILE):
        where = f"{path} line {number}"
        if _MARK in values:
            provenance = _provenance(values, where, is_first)
        else:
            rule = _rule(values, where)
            if rule.key in lines:
                raise DataError(
                    f"{where} repeats the rule {_arrow(rule)} of line {lines[rule.key]}. Remove one of them."
                )
            lines[rule.key] = number
            rules.append(rule)
        is_first = False
    if not rules:
        raise DataError(f"{path} holds no rule. Expected one per line, such as {_EXAMPLE}.")
    return RuleSet(tuple(rules), provenance)


def load_rules(path: str | Path) -> RuleSet:
    """The same as `read_rules`, read once as long as the file does not change.

    Parameters
    ----------
    path
        The file.
    """
    return _loaded(str(path), file_state(path))


@lru_cache(maxsize=8)
def _loaded(path: str, _state: FileState | None) -> RuleSet:
    return read_rules(path)


def rules_hash(path: str | Path) -> str:
    """The SHA-256 of a file of rules, which the manifest of a job records.

    Parameters
    ----------
    path
        The file; one that cannot be read as rules is refused.
    """
    load_rules(path)
    return sha256(Path(path).read_bytes()).hexdigest()


def write_rules(path: str | Path, ruleset: RuleSet) -> None:
    """Write rules to a file, one per line, with their provenance on the first line.

    The same rules give the same bytes. The file is either the old one or the new one, never half of it.

    Parameters
    ----------
    path
        The file to write.
    ruleset
        The rules, written in their order.
    """

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            stream.write(_as_line({_MARK: FORMAT, **ruleset.provenance}))
            stream.writelines(_as_line(_as_object(rule)) for rule in ruleset.rules)

    try:
        replace_file(Path(path), write)
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror or error}). Choose another file.") from None


def _as_object(rule: Rule) -> dict[str, Any]:
    counted = {} if rule.count is None else {"count": rule.count}
    return {**{key: getattr(rule, key) for key in _KEYS}, **counted, **rule.extra}


def _as_line(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False) + "\n"


def _provenance(values: dict[str, Any], where: str, is_first: bool) -> Mapping[str, Any]:
    if not is_first:
        raise DataError(
            f'{where} says where the rules come from ("{_MARK}"), which only the first line may do. Remove the line.'
        )
    written = values.pop(_MARK)
    if type(written) is not int or written != FORMAT:
        raise DataError(
            f"{where} has the format {shown(written)}; this version of Stockade reads format {FORMAT}. Update Stockade."
        )
    return values


def _rule(values: dict[str, Any], where: str) -> Rule:
    missing = [key for key in _KEYS if key not in values]
    if missing:
        keys = ", ".join(map(shown, values)) or "nothing"
        raise DataError(f'{where} has no "{missing[0]}" (found: {keys}), expected {_EXAMPLE}.')
    extra = {key: value for key, value in values.items() if key not in (*_KEYS, "count")}
    try:
        return Rule(
            values["label"], values["word"], values["replacement"], values["salience"], values.get("count"), extra
        )
    except DataError as error:
        _, _, fault = str(error).partition(": ")
        raise DataError(f"{where} is no rule: {fault}") from None


def _fault(rule: Rule) -> str | None:
    """What makes a rule unusable, if anything; its fields may hold whatever a file says."""
    for name in ("label", "word", "replacement"):
        value = getattr(rule, name)
        if not isinstance(value, str):
            hint = f'; write "{value}"' if name == "label" and type(value) in (int, float) else ""
            return f'"{name}" is {shown(value)}, expected a string{hint}'
        if not value.strip() or len(value) > _LONGEST_NAME:
            return f'"{name}" has {len(value)} characters, expected 1 to {_LONGEST_NAME}'
    if terminal(rule.label) != rule.label or not rule.label.isprintable():
        return f'"label" is "{shown(rule.label)}", expected a name without control characters'
    for name in ("word", "replacement"):
        if not is_single_word(getattr(rule, name)):
            return f'"{name}" is "{shown(getattr(rule, name))}", expected a single word'
    if rule.word.lower() == rule.replacement.lower():
        return f'"{rule.word}" would be replaced by itself, expected another word as "replacement"'
    if type(rule.salience) not in (int, float) or not _is_finite(rule.salience):
        return f'"salience" is {shown(rule.salience)}, expected a finite number'
    if rule.count is not None and (type(rule.count) is not int or rule.count < 0):
        return f'"count" is {shown(rule.count)}, expected a whole number or nothing'
    return None


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no float can hold
        return False


def _arrow(rule: Rule) -> str:
    return f"{rule.label}: {rule.word} -> {rule.replacement}"
