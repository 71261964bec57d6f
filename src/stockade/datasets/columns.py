"""Which column is the text, which the label: by name, in a fixed order, and by content only where names say nothing.

Names are compared without case, blanks, underscores and hyphens. In order:

1. a column named by the user (`--text-column`, `--label-column`, `--premise-column`);
2. a pair of `PAIR_NAMES`, both present: the first is the premise, the second the hypothesis, which is the text;
3. the first of `TEXT_NAMES`, the first of `LABEL_NAMES`;
4. the only column that reads like texts, the only one that looks like classes, judged by the first rows.

Everything else is an error that lists the columns and the option to name one. A text column named by the user is the
hypothesis of a pair if it is the second half of a pair whose first half is there too; `premise_column=""` says that
there is no premise.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stockade.core.errors import DataError, OptionError
from stockade.datasets.wording import listing, quote

PAIR_NAMES = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("texta", "textb"),
    ("question", "sentence"),
    ("query", "passage"),
)
# fmt: off
TEXT_NAMES = (
    "text", "sentence", "review", "content", "comment", "commenttext", "tweet", "message", "body", "question",
    "prompt", "input", "document", "passage", "article", "utterance", "query", "reviewtext", "reviewbody",
    "description", "headline", "title",
)
LABEL_NAMES = (
    "label", "labels", "class", "target", "sentiment", "category", "goldlabel", "polarity", "toxic", "isspam",
    "spam", "intent", "emotion", "topic", "classlabel", "classindex", "labelid", "airlinesentiment", "stars",
    "rating", "y",
)
# fmt: on

_LOOKS_LIKE_A_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_LONGEST_NAME_IN_WORDS = 5

Preview = Callable[[str], Sequence[object]]
"""The cells of one column in the first rows of the table."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that are read. `label` is empty where labels are not needed."""

    text: str
    label: str
    premise: str | None = None

    @property
    def wanted(self) -> tuple[str, ...]:
        """Text, label (the text once more where there is none) and, in a pair task, premise."""
        label = self.label or self.text
        return (self.text, label) if self.premise is None else (self.text, label, self.premise)


def choose_columns(
    name: str,
    columns: Sequence[str],
    preview: Preview,
    *,
    text: str | None = None,
    label: str | None = None,
    premise: str | None = None,
    has_header: bool = False,
    needs_labels: bool = True,
) -> Columns:
    """The columns to read, or an error that says which option names them.

    Parameters
    ----------
    name : str
        What errors call the table.
    columns : sequence of str
        The names of all its columns.
    preview : callable
        The first cells of a column; only called when names decide nothing.
    text, label, premise : str, optional
        Columns that the user named.
    has_header : bool
        Whether the names are the first line of a text file, so that a file without a header line can be told from one
        with unusual names.
    needs_labels : bool
        Whether a label column must be there; if not, only one that is named is read.
    """
    guess = _Guess(name, tuple(columns), preview)
    if has_header and (text is None or label is None):
        guess.refuse_data_as_header()
    guess.refuse_duplicates()
    text = guess.named(text, "--text-column") if text is not None else None
    label = guess.named(label, "--label-column") if label is not None else None
    no_premise = premise == ""
    premise = guess.named(premise, "--premise-column") if premise else None
    if not no_premise and (premise is None or text is None):
        premise, text = guess.pair(premise, text, label)
    text = text or guess.text(taken=(label, premise))
    label = label or (guess.label(taken=(text, premise)) if needs_labels else "")
    chosen = [column for column in (text, label, premise) if column]
    if len(set(chosen)) < len(chosen):
        twice = next(column for column in chosen if chosen.count(column) > 1)
        raise OptionError(
            f'The column "{twice}" of {name} is named for two different things (text: {text}, label: {label}, '
            f"premise: {premise or 'none'}). Name a column of its own for each."
        )
    return Columns(text, label, premise)


