"""What comes out of an attack."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import TypeAdapter

from stockade.attacks.constraints import MaxChanged
from stockade.attacks.trial import NOT_CONFIRMED
from stockade.core.records import Record
from stockade.experiment.export import Layout
from stockade.experiment.inputs import skipped_rows
from stockade.experiment.result import Verification
from stockade.experiment.spec import Spec
from stockade.experiment.store import Codec
from stockade.experiment.usage import read_usage
from stockade.workflows.attack import summary as numbers
from stockade.workflows.attack.common import AttacksResult
from stockade.workflows.attack.premade import premade_rows
from stockade.workflows.attack.spec import AttackSpec

if TYPE_CHECKING:
    from stockade.report.document import Document
    from stockade.report.examples import Example


def as_row(record: Record) -> dict[str, Any]:
    """A record as plain values, in the order of the documented fields."""
    row = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    row["edits"] = [dataclasses.asdict(edit) for edit in record.edits]
    for name in ("original_scores", "adversarial_scores"):
        row[name] = None if row[name] is None else list(row[name])
    return row


CODEC = Codec(as_row, TypeAdapter(Record).validate_python)


class AttackResult(AttacksResult):
    """The results of an attack: `summary` and `examples` are what most people want; `manifest` says what it was."""

    kind: ClassVar[str] = "attack"
    spec_type: ClassVar[type[Spec]] = AttackSpec
    codec: ClassVar[Codec[Any]] = CODEC

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of the model."""
        return tuple(self.manifest.inputs["model"]["labels"])

    @property
    def labelled(self) -> bool:
        """Whether the data have labels; if not, the model's own predictions were attacked."""
        return not self.manifest.spec.get("unlabelled", False)

    @property
    def defenses(self) -> list[str]:
        """What stood around the model, from the outside in, with the options that matter to a reader."""
        return [defense_in_short(defense) for defense in self.manifest.inputs["model"].get("defenses", ())]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`, computed from the results."""
        scale = self.spec.similarity_scale
        attacks = {
            name: numbers.summarise_attack(self.records(name), self.store.effort(name), scale, labelled=self.labelled)
            for name in self.attacks
        }
        model = self.manifest.inputs["model"]
        votes = any(defense["options"].get("combine") == "vote" for defense in model.get("defenses", ()))
        unanimous = numbers.unanimous_votes(self.records(self.attacks[0])) if votes and self.attacks else None
        size, usage = self.manifest.inputs["data"]["size"], read_usage(self.folder)
        done = min((attack["n"] + attack["errors"] for attack in attacks.values()), default=0)
        return {
            "schema": numbers.SCHEMA,
            "run": self.name,
            "model": model["reference"],
            **({"defenses": self.defenses} if self.defenses else {}),
            "remarks": list(model.get("remarks", ())),
            "data": self.manifest.inputs["data"]["reference"],
            **({} if usage is None else {"usage": usage}),
            "complete": done == size,
            "examples": size,
            "labelled": self.labelled,
            "warnings": [
                *numbers.warnings_for(attacks, self.labels, unanimous, self._unlimited),
                *(numbers.without_scores(attacks) if model.get("label_only") else ()),
                *numbers.warnings_of_answers(
                    self.records(self.attacks[0]) if self.attacks else (), self.labelled, model.get("label_only", False)
                ),
                *numbers.unsteady_warning(model.get("unsteady", 0), self._unconfirmed if model["deterministic"] else 0),
                *skipped_rows(self.manifest.inputs["data"]),
            ],
            "classes": {name: numbers.summarise_classes(self.records(name), self.labels) for name in self.attacks}
            if self.labelled
            else {},
            "attacks": attacks,
        }

    @property
    def complete(self) -> bool:
        """Whether every text was attacked and, if wanted, every similarity was measured."""
        if not self.summary["complete"]:
            return False
        return not self.spec.similarity or all(
            record.similarity is not None for record in self.records(None, "success")
        )

    @property
    def _unconfirmed(self) -> int:
        """How many texts fooled the model once, and not when it was asked again."""
        return sum(record.reason == NOT_CONFIRMED for record in self.records(None, "failed"))

    @property
    def _unlimited(self) -> list[str]:
        """The attacks that may change any share of the words."""
        options = {attack["key"]: attack["options"] for attack in self.manifest.spec["attacks"]}
        return [
            name
            for name, chosen in options.items()
            if chosen.get("max_changed") is None and MaxChanged.name not in str(chosen.get("constraint"))
        ]

    @property
    def layout(self) -> Layout:
        return LAYOUT

    def premade(self, *, keep_failed: bool = False) -> list[dict[str, Any]]:
        """The adversarial texts of this run with their true labels: a set for `st.evaluate(…, premade=…)`.

        Parameters
        ----------
        keep_failed
            Whether texts that an attack failed on stay in the set, as its search left them.
        """
        return list(premade_rows(self.rows(), keep_failed=keep_failed))

    def example(self, record: Record) -> Example:
        """A record as reports show it."""
        from stockade.report.examples import record_example

        return record_example(record, labelled=self.labelled)

    def document(self) -> Document:
        """The report of this run."""
        from stockade.workflows.attack.page import attack_document

        return attack_document([self])

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Ask the model again about every success, and compare labels, scores, edits and summary with the record."""
        from stockade.workflows.attack.verify import verify_attack

        return verify_attack(self, model, trust)

    def __repr__(self) -> str:
        rates = {name: attack["success_rate"]["value"] for name, attack in self.summary["attacks"].items()}
        return f"AttackResult({str(self.folder)!r}, success_rate={json.dumps(rates)})"


def defense_in_short(defense: Mapping[str, Any]) -> str:
    """A recorded defense with its options, as in `ranmask(rate=0.3, copies=50)`."""
    options = ", ".join(f"{name}={value}" for name, value in defense["options"].items() if value is not None)
    return f"{defense['name']}({options})"


_TEXTS = ("adversarial_premise", "first_flip_text", "first_flip_premise", "last_attempt", "last_attempt_premise")
_COUNTS = ("hits", "draws", "dismissed", "first_flip_query", "first_flip_queries")


def _parquet_types() -> Mapping[str, Any]:
    import pyarrow as pa

    words = [(name, pa.string()) for name in ("before", "after", "side")]
    edit = pa.struct([("op", pa.string()), ("index", pa.int64()), *words])
    return {
        "edits": pa.list_(edit),
        **{name: pa.list_(pa.float64()) for name in ("original_scores", "adversarial_scores")},
        **{name: pa.int64() for name in ("queries", "rows", "tried", "failed_queries", "truncated_words", *_COUNTS)},
        **{name: pa.float64() for name in ("perturbed_percent", "similarity", "hit_rate", "flip_share")},
        **{name: pa.bool_() for name in ("first_flip", "decision_based")},
        **{name: pa.string() for name in _TEXTS},
    }


LAYOUT = Layout(
    tuple(field.name for field in dataclasses.fields(Record)),
    ("original_scores", "adversarial_scores", "edits"),
    _parquet_types,
)
"""The columns of exported records."""
