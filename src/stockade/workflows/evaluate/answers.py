"""What a defended model says of the clean and the pre-made texts, once per seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from stockade.core.errors import SearchStopped
from stockade.core.example import Example, Scores
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import Text
from stockade.defenses.defended import remarks_on
from stockade.engine.batching import TokenBudget
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Draw, Score, clean_draw
from stockade.engine.services import innermost
from stockade.experiment.inputs import fingerprint_of, tuning_memory
from stockade.experiment.store import Codec
from stockade.models.language import LanguageModels
from stockade.workflows.attack.premade import ATTEMPTS
from stockade.workflows.evaluate.inputs import EvaluationInputs
from stockade.workflows.evaluate.views import counts_votes

_PROBED_TEXTS = 50
_PROBES = 4
_SURE = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Predictions:
    """True and predicted classes of texts; None where the model has no answer.

    Parameters
    ----------
    ids, labels, predicted
        Of each text.
    attempts
        Of a pre-made set that keeps failed attempts: whether the attack `succeeded` or `failed` on each text.
    """

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    predicted: tuple[str | None, ...]
    attempts: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attempts that there are; none where only successes are in the set."""
        return tuple(kind for kind in ATTEMPTS if kind in self.attempts)

    def of_kind(self, kind: str) -> Predictions:
        """Only the texts of one kind of attempt."""
        texts = zip(self.ids, self.labels, self.predicted, self.attempts, strict=True)
        chosen = [text for text in texts if text[-1] == kind]
        ids, labels, predicted, attempts = zip(*chosen, strict=True) if chosen else ((), (), (), ())
        return Predictions(ids, labels, predicted, attempts)

    def correct(self) -> tuple[int, int]:
        """How many are right, of how many answers."""
        pairs = [
            (label, answer) for label, answer in zip(self.labels, self.predicted, strict=True) if answer is not None
        ]
        return sum(label == answer for label, answer in pairs), len(pairs)


