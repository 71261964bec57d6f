"""What comes out of a certification: certificates, how many texts are certified at each radius, what it cost."""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from stockade.certificates.certificate import (
    Certificate,
    alpha_of,
    described,
    from_description,
    statement,
    threat_in_words,
)
from stockade.certificates.medians import certified_curve, curve_band, median_bound, median_rate
from stockade.certificates.registry import NamedMethod
from stockade.core.statistics import wilson
from stockade.defenses.registry import make_defense
from stockade.experiment.export import Layout
from stockade.experiment.result import Result, Verification
from stockade.experiment.spec import Spec
from stockade.experiment.store import Codec, Effort
from stockade.experiment.usage import read_usage
from stockade.workflows.certify.spec import CertifySpec

if TYPE_CHECKING:
    from stockade.report.document import Document

SCHEMA = 2
"""Since 2 a text that ended in an error counts as not certified; the numbers without those are under `answered`."""
BAND = 0.05
"""The band holds at all radii at once but for this probability."""
CODEC = Codec(described, from_description)


@dataclass(frozen=True, slots=True)
class Context:
    """What a run says of one of its methods, and so what its certificates must be like."""

    named: NamedMethod
    defense: Any
    labels: tuple[str, ...]
    seed: int


class CertifyResult(Result):
    """The certificates of a run: `summary` and `certificates` are what most people want."""

    kind: ClassVar[str] = "certify"
    spec_type: ClassVar[type[Spec]] = CertifySpec

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of the model."""
        return tuple(self.manifest.inputs["model"]["labels"])

    @property
    def labelled(self) -> bool:
        """Whether the data had labels."""
        return not self.manifest.spec["unlabelled"]

    @property
    def methods(self) -> dict[str, Mapping[str, Any]]:
        """The methods by key, each with its options, threat and whether it is sound."""
        return {method["key"]: method for method in self.manifest.spec["methods"]}

    @cached_property
    def contexts(self) -> dict[str, Context]:
        """What the certificates of each method must be like, from the manifest alone."""
        recorded = self.manifest.inputs["model"]["defenses"][0]
        defense = make_defense(recorded["name"], **recorded["options"]).defense
        methods = self.spec.methods_per_text(self.manifest.inputs["data"]["size"])
        return {key: Context(named, defense, self.labels, self.spec.seed) for key, named in methods.items()}

    def records(self, method: str | None = None, status: str | None = None) -> Iterator[Certificate]:
        """The certificates one by one, without holding them all.

        Parameters
        ----------
        method, status
            Only those of this method or status; all if None.
        """
        return map(CODEC.read, self.store.documents(method, status))

    @cached_property
    def certificates(self) -> tuple[Certificate, ...]:
        """Every certificate of the run."""
        return tuple(self.records())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of `summary.json`, computed from the certificates."""
        size = self.manifest.inputs["data"]["size"]
        methods = {
            key: summarise_method(list(self.records(key)), method, self.store.effort(key), self.labelled)
            for key, method in self.methods.items()
        }
        done = min((numbers["n"] for numbers in methods.values()), default=0)
        usage = read_usage(self.folder)
        return {
            "schema": SCHEMA,
            "run": self.name,
            "model": self.manifest.inputs["model"]["reference"],
            "defenses": self.manifest.inputs["model"].get("defenses", []),
            "data": self.manifest.inputs["data"]["reference"],
            **({} if usage is None else {"usage": usage}),
            "complete": done == size,
            "examples": size,
            "familywise": self.manifest.spec["familywise"],
            "labelled": self.labelled,
            "methods": methods,
        }

    def shortfall(self) -> str | None:
        """How many texts have no result: a time limit was reached."""
        if self.summary["complete"]:
            return None
        return f"not all texts have a result. Go on with: stockade resume {shlex.quote(str(self.folder))}"

    @property
    def complete(self) -> bool:
        """Whether every text has a certificate, or a reason why there is none."""
        return bool(self.summary["complete"])

    def problem(self) -> str | None:
        """The first error of a method that has an answer to no text at all."""
        for key, numbers in self.summary["methods"].items():
            if numbers["errors"] and not numbers["answered"]["n"]:
                reason = next(self.records(key, "error")).reason
                return f"{key}: all {numbers['errors']} texts ended in an error; the first: {reason}"
        return None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each certificate with what it needs to be understood and checked elsewhere."""
        return map(self._row, self.records())

    def _row(self, certificate: Certificate) -> dict[str, Any]:
        method, model = self.methods[certificate.method], self.manifest.inputs["model"]
        return {
            "statement": statement(certificate, method),
            **described(certificate),
            "selection": None if certificate.selection is None else list(certificate.selection),
            "sound": method["sound"],
            "threat": threat_in_words(method, certificate.premise is not None),
            "alpha": alpha_of(certificate),
            "options": method["options"],
            "model": model["reference"],
            "model_fingerprint": model["fingerprint"],
            "defenses": model.get("defenses", []),
            "classes": model["labels"],
            "run_seed": self.manifest.spec["seed"],
            "version": self.manifest.versions["stockade"],
        }

    @property
    def layout(self) -> Layout:
        return LAYOUT

    def document(self) -> Document:
        """The report of this run."""
        from stockade.workflows.certify.page import certify_document

        return certify_document([self])

    def verify(self, model: object = None, *, trust: bool = False, resample: bool = False) -> Verification:
        """Compute every certificate again from its evidence, without the model.

        Parameters
        ----------
        model
            The model, to ask it about fresh copies as well.
        trust
            Whether code that the folder names may be run; only matters when the model is loaded.
        resample
            Ask the model about fresh copies, found where the run found it.
        """
        from stockade.workflows.certify.verify import recompute, resample_certificates

        verification = recompute(self)
        if model is None and not resample:
            return verification
        resampled = resample_certificates(self, model, trust=trust)
        problems = () if resampled.holds else (*resampled.refuted, resampled.sentence)
        return verification.with_problems(problems)

    def __repr__(self) -> str:
        medians = {key: numbers["median_radius"] for key, numbers in self.summary["methods"].items()}
        return f"CertifyResult({str(self.folder)!r}, median_radius={medians})"


def summarise_method(
    certificates: Sequence[Certificate], method: Mapping[str, Any], effort: Effort, labelled: bool
) -> dict[str, Any]:
    """One method's numbers. A text counts at radius d if its true class is certified there, or any class where the data
    have no labels. One that ended in an error has no certificate and counts as such, like an abstention; `answered` has
    the same numbers without the errors.
    """
    statuses = Counter(certificate.status for certificate in certificates)
    answered = [certificate for certificate in certificates if certificate.status != "error"]
    certified = statuses["certified"] + statuses["claimed"]
    right = sum(certificate.correct for certificate in answered)
    return {
        "sound": method["sound"],
        "threat": threat_in_words(method, any(certificate.premise is not None for certificate in certificates)),
        "alpha": method["options"].get("alpha"),
        "n": len(certificates),
        "errors": statuses["error"],
        "abstained": statuses["abstained"],
        "certified": certified,
        "wrong": certified - right if labelled else None,
        **_shares(certificates, labelled),
        "answered": {"n": len(answered), **_shares(answered, labelled)},
        "mean_copies": sum(certificate.copies for certificate in answered) / len(answered) if answered else None,
        "truncated": sum(certificate.truncated for certificate in answered),
        "seconds": round(effort.seconds, 3),
        "model_rows": effort.model_rows,
    }


def _shares(certificates: Sequence[Certificate], labelled: bool) -> dict[str, Any]:
    """What share of texts is certified, at each radius and in the middle."""
    radii = [certificate.radius if certificate.correct or not labelled else None for certificate in certificates]
    words = [max(1, certificate.words) for certificate in certificates]
    right = sum(certificate.correct for certificate in certificates)
    curve = zip(certified_curve(radii), curve_band(radii, BAND), strict=True) if radii else ()
    return {
        "accuracy": wilson(right, len(certificates)) if labelled else None,
        "curve": [
            {"radius": radius, "share": share, "low": low, "high": high}
            for radius, (share, (low, high)) in enumerate(curve)
        ],
        "median_radius": median_bound(radii) if radii else None,
        "median_rate": median_rate(radii, words) if radii else None,
        "mean_radius": sum(radius or 0 for radius in radii) / len(radii) if radii else None,
    }


def _parquet_types() -> Mapping[str, Any]:
    import pyarrow as pa

    return {
        **{name: pa.int64() for name in ("radius", "insertions", "words", "copies", "run_seed")},
        **{name: pa.bool_() for name in ("truncated", "sound")},
        "seed": pa.uint64(),
        "alpha": pa.float64(),
    }


LAYOUT = Layout(
    (
        "statement",
        *(field.name for field in dataclasses.fields(Certificate)),
        "sound",
        "threat",
        "alpha",
        "options",
        "model",
        "model_fingerprint",
        "defenses",
        "classes",
        "run_seed",
        "version",
    ),
    ("selection", "evidence", "options", "defenses", "classes"),
    _parquet_types,
)
"""The columns of exported certificates."""
