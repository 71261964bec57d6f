"""What a defended model says of the clean and the pre-made texts, once per seed, kept in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stockade.core.errors import RunError, SearchStopped
from stockade.core.example import Example, Scores
from stockade.core.files import make_folder, write_json
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import Text
from stockade.defenses.defended import remarks_on
from stockade.engine.batching import TokenBudget
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Draw, Score, clean_draw
from stockade.engine.scheduler import innermost
from stockade.evaluation.chains import Chain
from stockade.evaluation.inputs import Inputs
from stockade.evaluation.ways import lets_vote
from stockade.runs.attack import tuning_memory

SCHEMA = 1
_PROBED_TEXTS = 50
_PROBES = 4
_SURE = 1 - 1e-9


def read_or_ask(path: Path, inputs: Inputs, name: str, chain: Chain, seed: int, batch_tokens: int | None) -> Any:
    """The answers of one model in one chain of defenses."""
    if path.exists():
        return _read(path)
    classifier = inputs.defended(name, chain, seed)
    asking = _Asking(classifier, inputs, seed, batch_tokens)
    examples = list(inputs.examples(name))
    content = {
        "schema": SCHEMA,
        "deterministic": classifier.deterministic,
        "ways": list(inputs.views(name, classifier)),
        "clean": asking.about(examples),
        "premade": {premade: asking.about(inputs.premade(premade, name)) for premade in inputs.premade_names},
        "votes": asking.votes(examples) if lets_vote(classifier) else None,
        "remarks": remarks_on(classifier),
    }
    make_folder(path.parent)
    write_json(path, content)
    return content


def _read(path: Path) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"format {content['schema']}")
        return content
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({error}). Remove it and resume: it is made again.") from None


class _Asking:
    """Asks one classifier; random choices are named by seed, purpose and text."""

    def __init__(self, classifier: Classifier, inputs: Inputs, seed: int, batch_tokens: int | None) -> None:
        language = inputs.request.language
        self._labels, self._seed = classifier.labels, seed
        self._service = make_scoring(
            classifier,
            TokenBudget(batch_tokens, tuning_memory(innermost(classifier))),
            filling=FillingService(language.make_masked_lm),
            embedding=EmbeddingService(language.make_encoder),
        )

    def about(self, examples: Iterable[Example]) -> dict[str, list[Any]]:
        """True and predicted classes; None where the model has no answer."""
        known = list(examples)
        found = self._scores([(example.text, clean_draw(self._seed, example.id)) for example in known])
        return {
            "ids": [example.id for example in known],
            "labels": [self._labels[example.label] for example in known],
            "predicted": [None if scores is None else self._labels[scores.label] for scores in found],
        }

    def votes(self, examples: Sequence[Example]) -> dict[str, Any]:
        """How much the votes tell a search: their entropy on the clean texts (natural logarithm), how many texts all
        copies agree on, and how many texts with one word less get the very same one-hot answer.
        """
        answers = self._scores([(example.text, self._draw("votes", example.id)) for example in examples])
        entropies = [_entropy(scores) for scores in answers if scores is not None]
        unanimous = [max(scores.probabilities) > _SURE for scores in answers if scores is not None]
        shorter = [
            (at, (example.text.delete(index), self._draw("probes", f"{example.id} without {index}")))
            for at, example in enumerate(examples[:_PROBED_TEXTS])
            for index in self._chosen(example)
        ]
        probed = self._scores([asked for _, asked in shorter])
        same = [
            _same_one_hot(answers[at], probe)
            for (at, _), probe in zip(shorter, probed, strict=True)
            if probe is not None and answers[at] is not None
        ]
        return {
            "entropy": _mean(entropies),
            "unanimous": _mean(list(map(float, unanimous))),
            "same_answer": _mean(list(map(float, same))),
        }

    def _chosen(self, example: Example) -> list[int]:
        """A few words of a text that has others besides."""
        words = len(example.text)
        if words < 2:
            return []
        return derive_rng(self._seed, "probes", example.id).sample(range(words), min(_PROBES, words))

    def _draw(self, purpose: str, name: str) -> Draw:
        return Draw(derive_seed(self._seed, purpose, name), 0)

    def _scores(self, asked: Sequence[tuple[Text, Draw]]) -> list[Scores | None]:
        requests = [Score([text], draw=draw) for text, draw in asked]
        answers = self._service.answer_scores(requests) if requests else []
        return [None if isinstance(answer, SearchStopped) else answer[0] for answer in answers]


def _entropy(scores: Scores) -> float:
    return -sum(p * math.log(p) for p in scores.probabilities if p > 0)


def _same_one_hot(one: Scores | None, other: Scores) -> bool:
    return (
        one is not None and one.label == other.label and min(max(one.probabilities), max(other.probabilities)) > _SURE
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None
