"""What comes out of an attack on a translator."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import TypeAdapter

from stockade.core.attacked_translation import TranslationRecord
from stockade.experiment.export import Layout
from stockade.experiment.result import Verification
from stockade.experiment.spec import Spec
from stockade.experiment.store import Codec
from stockade.workflows.attack.common import AttacksResult
from stockade.workflows.translation import summary as numbers
from stockade.workflows.translation.spec import TranslationSpec

if TYPE_CHECKING:
    from stockade.report.document import Document
    from stockade.report.examples import Example


def as_row(record: TranslationRecord) -> dict[str, Any]:
    """A record as plain values, in the order of the documented fields."""
    row = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    row["edits"] = [dataclasses.asdict(edit) for edit in record.edits]
    return row


CODEC = Codec(as_row, TypeAdapter(TranslationRecord).validate_python)


class TranslationResult(AttacksResult):
    """The results of an attack on a translator: `summary` and `examples` are what most people want."""

    kind: ClassVar[str] = "translation"
    spec_type: ClassVar[type[Spec]] = TranslationSpec
    codec: ClassVar[Codec[Any]] = CODEC

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`, computed from the results."""
        scale = self.spec.similarity_scale
        attacks = {
            name: numbers.summarise_attack(list(self.records(name)), self.store.effort(name), scale)
            for name in self.attacks
        }
        model, data = self.manifest.inputs["model"], self.manifest.inputs["data"]
        done = min((attack["n"] + attack["errors"] for attack in attacks.values()), default=0)
        return {
            "schema": numbers.SCHEMA,
            "run": self.name,
            "model": model["reference"],
            "data": data["reference"],
            "complete": done == data["size"],
            "examples": data["size"],
            "warnings": numbers.warnings_for(attacks, model["white_box"]),
            "attacks": attacks,
        }

    @property
    def complete(self) -> bool:
        """Whether every sentence was attacked and, if wanted, every similarity was measured."""
        if not self.summary["complete"]:
            return False
        return not self.spec.similarity or all(
            record.similarity is not None for record in self.records() if record.adversarial is not None
        )

    @property
    def layout(self) -> Layout:
        return LAYOUT

    def example(self, record: TranslationRecord) -> Example:
        """A record as reports show it."""
        from stockade.workflows.translation.page import translation_example

        return translation_example(record)

    def document(self) -> Document:
        """The report of this run."""
        from stockade.workflows.translation.page import translation_document

        return translation_document([self])

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Translate every changed source again, alone, and compare translations, edits and summary with the record."""
        from stockade.workflows.translation.verify import verify_translation

        return verify_translation(self, model, trust)

    def __repr__(self) -> str:
        rates = {name: attack["success_rate"]["value"] for name, attack in self.summary["attacks"].items()}
        return f"TranslationResult({str(self.folder)!r}, success_rate={json.dumps(rates)})"


def _parquet_types() -> Mapping[str, Any]:
    import pyarrow as pa

    edit = pa.struct([("op", pa.string()), ("index", pa.int64()), ("before", pa.string()), ("after", pa.string())])
    return {
        "edits": pa.list_(edit),
        **{name: pa.int64() for name in ("queries", "rows", "truncated_words")},
        **{name: pa.float64() for name in ("perturbed_percent", "similarity", "hit_rate")},
    }


LAYOUT = Layout(tuple(field.name for field in dataclasses.fields(TranslationRecord)), ("edits",), _parquet_types)
"""The columns of exported records."""
