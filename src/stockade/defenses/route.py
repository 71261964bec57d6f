"""Detector-then-route: texts that look attacked are answered from masked copies, all others by the model as it is."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stockade.core.errors import OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.core.registry import published
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.detector import Detector, detector_hash, load_detector
from stockade.defenses.detector_features import EvidenceReader


@dataclass(frozen=True, slots=True)
class Routed:
    """Both branches' answers to a text, how likely it was attacked, and which branch answers."""

    plain: Scores
    robust: Scores
    suspicion: float
    caught: bool

    @property
    def scores(self) -> Scores:
        return self.robust if self.caught else self.plain


@published("route", paper="Zeng et al. 2021, RanMASK, conclusion (future work)", presets={"paper": {}})
@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Ask a detector first: suspicious texts are answered from masked copies, the others by the model as it is.

    Mask rate and copies are those that the detector was fitted with.

    Differences to the paper: it names the idea only; features, threshold and branches are ours. No certificate of the
    masked branch holds for the whole, because an attacker may choose the branch.

    Parameters
    ----------
    detector
        A file that `stockade detector` made.
    combine
        How the answers to the copies become one.
    draws
        `fresh` for other masks with every question; `fixed` for the same ones for all texts of equal length.
    mask
        What hides a word from a black box; other models have a mask token.
    """

    innermost: ClassVar[bool] = True
    detector: str = ""
    combine: Combination = "probability"
    draws: Draws = "fresh"
    mask: str = "[MASK]"

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def check(self, inner: Classifier) -> None:
        if not self.detector:
            raise OptionError(
                "route needs a detector: name its file, as in --defense route:detector=detector.json; "
                "stockade detector MODEL RUN --out detector.json fits one."
            )
        load_detector(self.detector)

    def resources(self) -> Mapping[str, str]:
        return {"detector": detector_hash(self.detector)}

    def remarks(self, inner: Classifier) -> Sequence[str]:
        """Numbers and threshold of a detector are those of the model it was fitted on."""
        fitted = load_detector(self.detector).fitted
        if fitted is None or fitted.model is None or not isinstance(inner, Fingerprinted):
            return ()
        same = fitted.model == inner.fingerprint()
        return () if same else ("The detector of route was fitted on another model: its threshold says little here.",)

    def surrogate(self) -> AdaptiveRoute:
        return AdaptiveRoute(self)

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        return (await self.routed(text, rng)).scores

    async def routed(self, text: Text, rng: np.random.Generator) -> Routed:
        """The answers of both branches and the detector's choice."""
        detector = load_detector(self.detector)
        if self.draws == "fixed":
            rng = np.random.default_rng(derive_seed("route", int(rng.integers(2**63)), len(str(text).split())))
        evidence = await _reader(detector, self.mask).read(text, rng)
        suspicion = detector.logistic.probability(evidence.numbers)
        robust = combine(evidence.rows, self.combine)
        return Routed(evidence.plain, robust, suspicion, suspicion >= detector.threshold)


@dataclass(frozen=True, slots=True)
class AdaptiveRoute:
    """The surrogate of route: a score that falls with the class's probability and with the detector's suspicion alike.

    It is what an attacker follows who knows the detector. The class is the routed answer to the original text,
    whichever branch gives it. While the routed answer still is that class, it has between one half and all of the
    probability, by `weight` the suspicion and for the rest its probability in both branches, each as likely as it is
    taken; once the answer is another, the routed answer itself is shown.
    """

    route: Route
    weight: float = 0.5

    @property
    def randomised(self) -> bool:
        return self.route.randomised

    def check(self, inner: Classifier) -> None:
        self.route.check(inner)

    def resources(self) -> Mapping[str, str]:
        return self.route.resources()

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        label = (await self.route.routed(text.original, self._same_always(text.original, rng))).scores.label
        routed = await self.route.routed(text, rng)
        if routed.scores.label != label:
            return routed.scores
        suspicion = routed.suspicion
        expected = suspicion * routed.robust.probability(label) + (1 - suspicion) * routed.plain.probability(label)
        probability = 0.5 + 0.5 * (self.weight * suspicion + (1 - self.weight) * expected)
        return _with_probability(routed.scores, label, probability)

    def _same_always(self, original: Text, rng: np.random.Generator) -> np.random.Generator:
        """The random choices about an original: the same in a whole search, or its class would vary between queries.

        Fixed choices are those of the route itself.
        """
        if self.route.draws == "fixed":
            return copy.deepcopy(rng)
        return np.random.default_rng(derive_seed("route", "original", repr(original.input)))


def _with_probability(scores: Scores, label: int, probability: float) -> Scores:
    """The scores with another probability of one class; the other classes share the rest as before."""
    others = sum(scores.probabilities) - scores.probabilities[label]
    rest = 1 - probability
    count = len(scores.probabilities) - 1
    return Scores(
        tuple(
            probability if number == label else rest * (value / others if others > 0 else 1 / count)
            for number, value in enumerate(scores.probabilities)
        )
    )


def _reader(detector: Detector, mask: str) -> EvidenceReader:
    return EvidenceReader(
        features=detector.features,
        rate=detector.rate,
        kept=detector.kept,
        copies=detector.copies,
        rare=detector.rare,
        counts=detector.counts,
        mask=mask,
    )
