"""What comes out of mining: the rules, with what each model of the ensemble says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from stockade import __version__
from stockade.core.errors import DataError, OptionError, unknown_name
from stockade.experiment.result import Result, Verification
from stockade.experiment.spec import Spec
from stockade.experiment.store import Codec, ResultStore
from stockade.lexicon.rules import Rule, RuleSet, read_rules, write_rules
from stockade.workflows.mine.spec import MineSpec

if TYPE_CHECKING:
    from stockade.report.document import Document

SCHEMA = 1
RULES_FILE = "rules.jsonl"
CHUNKS, RULES, END = "chunks", "rules", "end"
"""The parts of the store: sums by chunk of texts, the rules in blocks, and what is known when all is done."""
_BLOCK = 2_000
_DIGITS = 4
"""Logits move in the sixth digit with the shape of the batch that they were computed in."""


@dataclass(frozen=True, slots=True)
class MinedRule:
    """A rule that was scored, whether it helps an attacker or not.

    Parameters
    ----------
    label, word, replacement
        The rule: in texts of the class, replace the word.
    count
        At how many places it was scored; for word counts, how many texts of the class have the word.
    occurrences
        How many places the data have.
    saliences
        The mean h of each member of the ensemble, or a single one of the whole.
    """

    label: str
    word: str
    replacement: str
    count: int
    occurrences: int
    saliences: tuple[float, ...]


def _read(document: Mapping[str, Any]) -> tuple[MinedRule, ...]:
    return tuple(
        MinedRule(label, word, replacement, int(count), int(occurrences), tuple(saliences))
        for label, word, replacement, count, occurrences, saliences in document["rules"]
    )


BLOCK_CODEC: Codec[Sequence[MinedRule]] = Codec(
    lambda block: {"rules": [list(asdict(rule).values()) for rule in block]}, _read
)


def store_rules(store: ResultStore, rules: Sequence[MinedRule], facts: Mapping[str, Any]) -> None:
    """Commit all rules, and that nothing is left to do.

    Parameters
    ----------
    store
        Where to.
    rules
        The rules, in the order in which they are read again.
    facts
        What the summary says of how they were scored.
    """
    for number, start in enumerate(range(0, len(rules), _BLOCK)):
        store.add(RULES, f"{number:06d}", BLOCK_CODEC.encode(rules[start : start + _BLOCK]), position=number)
    store.add(END, END, facts)


class MineResult(Result):
    """Mined rules: `rules()` is what an attack applies, `records()` are all that were scored."""

    kind: ClassVar[str] = "rules"
    spec_type: ClassVar[type[Spec]] = MineSpec

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes."""
        return tuple(self.manifest.inputs["labels"])

    @property
    def members(self) -> tuple[str, ...]:
        """The models of the ensemble by name; none for rules by word counts."""
        return tuple(member["name"] for member in self.manifest.inputs["members"])

    @property
    def path(self) -> Path:
        """The file of rules, as attacks take it."""
        return self.folder / RULES_FILE

    @property
    def complete(self) -> bool:
        """Whether every rule was scored at all its places."""
        return self._facts is not None

    @property
    def _facts(self) -> Mapping[str, Any] | None:
        return self.store.get(END, END)

    def records(self) -> Iterator[MinedRule]:
        """Every rule that was scored, by class, word and replacement."""
        for document in self.store.documents(RULES):
            yield from BLOCK_CODEC.read(document)

    def salience(self, rule: MinedRule, members: Sequence[str] | None = None) -> float:
        """The salience of a rule.

        Parameters
        ----------
        rule
            One of the records.
        members
            The models whose mean it is; all by default.
        """
        return round(self._mean(rule.saliences, self._columns(members)), _DIGITS)

    def rules(self, members: Sequence[str] | None = None) -> RuleSet:
        """The rules of positive salience by class, the highest first; the others are never applied.

        Parameters
        ----------
        members
            Names of some models of the ensemble: the rules that would have been mined with them alone.
        """
        columns = self._columns(members)
        rules = []
        for mined in self.records():
            salience = round(self._mean(mined.saliences, columns), _DIGITS)
            if salience > 0:
                extra = {"occurrences": mined.occurrences} if mined.occurrences != mined.count else {}
                rules.append(Rule(mined.label, mined.word, mined.replacement, salience, mined.count, extra))
        rules.sort(key=lambda rule: (rule.label, -rule.salience, rule.word, rule.replacement))
        return RuleSet(tuple(rules), self.provenance(members))

    def provenance(self, members: Sequence[str] | None = None) -> dict[str, Any]:
        """Where the rules come from, as the first line of their file has it.

        Parameters
        ----------
        members
            Names of some models of the ensemble; all by default.
        """
        spec, data = self.manifest.spec, self.manifest.inputs["data"]
        about: dict[str, Any] = {"method": spec["method"]}
        if self.members:
            chosen = [
                member for member in self.manifest.inputs["members"] if members is None or member["name"] in members
            ]
            about |= {
                "score": spec["score"],
                "models": [member["name"] for member in chosen],
                "members": chosen,
                "max_count": spec["max_count"],
            }
        return {
            **about,
            "min_count": spec["min_count"],
            "substitutes": "WordNet 3.0 synonyms of the same part of speech",
            "data": data["reference"],
            "data_fingerprint": data["fingerprint"],
            "texts": data["label_counts"],
            "label_map": self.manifest.inputs["label_map"],
            "limit": spec["limit"],
            "seed": spec["seed"],
            "stockade": __version__,
            **(self._facts or {}).get("provenance", {}),
        }

    def _columns(self, members: Sequence[str] | None) -> Mapping[int, float]:
        """Which columns of saliences count, and by how much."""
        shares = {member["name"]: member["share"] for member in self.manifest.inputs["members"]}
        if not shares or self.spec.score != "logits":
            if members is not None:
                raise OptionError(
                    "Rules of a part of the ensemble follow from the mean of logits only: mine with --score logits, or "
                    "mine again with those models."
                )
            return {0: 1.0}
        names = list(shares)
        chosen = names if members is None else list(members)
        for name in chosen:
            if name not in shares:
                raise unknown_name("model in this ensemble", name, shares)
        total = sum(shares[name] for name in chosen)
        return {names.index(name): shares[name] / total for name in chosen}

    @staticmethod
    def _mean(saliences: Sequence[float], columns: Mapping[int, float]) -> float:
        return sum(share * saliences[column] for column, share in columns.items())

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """One row per rule that was scored; those without positive salience too."""
        names = self.members if len(self.members) > 1 and self.spec.score == "logits" else ()
        for rule in self.records():
            yield {
                "label": rule.label,
                "word": rule.word,
                "replacement": rule.replacement,
                "salience": self.salience(rule),
                "count": rule.count,
                "occurrences": rule.occurrences,
                **({"saliences": dict(zip(names, rule.saliences, strict=True))} if names else {}),
            }

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`."""
        facts, effort = self._facts, self.store.effort(CHUNKS)
        scored, positive = Counter[str](), Counter[str]()
        for rule in self.records():
            scored[rule.label] += 1
            positive[rule.label] += self.salience(rule) > 0
        return {
            "schema": SCHEMA,
            "run": self.name,
            "method": self.spec.method,
            "models": {name: model["reference"] for name, model in self.manifest.inputs["models"].items()},
            "members": self.manifest.inputs["members"],
            "data": self.manifest.inputs["data"]["reference"],
            "texts": self.manifest.inputs["data"]["size"],
            "complete": facts is not None,
            "rules": {label: {"scored": scored[label], "positive": positive[label]} for label in self.labels},
            "mean_count": _mean_count(self.records()),
            "warnings": list((facts or {}).get("warnings", ())),
            **{name: (facts or {}).get(name) for name in ("occurrences", "scored", "failed")},
            "seconds": round(effort.seconds, 3),
            "model_seconds": round(effort.model_seconds, 3),
            "model_rows": effort.model_rows,
        }

    def problem(self) -> str | None:
        """Why there is no rule."""
        facts = self._facts
        if facts is None or any(label["scored"] for label in self.summary["rules"].values()):
            return None
        if facts.get("failed"):
            return f"No replacement could be scored; the first: {facts['reason']}"
        return (
            f"There is no rule: no word of the {self.summary['texts']:,} texts that occurs at least "
            f"{self.spec.min_count} times in a class has a WordNet synonym. Give more texts, or lower --min-count."
        )

    def write_rules(self) -> None:
        """Write `rules.jsonl` into the folder."""
        write_rules(self.path, self.rules())

    def document(self) -> Document:
        """The report: the strongest rules of each class, and a table of all to search in."""
        from stockade.workflows.mine.page import mine_document

        return mine_document(self)

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Check that the file of rules and the summary follow from the sums, and score some texts again.

        Parameters
        ----------
        model
            The models by name, if they are not where the job found them.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        from stockade.workflows.mine.run import score_again

        self.check_trust(trust, model)
        checked, differing = score_again(self, model)
        return self.verified(checked, (*self._wrong_rules(), *differing))

    def _wrong_rules(self) -> list[str]:
        """What is wrong with the file of rules, which must follow from the results."""
        rules = self.rules().rules
        try:
            written = read_rules(self.path).rules if rules else ()
        except DataError as error:
            return [str(error)]
        return [] if written == rules else [f"{RULES_FILE} does not follow from the results"]

    def __repr__(self) -> str:
        positive = sum(label["positive"] for label in self.summary["rules"].values())
        return f"MineResult({str(self.folder)!r}, rules={positive})"


def _mean_count(rules: Iterator[MinedRule]) -> float | None:
    counts = [rule.count for rule in rules]
    return round(fmean(counts), 3) if counts else None
