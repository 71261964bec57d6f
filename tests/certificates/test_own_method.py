"""A certifiable defense of one's own: the defense and its method, and every command knows what its evidence says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest

import stockade as st
from stockade.certificates.bounds import partition_radius
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import EVIDENCE, Evidence, exact_refutation, read_evidence, votes_by_class
from stockade.certificates.method import CertificationInput, MethodResult, certified_defense
from stockade.certificates.registry import METHODS, default_method, load_methods, register_method
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.registry import DEFENSES
from stockade.engine.requests import Score
from stockade.workflows.certify.verify import certificate_problems, resample
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0}, bias=0.1)


@dataclass(frozen=True)
class WordVotes:
    """The first file, a defense: every word is asked about alone, and has one vote."""

    innermost: ClassVar[bool] = True
    randomised: ClassVar[bool] = False

    def check(self, inner: Classifier) -> None:
        """Any model will do."""

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        counts = await self.votes(text)
        return Scores(tuple(count / sum(counts) for count in counts))

    async def votes(self, text: Text) -> tuple[int, ...]:
        scores = await Score([Text.parse(word) for word in str(text).split()])
        return tuple(sum(score.label == label for score in scores) for label in range(len(scores[0].probabilities)))


@dataclass(frozen=True, slots=True)
class WordVoteEvidence:
    """The second file, its method: the evidence ..."""

    counts: tuple[int, ...]
    chosen: int

    @property
    def classes(self) -> int:
        return len(self.counts)

    @property
    def copies(self) -> int:
        return sum(self.counts)

    @property
    def alpha(self) -> None:
        return None

    def radius(self) -> int | None:
        return partition_radius(self.counts, self.chosen)

    def insertions(self) -> None:
        return None

    def explain(self, labels: Sequence[str]) -> list[str]:
        return [votes_by_class(labels, self.counts, self.copies, f"{self.copies} single words")]

    def refutation(self, *, chosen: int, radius: int, insertions: int | None) -> str | None:
        return exact_refutation(self, chosen, radius)

    def described(self) -> dict[str, Any]:
        return {"kind": "word-votes", "counts": list(self.counts), "chosen": self.chosen}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        return cls(tuple(description["counts"]), description["chosen"])


@dataclass(frozen=True, slots=True)
class WordVoteMethod:
    """... and the certificate: a changed word changes one vote."""

    sound: ClassVar[bool] = True
    default: ClassVar[bool] = True
    certifies: ClassVar[type] = WordVotes
    threat: ClassVar[str] = "any change of up to d words, the number of words unchanged"

    def check(self, classifier: Classifier) -> None:
        certified_defense(classifier, WordVotes, "word-votes", "word-votes")

    async def certify(self, inputs: CertificationInput, classifier: Classifier) -> MethodResult:
        counts = await certified_defense(classifier, WordVotes, "word-votes", "word-votes").votes(inputs.text)
        return MethodResult(WordVoteEvidence(counts, counts.index(max(counts))))

    def deviations(self, certificate: Certificate, evidence: Evidence, defense: WordVotes) -> Iterator[str]:
        if evidence.copies != len(certificate.text.split()):
            yield f"the evidence is of {evidence.copies} words"

    def allowed_changes(self, certificate: Certificate) -> str:
        return f"{certificate.radius} single votes"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered as in a user's own file, and forgotten after the test."""
    load_methods()  # what is imported meanwhile must not be forgotten with the copies below
    monkeypatch.setattr(DEFENSES, "_loaded", {**DEFENSES._loaded})
    monkeypatch.setattr(METHODS, "_loaded", {**METHODS._loaded})
    monkeypatch.setattr(EVIDENCE, "_classes", {**EVIDENCE._classes})
    st.register_defense("word-votes")(WordVotes)
    EVIDENCE.register("word-votes")(WordVoteEvidence)
    register_method("word-votes")(WordVoteMethod)


def test_it_is_the_method_for_its_defense_and_every_command_works(tmp_path: Path) -> None:
    robust = st.defend(VICTIM, "word-votes")
    assert default_method(robust).name == "word-votes"
    run = st.certify(robust, [("good good good bad good", "positive"), ("bad bad film bad", "negative")])
    first, second = run.certificates
    assert (first.predicted, first.radius, first.copies) == ("positive", 1, 5)  # 4 of 5 votes, ties go to negative
    assert (second.predicted, second.radius) == ("negative", 1)  # 3 of 4 votes: "film" is positive by the bias
    assert read_evidence(first.evidence or {}) == WordVoteEvidence((1, 4), 1)
    assert run.verify().holds
    assert resample(run, robust).holds
    assert resample(run, st.defend(WeightVictim({"good": -4.0}), "word-votes")).certain == 2
    run.document().write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1 single votes" in page
    assert "votes of 5 single words: negative 1, positive 4" in page
    context = run.contexts["word-votes"]
    forged = dataclasses.replace(first, evidence=WordVoteEvidence((0, 9), 1).described(), radius=4, copies=9)
    assert [*certificate_problems(forged, context)] == ["the evidence is of 9 words"]


def test_other_models_are_told_what_it_needs() -> None:
    with pytest.raises(st.StockadeError, match="needs a model inside word-votes, and this one is inside ranmask"):
        st.certify(st.defend(VICTIM, "ranmask"), [("good", "positive")], "word-votes")
