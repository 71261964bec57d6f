"""A detector of attacked texts: a logistic regression over a few numbers, saved as a small JSON file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import DataError, OptionError, SearchStopped, unknown_name
from stockade.core.files import write_json
from stockade.core.protocols import Classifier, CompositeClassifier, Fingerprinted
from stockade.core.seeds import derive_seed
from stockade.core.shares import at_most
from stockade.core.text import Text, TextInput
from stockade.defenses.detector_features import FEATURES, EvidenceReader
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.models.language import LanguageModels

SCHEMA = 1
Observer = Callable[[int, int], None]
"""Called with how many texts are done, and of how many."""
_DEFAULT_LANGUAGE = LanguageModels()
_STEPS = 50
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic regression: the probability is the logistic function of a weighted sum of standardised numbers."""

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    def probability(self, numbers: Sequence[float]) -> float:
        parts = zip(numbers, self.means, self.scales, self.weights, strict=True)
        odds = self.bias + sum((number - mean) / scale * weight for number, mean, scale, weight in parts)
        return 1 / (1 + math.exp(-max(-500.0, min(500.0, odds))))

    @classmethod
    def fit(cls, rows: NDArray[np.float64], attacked: NDArray[np.bool_], ridge: float = 1.0) -> Logistic:
        """The weights of the least loss by Newton's method, both kinds of texts counting alike.

        The penalty is ridge / 2 · weights².
        """
        means, scales = rows.mean(0), rows.std(0)
        scales = np.where(scales < 1e-12, 1.0, scales)
        inputs = np.hstack([(rows - means) / scales, np.ones((len(rows), 1))])
        share = attacked.mean()
        counts = np.where(attacked, 0.5 / share, 0.5 / (1 - share))
        penalty = np.diag([ridge] * rows.shape[1] + [0.0])
        weights = np.zeros(inputs.shape[1])
        for _ in range(_STEPS):
            chances = 1 / (1 + np.exp(-np.clip(inputs @ weights, -500, 500)))
            slope = inputs.T @ (counts * (chances - attacked)) + penalty @ weights
            bend = inputs.T @ (inputs * (counts * chances * (1 - chances))[:, None]) + penalty
            step = np.linalg.lstsq(bend, slope, rcond=None)[0]
            weights = weights - step
            if np.abs(step).max() < _CLOSE:
                break
        *slopes, bias = weights.tolist()
        return cls(tuple(means.tolist()), tuple(scales.tolist()), tuple(slopes), bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """How many texts of each kind a detector was fitted on, and how many of those it takes to be attacked.

    `model` is the fingerprint of the model that it was fitted on, if that has one.
    """

    clean: int
    attacked: int
    false_alarms: int
    caught: int
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """Estimates how likely a text was attacked; from `threshold` on it is taken to be.

    Parameters
    ----------
    features, logistic
        The names of the numbers, and the regression over them.
    threshold
        The probability from which on a text is taken to be attacked.
    rate, kept, copies
        How words are hidden for the numbers: the share, the fewest that stay, and the copies of a text.
    rare, counts
        A word is rare up to this count, in these counts of the words of clean texts.
    fitted
        What the detector was fitted on.
    """

    features: tuple[str, ...]
    logistic: Logistic
    threshold: float
    rate: float
    kept: int
    copies: int
    rare: int
    counts: Mapping[str, int]
    fitted: Fitted | None = None

    def save(self, path: str | Path) -> None:
        """Write the detector as JSON."""
        write_json(Path(path), {"schema": SCHEMA, **dataclasses.asdict(self)})


def check_false_positives(share: float) -> None:
    if not 0 <= share < 1:
        raise OptionError(f"The false-positive rate is {share}, expected a share such as 0.05.")


def threshold_at(clean: Sequence[float], false_positives: float) -> float:
    """The lowest threshold that no more than this share of the clean texts reaches."""
    check_false_positives(false_positives)
    if not clean:
        raise DataError("There is no clean text to choose the detector's threshold on.")
    allowed = at_most(false_positives, len(clean))
    return math.nextafter(sorted(clean, reverse=True)[allowed], math.inf)


def load_detector(path: str) -> Detector:
    """Read a detector that was saved; the same content is parsed once."""
    return _parsed(path, _content(path))


def detector_hash(path: str) -> str:
    """A hash of a detector's file."""
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise OptionError(
            f"The detector {path} cannot be read ({error.strerror or error}). Fit one: stockade detector MODEL RUN "
            "--out detector.json"
        ) from None


@lru_cache(maxsize=4)
def _parsed(path: str, content: bytes) -> Detector:
    try:
        values: dict[str, Any] = json.loads(content)
        if values.pop("schema") != SCHEMA:
            raise ValueError("another format")
        parts = values.pop("logistic")
        means, scales, weights = (tuple(map(float, parts[name])) for name in ("means", "scales", "weights"))
        logistic = Logistic(means, scales, weights, float(parts["bias"]))
        fitted = values.pop("fitted", None)
        return Detector(
            logistic=logistic,
            features=tuple(values.pop("features")),
            fitted=None if fitted is None else Fitted(**fitted),
            **values,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OptionError(f"{path} is no detector of Stockade ({error}). Fit and save one anew.") from None


def fit_detector(
    model: Classifier,
    clean: Sequence[TextInput],
    attacked: Sequence[TextInput],
    *,
    false_positives: float = 0.05,
    features: Sequence[str] = FEATURES,
    rate: float = 0.3,
    kept: int = 1,
    copies: int = 100,
    rare: int = 1,
    seed: int = 0,
    language: LanguageModels = _DEFAULT_LANGUAGE,
    observer: Observer | None = None,
) -> Detector:
    """Fit a detector of texts that attacks made, such as the successes of a run, among clean ones.

    Parameters
    ----------
    model
        The model that will be defended, without defenses.
    clean, attacked
        The texts to fit on.
    false_positives
        The threshold is the lowest that no more than this share of the clean texts reaches; on other texts the share
        will be somewhat larger.
    features
        The names of the numbers that the detector uses.
    rate, kept, copies
        How words are hidden for the numbers: the share, the fewest that stay, and the copies of a text.
    rare
        Words that come up to so many times in the clean texts are rare.
    seed
        Decides which words are hidden.
    language
        The masked LM that says how unexpected words are.
    observer
        Called with how many texts are done, and of how many.
    """
    for name in features:
        if name not in FEATURES:
            raise unknown_name("feature of texts", name, FEATURES)
    if not features or not 0 < rate < 1:
        raise OptionError(
            f"A detector of {len(features)} features at a mask rate of {rate} cannot be fitted; expected at least one "
            "feature, and a rate between 0 and 1."
        )
    if copies < 1 or kept < 1 or rare < 0:
        raise OptionError(
            f"A detector that asks about {copies} copies, keeps {kept} words and calls words rare that come {rare} "
            "times cannot be fitted; expected at least 1, 1 and 0."
        )
    check_false_positives(false_positives)
    if isinstance(model, CompositeClassifier):
        raise OptionError("A detector is fitted on the model itself: give it without its defenses.")
    if not clean or not attacked:
        raise DataError(
            f"There are {len(clean)} clean and {len(attacked)} attacked texts, expected some of both: attack the model "
            "on development texts and take the texts that fooled it."
        )
    counts = dict(sorted(Counter(word.lower() for text in clean for word in Text.of(text).words).items()))
    reader = EvidenceReader(features=tuple(features), rate=rate, kept=kept, copies=copies, rare=rare, counts=counts)
    readers = [without_words_of(reader, text) for text in clean] + [reader] * len(attacked)
    rows = _numbers(model, readers, [*clean, *attacked], seed, language, observer)
    logistic = Logistic.fit(rows, np.arange(len(rows)) >= len(clean))
    suspicions = [logistic.probability(row) for row in rows.tolist()]
    threshold = threshold_at(suspicions[: len(clean)], false_positives)
    taken = [suspicion >= threshold for suspicion in suspicions]
    fitted = Fitted(
        clean=len(clean),
        attacked=len(attacked),
        false_alarms=sum(taken[: len(clean)]),
        caught=sum(taken[len(clean) :]),
        model=model.fingerprint() if isinstance(model, Fingerprinted) else None,
    )
    return Detector(
        features=tuple(features),
        logistic=logistic,
        threshold=threshold,
        rate=rate,
        kept=kept,
        copies=copies,
        rare=rare,
        counts=counts,
        fitted=fitted,
    )


def without_words_of(reader: EvidenceReader, text: TextInput) -> EvidenceReader:
    """The reader as if this text had not been counted: the words of a text it has never read may be rare as well."""
    words = Counter(word.lower() for word in Text.of(text).words)
    return replace(reader, counts={**reader.counts, **{word: reader.counts[word] - words[word] for word in words}})


def _numbers(
    model: Classifier,
    readers: Sequence[EvidenceReader],
    inputs: Sequence[TextInput],
    seed: int,
    language: LanguageModels,
    observer: Observer | None,
) -> NDArray[np.float64]:
    """A row of numbers for each text."""
    filling, embedding = FillingService(language.make_masked_lm), EmbeddingService(language.make_encoder)
    scoring = make_scoring(model, filling=filling, embedding=embedding)
    scheduler = Scheduler.for_classifier(scoring, filling=filling, embedding=embedding)

    def search(place: int, text: TextInput) -> Search[tuple[int, tuple[float, ...]]]:
        async def read() -> tuple[int, tuple[float, ...]]:
            rng = np.random.default_rng(derive_seed(seed, "detector", repr(text)))
            return place, (await readers[place].read(Text.of(text), rng)).numbers

        return Search(read)

    rows = np.zeros((len(inputs), len(readers[0].features)))
    searches = (search(place, text) for place, text in enumerate(inputs))
    for done, ended in enumerate(scheduler.run(searches), start=1):
        if isinstance(ended.result, SearchStopped):
            raise DataError(f"A text has no answer, so no detector can be fitted on it: {ended.result}.")
        place, numbers = ended.result
        rows[place] = numbers
        if observer is not None:
            observer(done, len(inputs))
    return rows
