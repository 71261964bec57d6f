"""Fits a detector of attacked texts on clean and attacked development texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from stockade.core.errors import DataError, OptionError, SearchStopped, unknown_name
from stockade.core.protocols import Classifier, CompositeClassifier, Fingerprinted
from stockade.core.seeds import derive_seed
from stockade.core.text import Text, TextInput
from stockade.defenses.detector import Detector, Fitted, Logistic, check_false_positives, threshold_at
from stockade.defenses.detector_features import FEATURES, EvidenceReader
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.models.language import LanguageModels

_DEFAULT_LANGUAGE = LanguageModels()
Observer = Callable[[int, int], None]
"""Is told how many are done, and of how many."""


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
    """A detector for texts that attacks made, such as the successes of a run, among clean ones.

    The threshold is the lowest that no more than the share `false_positives` of these clean texts reaches; on other
    texts the share will be somewhat larger. `observer` is told how many texts were looked at, and of how many.
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
    counts = dict(sorted(Counter(word.lower() for one in clean for word in Text.of(one).words).items()))
    reader = EvidenceReader(tuple(features), rate, kept, copies, rare, counts)
    readers = [without_own_words(reader, one) for one in clean] + [reader] * len(attacked)
    rows = _numbers(model, readers, [*clean, *attacked], seed, language, observer)
    logistic = Logistic.fit(rows, np.arange(len(rows)) >= len(clean))
    suspicions = [logistic.probability(row) for row in rows.tolist()]
    threshold = threshold_at(suspicions[: len(clean)], false_positives)
    taken = [suspicion >= threshold for suspicion in suspicions]
    looked_at = model.fingerprint() if isinstance(model, Fingerprinted) else None
    fitted = Fitted(len(clean), len(attacked), sum(taken[: len(clean)]), sum(taken[len(clean) :]), looked_at)
    return Detector(tuple(features), logistic, threshold, rate, kept, copies, rare, counts, fitted)


def without_own_words(reader: EvidenceReader, one: TextInput) -> EvidenceReader:
    """The reader as if this text had not been counted: the words of a text it has never seen may be rare as well."""
    own = Counter(word.lower() for word in Text.of(one).words)
    return replace(reader, counts={**reader.counts, **{word: reader.counts[word] - own[word] for word in own}})


def _numbers(
    model: Classifier,
    readers: Sequence[EvidenceReader],
    inputs: Sequence[TextInput],
    seed: int,
    language: LanguageModels,
    observer: Observer | None,
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    filling, embedding = FillingService(language.make_masked_lm), EmbeddingService(language.make_encoder)
    scoring = make_scoring(model, filling=filling, embedding=embedding)
    scheduler = Scheduler.for_classifier(scoring, filling=filling, embedding=embedding)

    def search(place: int, one: TextInput) -> Search[tuple[int, tuple[float, ...]]]:
        async def read() -> tuple[int, tuple[float, ...]]:
            rng = np.random.default_rng(derive_seed(seed, "detector", repr(one)))
            return place, (await readers[place].read(Text.of(one), rng)).numbers

        return Search(read)

    rows = np.zeros((len(inputs), len(readers[0].features)))
    searches = (search(place, one) for place, one in enumerate(inputs))
    for done, ended in enumerate(scheduler.run(searches), start=1):
        if isinstance(ended.result, SearchStopped):
            raise DataError(f"A text has no answer, so no detector can be fitted on it: {ended.result}.")
        place, numbers = ended.result
        rows[place] = numbers
        if observer is not None:
            observer(done, len(inputs))
    return rows
