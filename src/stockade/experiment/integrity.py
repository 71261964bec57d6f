"""What a folder commits itself to, and how that is held against what it holds.

Before the first result is stored, the manifest records one hash of the texts in their order, with ids and true labels
(the commitment), and a checksum of everything else it says. With the summary a digest of all stored rows is written. So
the files vouch for each other: a row that is missing, exchanged or changed no longer fits the commitment or the digest,
a changed manifest not its checksum.

All of it can be computed again by whoever rewrites a folder as a whole. A commitment that was written down elsewhere
before (it is in `manifest.json` from the first second) shows even that the texts are others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

EXIT_PROBLEMS, EXIT_INCOMPLETE = 1, 3

CommittedText = tuple[str, str | None, str, str | None]
"""A text as a commitment sees it: id, premise, text, true class; None where there is none."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of a folder has shown.

    Parameters
    ----------
    checked
        How many results were checked.
    problems
        What does not hold, each in a sentence.
    incomplete
        What could not be checked because it is not there: results that are missing, a commitment that an older version
        did not make.
    """

    checked: int
    problems: tuple[str, ...]
    incomplete: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything is there and holds."""
        return not self.problems and not self.incomplete

    @property
    def exit_code(self) -> int:
        """0: everything holds; 1: something does not; 3: what is there holds, but not everything is."""
        return EXIT_PROBLEMS if self.problems else EXIT_INCOMPLETE if self.incomplete else 0

    @property
    def sentence(self) -> str:
        """The outcome in short."""
        count = len(self.problems)
        if count:
            outcome = f"{count} problem{'' if count == 1 else 's'}"
        else:
            outcome = "incomplete" if self.incomplete else "all hold"
        return f"{self.checked} result{'' if self.checked == 1 else 's'} checked: {outcome}"

    def with_problems(self, problems: Iterable[str], *, checked: int = 0) -> Verification:
        """The same with more problems, found among so many more results."""
        return Verification(self.checked + checked, (*self.problems, *problems), self.incomplete)

    def with_part(self, name: object, part: Verification) -> Verification:
        """The same with what a check of a job inside has shown."""
        return Verification(
            self.checked + part.checked,
            (*self.problems, *(f"{name}: {problem}" for problem in part.problems)),
            (*self.incomplete, *(f"{name}: {sentence}" for sentence in part.incomplete)),
        )


def commit(texts: Iterable[CommittedText]) -> str:
    """One hash of texts in their order, with their ids and labels."""
    digest = hashlib.sha256()
    for text in texts:
        for part in text:
            encoded = b"" if part is None else part.encode("utf-8", "surrogatepass")
            digest.update((0 if part is None else len(encoded) + 1).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def checksum(described: Mapping[str, Any]) -> str:
    """A hash of what a manifest says, but for the checksum itself."""
    content = {name: value for name, value in described.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def digest_rows(rows: Iterable[tuple[object, ...]]) -> str:
    """A hash of stored rows in their order."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, default=repr).encode() + b"\n")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class RowFields:
    """Where the rows of a kind of job keep what a commitment is about.

    Parameters
    ----------
    part, text, premise, label
        The fields of a document that name its part (the attack, the method) and hold the text, its premise (of a
        translation: the source) and its true class; None where it has no class.
    """

    part: str
    text: str
    premise: str = "premise"
    label: str | None = "label"

    def text_of(self, document: Mapping[str, Any]) -> CommittedText:
        """What a commitment says of the text of a document."""
        label = None if self.label is None else document[self.label]
        return document["id"], document[self.premise], document[self.text], label


def check_rows(
    rows: Mapping[str, Iterable[Any]], fields: RowFields, data: Mapping[str, Any], stored: Iterable[str]
) -> Verification:
    """Whether each part has a row for each text that the manifest commits to, in order, and none besides.

    Parameters
    ----------
    rows
        The stored rows (`StoredRow`) of each part that there should be.
    fields
        Where they keep their texts.
    data
        What the manifest records of the data.
    stored
        The parts that there are.
    """
    problems = [f"there are results of {part}, which the run does not name" for part in stored if part not in rows]
    incomplete, checked = [], 0
    for part, in_order in rows.items():
        texts: list[CommittedText] = []
        ordered = True
        for place, row in enumerate(in_order):
            ordered = ordered and row.position == place
            problems += [f"{part}, example {row.id}: {problem}" for problem in _misfiled(part, row, fields)]
            texts.append(fields.text_of(row.document))
        checked += len(texts)
        if len(texts) < data["size"]:
            incomplete.append(f"{part}: {len(texts):,} of {data['size']:,} texts have a result")
        elif not ordered or ("commitment" in data and commit(texts) != data["commitment"]):
            problems.append(
                f"{part}: the rows are not about the texts that the run committed to: ids, texts, labels or their "
                "order differ"
            )
    return Verification(checked, tuple(problems), tuple(incomplete))


def _misfiled(part: str, row: Any, fields: RowFields) -> Iterator[str]:
    """Where the columns of a row say something else than its document."""
    for name, column in (("id", row.id), ("status", row.status), (fields.part, part)):
        if row.document.get(name) != column:
            yield f"stored with the {name} {column}, and its document says {row.document.get(name)}"