@dataclass(frozen=True, slots=True)
class _Guess:
    """Guesses about the columns of one table."""

    name: str
    columns: tuple[str, ...]
    preview: Preview

    def named(self, wanted: str, option: str) -> str:
        """The column the user named: to the letter, or the only one that differs in case and blanks."""
        if wanted in self.columns:
            return wanted
        alike = [column for column in self.columns if column_key(column) == column_key(wanted)]
        if len(alike) == 1:
            return alike[0]
        near = difflib.get_close_matches(wanted, self.columns, n=1)
        raise self._absent(wanted, option, near[0] if near else None)

    def pair(self, premise: str | None, text: str | None, label: str | None) -> tuple[str | None, str | None]:
        """Premise and hypothesis by name, completing the half that was named; both as they came if there is no pair."""
        for first, second in PAIR_NAMES:
            left, right = self._by_name(first), self._by_name(second)
            if not left or not right or label in (left, right):
                continue
            if (premise is None or premise == left) and (text is None or text == right):
                return left, right
        return premise, text

    def text(self, taken: tuple[str | None, ...]) -> str:
        column = self._first_of(TEXT_NAMES, taken)
        if column is None:
            candidates = [column for column in self._free(taken) if _reads_like_texts(self.preview(column))]
            if len(candidates) != 1:
                raise self._absent("text", "--text-column", candidates[0] if candidates else None)
            column = candidates[0]
        return column

    def label(self, taken: tuple[str | None, ...]) -> str:
        column = self._first_of(LABEL_NAMES, taken)
        if column is None:
            candidates = [column for column in self._free(taken) if _looks_like_classes(self.preview(column))]
            if len(candidates) != 1:
                near = self._near(LABEL_NAMES, taken)
                raise self._absent("label", "--label-column", near or (candidates[0] if candidates else None))
            column = candidates[0]
        return column

    def refuse_data_as_header(self) -> None:
        """Raise if the header is a row of data. Usual names are believed; others must not look like cells."""
        usual = any(self._first_of(names, ()) for names in (TEXT_NAMES, LABEL_NAMES, *PAIR_NAMES))
        if usual or not any(self._is_a_cell(column) for column in self.columns if column):
            return
        raise DataError(
            f"{self.name} has no header line (found as first line: {listing(map(quote, self.columns))}), expected "
            "the names of its columns. Add a first line such as: text,label"
        )

    def refuse_duplicates(self) -> None:
        for column in self.columns:
            if column and self.columns.count(column) > 1:
                raise DataError(
                    f"{self.name} has {self.columns.count(column)} columns named {quote(column)} "
                    f"(found: {listing(self.columns)}), expected each name once. Rename all but one."
                )

    def _is_a_cell(self, column: str) -> bool:
        """Whether a name is a number, JSON, a whole sentence or, as the label of a first row, a value of its column."""
        if column.startswith("{") or _LOOKS_LIKE_A_NUMBER.fullmatch(column):
            return True
        if len(column.split()) > _LONGEST_NAME_IN_WORDS:
            return True
        return self.columns.count(column) == 1 and column in map(_stripped, self.preview(column))

    def _absent(self, wanted: str, option: str, suggestion: str | None) -> DataError:
        columns = listing(column or '""' for column in self.columns)
        hint = f"Name it with {option} {_shell_word(suggestion or 'NAME')}."
        return DataError(f'{self.name} has no column "{wanted}" (found: {columns}). {hint}')

    def _by_name(self, key: str) -> str | None:
        """The column of that name; one spelled exactly so before one that differs in case or blanks."""
        if key in self.columns:
            return key
        return next((column for column in self.columns if column_key(column) == key), None)

    def _first_of(self, names: Sequence[str], taken: tuple[str | None, ...]) -> str | None:
        columns = (self._by_name(name) for name in names)
        return next((column for column in columns if column is not None and column not in taken), None)

    def _near(self, names: Sequence[str], taken: tuple[str | None, ...]) -> str | None:
        """The column whose name comes closest to a known one, for the hint of an error."""
        near = {column_key(column): column for column in self._free(taken)}
        for name in names:
            for key in difflib.get_close_matches(name, near, n=1, cutoff=0.75):
                return near[key]
        return None

    def _free(self, taken: tuple[str | None, ...]) -> list[str]:
        return [column for column in self.columns if column and column not in taken]


def column_key(name: str) -> str:
    """A name as names are compared: without case, blanks, underscores and hyphens."""
    return re.sub(r"[\s_\-]+", "", name).casefold()


def _stripped(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell


def _reads_like_texts(cells: Sequence[object]) -> bool:
    """Strings, and most of them of more than one word."""
    filled = [cell for cell in cells if cell is not None and cell != ""]
    if not filled or not all(isinstance(cell, str) for cell in filled):
        return False
    return 2 * sum(len(str(cell).split()) > 1 for cell in filled) > len(filled)


def _looks_like_classes(cells: Sequence[object]) -> bool:
    """Whole numbers or single words that repeat: at most two different ones, or half as many as there are rows."""
    filled = [cell for cell in cells if cell is not None and cell != ""]
    if not filled or not all(isinstance(cell, str | int) for cell in filled):
        return False
    if _reads_like_texts(filled):
        return False
    return len(set(filled)) <= max(2, len(filled) // 2)


def _shell_word(name: str) -> str:
    return name if re.fullmatch(r"[\w.\-]+", name) else f'"{name}"'
