"""A certificate as a page shows it: its words, how much of the text its radius is, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from stockade.certificates.certificate import Certificate
from stockade.certificates.documents import statement
from stockade.certificates.method import allowed_changes, changeable_words
from stockade.certificates.pages.ground import ground
from stockade.certificates.registry import NamedMethod
from stockade.certificates.run import CertificateRun
from stockade.defenses.registry import make_defense

TEXTS_PER_METHOD = 200
MOST_WORDS = 600
MOST_CELLS = 100
"""More words than these are not told apart in the bar."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of `text.split()`, and whether it may be one of those that are changed."""

    text: str
    open: bool


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """A certificate with everything that is drawn of it."""

    certificate: Certificate
    sound: bool
    statement: str
    words: tuple[Word, ...]
    more_words: int
    changeable: str | None
    """What the radius allows, in words; None if it allows nothing."""
    ground: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Of the class: right, wrong, or none, if there is no class or nobody has said which one is true."""
        if self.certificate.radius is None or self.certificate.label is None:
            return "none"
        return "right" if self.certificate.correct else "wrong"

    @property
    def filled(self) -> float:
        """The radius as a share of the words, in percent."""
        words = max(1, self.certificate.words)
        return 100 * min(1.0, (self.certificate.radius or 0) / words)

    @property
    def cells(self) -> int:
        return self.certificate.words if self.certificate.words <= MOST_CELLS else 0


def shown_certificates(run: CertificateRun, method: str, most: int) -> tuple[list[ShownCertificate], int]:
    """Texts that ended in an error first, then the others in the order of the data, up to a limit; and how many did
    not fit.
    """
    failed: list[Certificate] = []
    others: list[Certificate] = []
    for certificate in run.iterate(method):
        kind = failed if certificate.status == "error" else others
        if len(kind) < most:
            kind.append(certificate)
    chosen = (failed + others)[:most]
    numbers = run.summary["methods"][method]
    return [shown(run, one) for one in chosen], numbers["n"] + numbers["errors"] - len(chosen)


def shown(run: CertificateRun, certificate: Certificate) -> ShownCertificate:
    method = run.methods[certificate.method]
    words = certificate.text.split()
    recorded, told = NamedMethod.from_description(method).method, run.summary["defenses"][0]
    defense = make_defense(told["name"], **told["options"]).defense
    open_words = changeable_words(recorded, certificate, defense) if certificate.radius else None
    marks = open_words or (False,) * len(words)
    return ShownCertificate(
        certificate,
        method["sound"],
        statement(certificate, method),
        tuple(Word(word, mark) for word, mark in zip(words[:MOST_WORDS], marks, strict=False)),
        max(0, len(words) - MOST_WORDS),
        allowed_changes(recorded, certificate) if certificate.radius else None,
        tuple(ground(certificate, run.labels)),
    )
