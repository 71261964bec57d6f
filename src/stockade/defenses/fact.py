"""FACT: train on every text together with alternatives of it in other words, which are made once for each text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stockade.core.errors import ModelError, OptionError, SearchStopped
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_rng
from stockade.core.text import Text, TextInput
from stockade.defenses.switch import Switch, check_importance
from stockade.engine.language import EmbeddingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.models.adapters import load_model
from stockade.models.language import LanguageModels

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.models.encoding import EncodedText, TextEncoder
    from stockade.training.objective import Batch, Objective, TrainingKit

_MNLI = {"perturb_words": 9, "multiplier": 12, "total_alternatives": 4}
_IMDB = {**_MNLI, "perturb_words": 23}
_CONCURRENCY = 256
Changes = tuple[tuple[int, str], ...]
"""An alternative as the words it replaces: much smaller than the text."""


@published(
    "fact",
    paper="Mein et al. 2020, FireBERT, section 2.1.6",
    presets={"paper": _MNLI, "mnli": _MNLI, "imdb": _IMDB, "authors": {"importance": "half_sq_norm"}},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Switch):
    """Train on each text together with alternatives of it that have important words replaced (FACT).

    The alternatives are SWITCH's, whose options FACT has too, with the text's label. The gradients of a model that the
    training does not touch say which words are important.

    Differences to the paper: those of SWITCH; alternatives are drawn from a pool, made once, so that later epochs cost
    no more than their rows (in one epoch, as published, it is the same).

    Parameters
    ----------
    perturb_words, candidates, match_pos, stop_words, leave_alone, random_out_of, similarity, scale, threshold, \
multiplier, importance, neighbours
        As in `Switch`.
    total_alternatives
        How many alternatives of each text a step adds.
    reference_model
        The model whose gradients are used; None for the one that the training starts from.
    pool
        How many alternatives of a text are made when it is first trained on; each step draws from them. None for
        `total_alternatives`.
    """

    adds_texts: ClassVar[bool] = True
    reference_model: str | None = None
    pool: int | None = None

    def __post_init__(self) -> None:
        Switch.__post_init__(self)
        if self.pool is not None and self.pool < self.total_alternatives:
            raise OptionError(
                f"pool is {self.pool}, expected at least total_alternatives ({self.total_alternatives}): so many "
                "alternatives cannot be drawn from fewer."
            )

    def objective(self, kit: TrainingKit) -> Objective:
        pool = AlternativePool(self, self.model(kit), kit.seed)
        return CoTuning(kit.encoder, kit.plain, pool, self.total_alternatives)

    def model(self, kit: TrainingKit) -> Classifier:
        """The model whose gradients say which words are important."""
        if self.reference_model is None:
            if not kit.trained:
                raise OptionError(
                    "fact finds the words that matter with a trained model, and this training starts from an untrained "
                    "one: train one without fact first, then go on from it (--model models/m --defense fact), or name "
                    "it (--defense fact:reference_model=models/m)."
                )
            return kit.frozen()
        model = load_model(self.reference_model, device=str(kit.network.device))
        check_importance("fact", model)
        if len(model.labels) != len(kit.classes):
            raise OptionError(
                f"The reference model {self.reference_model} of fact has {len(model.labels)} classes, expected the "
                f"{len(kit.classes)} of the training data: name a model of the same task."
            )
        return model


@dataclass(slots=True, eq=False)
class AlternativePool:
    """The alternatives of each text, made when it is first asked for.

    They depend on the seed and the text alone, so a resumed training makes the same ones.
    """

    options: Fact
    model: Classifier
    seed: int
    language: LanguageModels = field(default_factory=LanguageModels)
    _scheduler: Scheduler | None = None
    _made: dict[TextInput, list[Changes]] = field(default_factory=dict)

    def of(self, inputs: Sequence[TextInput]) -> list[list[Text]]:
        """For each text its alternatives; those of all new texts are made together."""
        texts = {text_input: Text.of(text_input) for text_input in dict.fromkeys(inputs)}
        self._make([text for text_input, text in texts.items() if text_input not in self._made])
        return [
            [texts[text_input].replace_all(dict(changes)) for changes in self._made[text_input]]
            for text_input in inputs
        ]

    def _make(self, texts: Sequence[Text]) -> None:
        if self._scheduler is None:
            embedding = EmbeddingService(self.language.make_encoder)
            self._scheduler = Scheduler.for_classifier(ScoringService(self.model), _CONCURRENCY, embedding=embedding)
        searches = {id(search): (search, text) for text in texts for search in [self._search(text)]}
        for finished in self._scheduler.run(search for search, _ in searches.values()):
            if isinstance(finished.result, SearchStopped):
                raise ModelError(f"fact could not make alternatives of a training text: {finished.result}.")
            text = searches[id(finished.search)][1]
            self._made[text.input] = [_changes(alternative) for alternative in finished.result]

    def _search(self, text: Text) -> Search[list[Text]]:
        options = replace(self.options, total_alternatives=self.options.pool or self.options.total_alternatives)
        rng = derive_rng(self.seed, "fact", repr(text.input))
        return Search(lambda: options.alternatives(text, rng), weight=len(str(text)))


@dataclass(frozen=True, slots=True)
class CoTuning:
    """Adds `count` alternatives of each text to a batch, with its label, then trains as `plain` does."""

    encoder: TextEncoder
    plain: Objective
    pool: AlternativePool
    count: int

    def augment(self, batch: Batch) -> Batch:
        rows, added = list(range(len(batch))), list[TextInput]()
        for row, alternatives in enumerate(self.pool.of(batch.inputs)):
            drawn = batch.rng.sample(alternatives, min(self.count, len(alternatives)))
            added += [alternative.input for alternative in drawn]
            rows += [row] * len(drawn)
        encoded = [*_without_padding(batch.tensors), *self.encoder.encode(added)]
        tensors = self.encoder.tensors(encoded, batch.labels.device)
        inputs = (*batch.inputs, *added)
        return self.plain.augment(replace(batch, inputs=inputs, labels=batch.labels[rows], tensors=tensors))

    def validation_batch(self, batch: Batch) -> Batch:
        from stockade.training.objective import validation_batch

        return validation_batch(self.plain, batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)


def _without_padding(tensors: Mapping[str, Tensor]) -> list[EncodedText]:
    """The rows of a batch without their padding."""
    from stockade.models.encoding import ID_TYPE, EncodedText

    names = [name for name in ("input_ids", "token_type_ids") if name in tensors]
    columns = [tensors[name].cpu().numpy().astype(ID_TYPE) for name in names]
    there = tensors["attention_mask"].cpu().numpy().astype(np.bool_)
    return [EncodedText(*(column[row][there[row]].tobytes() for column in columns)) for row in range(len(there))]


def _changes(alternative: Text) -> Changes:
    return tuple((edit.index, edit.after) for edit in alternative.edits)