@dataclass(frozen=True, slots=True)
class Votes:
    """How much the votes of a defense tell a search.

    Parameters
    ----------
    entropy
        The mean entropy of the votes on the clean texts (natural logarithm).
    unanimous
        The share of clean texts on which all copies agree.
    same_answer
        The share of texts with one word less that get the very same one-hot answer.
    """

    entropy: float | None
    unanimous: float | None
    same_answer: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one model in one chain of defenses says with one seed, and how it can be attacked.

    Parameters
    ----------
    deterministic
        Whether it always gives a text the same answer.
    views
        The views that a search may have of it.
    clean, premade
        Its answers to the clean texts, and to each pre-made set.
    votes
        What its votes tell a search; None if it does not vote.
    remarks
        What a reader should know of its defenses.
    fingerprint
        Of the model in its defenses and the files that they read; None if it has none.
    """

    deterministic: bool
    views: tuple[str, ...]
    clean: Predictions
    premade: Mapping[str, Predictions]
    votes: Votes | None = None
    remarks: tuple[str, ...] = ()
    fingerprint: str | None = None


def ask(inputs: EvaluationInputs, name: str, classifier: Classifier, seed: int, batch_tokens: int | None) -> Answers:
    """Ask a model in its defenses about all texts.

    Parameters
    ----------
    inputs, name
        The texts, and which model it is.
    classifier
        The model in its defenses.
    seed
        Names the random choices.
    batch_tokens
        Tokens per batch; tuned if None.
    """
    questioner = _Questioner(classifier, inputs.spec.language, seed, batch_tokens)
    examples = list(inputs.examples(name))
    return Answers(
        deterministic=classifier.deterministic,
        views=tuple(inputs.views(name, classifier)),
        clean=questioner.predictions(examples),
        premade=questioner.premade(inputs, name),
        votes=questioner.votes(examples) if counts_votes(classifier) else None,
        remarks=tuple(remarks_on(classifier)),
        fingerprint=fingerprint_of(classifier),
    )


def ask_premade(
    inputs: EvaluationInputs, name: str, classifier: Classifier, seed: int, batch_tokens: int | None = None
) -> dict[str, Predictions]:
    """Ask a model in its defenses about the pre-made texts alone; the parameters are those of `ask`."""
    return _Questioner(classifier, inputs.spec.language, seed, batch_tokens).premade(inputs, name)


def predictions_of(
    classifier: Classifier,
    examples: Iterable[Example],
    language: LanguageModels,
    seed: int = 0,
    batch_tokens: int | None = None,
) -> Predictions:
    """Ask a model in its defenses about each text once, with the random choices that all who ask about clean texts
    share.

    Parameters
    ----------
    classifier, examples
        The model, and the texts with its classes.
    language
        The masked LM and sentence encoder that defenses may ask.
    seed
        Names the random choices.
    batch_tokens
        Tokens per batch; tuned if None.
    """
    return _Questioner(classifier, language, seed, batch_tokens).predictions(examples)


class _Questioner:
    """Asks one classifier; random choices are named by seed, purpose and text."""

    def __init__(self, classifier: Classifier, language: LanguageModels, seed: int, batch_tokens: int | None) -> None:
        self._labels, self._seed = classifier.labels, seed
        self._service = make_scoring(
            classifier,
            TokenBudget(batch_tokens, tuning_memory(innermost(classifier))),
            filling=FillingService(language.make_masked_lm),
            embedding=EmbeddingService(language.make_encoder),
        )

    def predictions(self, examples: Iterable[Example]) -> Predictions:
        listed = list(examples)
        answers = self._scores([(example.text, clean_draw(self._seed, example.id)) for example in listed])
        return Predictions(
            tuple(example.id for example in listed),
            tuple(self._labels[example.label] for example in listed),
            tuple(None if scores is None else self._labels[scores.label] for scores in answers),
        )

    def premade(self, inputs: EvaluationInputs, name: str) -> dict[str, Predictions]:
        """The answers to each pre-made set."""
        return {
            premade: replace(self.predictions(inputs.premade(premade, name)), attempts=inputs.attempts(premade))
            for premade in inputs.spec.premade
        }

    def votes(self, examples: Sequence[Example]) -> Votes:
        answers = self._scores([(example.text, self._draw("votes", example.id)) for example in examples])
        entropies = [_entropy(scores) for scores in answers if scores is not None]
        unanimous = [float(max(scores.probabilities) > _SURE) for scores in answers if scores is not None]
        shorter = [
            (at, (example.text.delete(index), self._draw("probes", f"{example.id} without {index}")))
            for at, example in enumerate(examples[:_PROBED_TEXTS])
            for index in self._probed_words(example)
        ]
        probed = self._scores([question for _, question in shorter])
        same = [
            float(_same_one_hot(answer, probe))
            for (at, _), probe in zip(shorter, probed, strict=True)
            if probe is not None and (answer := answers[at]) is not None
        ]
        return Votes(_mean(entropies), _mean(unanimous), _mean(same))

    def _probed_words(self, example: Example) -> list[int]:
        """A few words of a text that has others besides."""
        words = len(example.text)
        if words < 2:
            return []
        return derive_rng(self._seed, "probes", example.id).sample(range(words), min(_PROBES, words))

    def _draw(self, purpose: str, name: str) -> Draw:
        return Draw(derive_seed(self._seed, purpose, name), 0)

    def _scores(self, questions: Sequence[tuple[Text, Draw]]) -> list[Scores | None]:
        requests = [Score([text], draw=draw) for text, draw in questions]
        answers = self._service.answer_scores(requests) if requests else []
        return [None if isinstance(answer, SearchStopped) else answer[0] for answer in answers]


def _entropy(scores: Scores) -> float:
    return -sum(p * math.log(p) for p in scores.probabilities if p > 0)


def _same_one_hot(first: Scores, second: Scores) -> bool:
    return first.label == second.label and min(max(first.probabilities), max(second.probabilities)) > _SURE


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None


def _read(document: Mapping[str, Any]) -> Answers:
    votes = document["votes"]
    return Answers(
        deterministic=document["deterministic"],
        views=tuple(document["views"]),
        clean=_read_predictions(document["clean"]),
        premade={name: _read_predictions(value) for name, value in document["premade"].items()},
        votes=None if votes is None else Votes(**votes),
        remarks=tuple(document["remarks"]),
        fingerprint=document["fingerprint"],
    )


def _read_predictions(value: Mapping[str, Any]) -> Predictions:
    ids, labels, predicted = (tuple(value[name]) for name in ("ids", "labels", "predicted"))
    return Predictions(ids, labels, predicted, tuple(value.get("attempts", ())))


CODEC: Codec[Answers] = Codec(asdict, _read)
