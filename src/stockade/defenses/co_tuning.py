"""Training on texts together with alternatives of them, which are made once for each text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from stockade.core.errors import ModelError, SearchStopped
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_rng
from stockade.core.text import Text, TextInput
from stockade.engine.language import EmbeddingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.models.language import LanguageModels

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.defenses.fact import Fact
    from stockade.models.encoding import EncodedText, TextEncoder
    from stockade.training.objective import Batch, Objective

Changes = tuple[tuple[int, str], ...]
"""An alternative as the words it replaces: much smaller than the text."""
_AT_ONCE = 256


@dataclass(slots=True, eq=False)
class AlternativePool:
    """The alternatives of each text that was asked about. They depend on the seed and the text alone, so a resumed
    training makes the same ones.
    """

    options: Fact
    model: Classifier
    seed: int
    language: LanguageModels = field(default_factory=LanguageModels)
    _scheduler: Scheduler | None = None
    _known: dict[TextInput, list[Changes]] = field(default_factory=dict)

    def of(self, inputs: Sequence[TextInput]) -> list[list[Text]]:
        """For each text its alternatives; those of all new texts are made together."""
        texts = {one: Text.of(one) for one in dict.fromkeys(inputs)}
        self._make([text for one, text in texts.items() if one not in self._known])
        return [[texts[one].replace_all(dict(changes)) for changes in self._known[one]] for one in inputs]

    def _make(self, texts: Sequence[Text]) -> None:
        if self._scheduler is None:
            embedding = EmbeddingService(self.language.make_encoder)
            self._scheduler = Scheduler.for_classifier(ScoringService(self.model), _AT_ONCE, embedding=embedding)
        searches = {id(search): (search, text) for text in texts for search in [self._search(text)]}
        for finished in self._scheduler.run(search for search, _ in searches.values()):
            if isinstance(finished.result, SearchStopped):
                raise ModelError(f"fact could not make alternatives of a training text: {finished.result}.")
            text = searches[id(finished.search)][1]
            self._known[text.input] = [_changes(one) for one in finished.result]

    def _search(self, text: Text) -> Search[list[Text]]:
        every = replace(self.options, total_alternatives=self.options.pool or self.options.total_alternatives)
        rng = derive_rng(self.seed, "fact", repr(text.input))
        return Search(lambda: every.alternatives(text, rng), weight=len(str(text)))


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
            added += [one.input for one in drawn]
            rows += [row] * len(drawn)
        encoded = [*_encoded(batch.tensors), *self.encoder.encode(added)]
        tensors = self.encoder.tensors(encoded, batch.labels.device)
        inputs = (*batch.inputs, *added)
        return self.plain.augment(replace(batch, inputs=inputs, labels=batch.labels[rows], tensors=tensors))

    def judged(self, batch: Batch) -> Batch:
        from stockade.training.objective import as_judged

        return as_judged(self.plain, batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.plain.loss(model, batch)


def _encoded(tensors: Mapping[str, Tensor]) -> list[EncodedText]:
    """The rows of a batch without their padding."""
    from stockade.models.encoding import ID_TYPE, EncodedText

    names = [name for name in ("input_ids", "token_type_ids") if name in tensors]
    columns = [tensors[name].cpu().numpy().astype(ID_TYPE) for name in names]
    kept = tensors["attention_mask"].cpu().numpy().astype(np.bool_)
    return [EncodedText(*(column[row][kept[row]].tobytes() for column in columns)) for row in range(len(kept))]


def _changes(alternative: Text) -> Changes:
    return tuple((edit.index, edit.after) for edit in alternative.edits)
