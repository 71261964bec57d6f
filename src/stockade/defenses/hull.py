"""Hull: train on the worst convex combinations of the vectors of words of like meaning, and ask about random ones.

The input vector of a token becomes sum_j w_j E_j over the token and its neighbours, w = softmax(z). In training the
scores z begin at random and ascend the loss; each word's scores move by the same length in each step. Where sparsity
counts, the entropy of w is subtracted from what is ascended, so that a combination ends near one of the words that an
attacker could write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError, OptionError
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, MixedCopies, MixingClassifier, WordVocabulary
from stockade.core.registry import published
from stockade.core.text import Text
from stockade.defenses.combine import Combination, Draws, combine
from stockade.defenses.neighbours import neighbour_rows, neighbour_table, neighbour_tokens, table_resources
from stockade.engine.requests import Mixed, Score, Vocabulary
from stockade.lexicon.neighbours import Neighbours

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stockade.training.objective import Batch, Objective, TrainingKit

Start = Literal["normal", "dirichlet"]


@published(
    "hull",
    paper="Dong et al. 2021, Towards Robustness Against Natural Language Word Substitutions (ASCC); Zhou et "
    "al. 2021, Defense against Synonym Substitution-based Adversarial Attacks via Dirichlet Neighborhood Ensemble",
    presets={
        "paper": {},
        "ascc": {},
        "dne": {"start": "dirichlet", "steps": 3, "sparsity": 0.0, "clean": 0.0, "copies": 16},
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Hull:
    """Train on the worst mixtures of each word's input vector with those of its synonyms.

    With `copies` the model is also asked about copies of a text whose words are random mixtures, as DNE does. Every
    token that is a whole word is mixed, of a pair only those of the hypothesis.

    Differences to the papers: synonyms are single tokens of the vocabulary, from the table of neighbours; every word's
    scores move by the same length in a step; ASCC's divergence from the clean prediction is the plain loss here; DNE
    weighs the answers to its copies by how sure they are, here all count alike.

    Parameters
    ----------
    count, min_cosine
        How many neighbours a word is mixed with at most, and their least cosine.
    steps, step_size
        Of the ascent of the mixture's scores.
    sparsity
        How much the entropy of a mixture counts against it.
    start
        The first scores: `normal` draws, or those of weights of the Dirichlet distribution.
    concentration
        Of that Dirichlet distribution, in training and for `copies`.
    clean
        The share of the loss that is the text's as it is.
    copies
        How many random mixtures a text is answered from; with 0 the trained model answers as it is, as ASCC does.
    combine
        How the answers to the copies become one.
    draws
        `fresh` for new mixtures with every question, `fixed` for the same ones.
    neighbours
        A file with a table of neighbours in place of the package's.
    """

    innermost: ClassVar[bool] = True
    independent_copies: ClassVar[bool] = True
    alters_texts: ClassVar[bool] = False
    count: int = 8
    min_cosine: float = 0.7
    steps: int = 10
    step_size: float = 1.0
    sparsity: float = 1.0
    start: Start = "normal"
    concentration: float = 1.0
    clean: float = 0.5
    copies: int = 0
    combine: Combination = "probability"
    draws: Draws = "fresh"
    neighbours: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or self.steps < 0 or self.copies < 0:
            raise OptionError(
                f"hull has a count of {self.count} neighbours, {self.steps} steps and {self.copies} copies, expected "
                "at least 1, 0 and 0."
            )
        for option in ("step_size", "sparsity"):
            if not 0 <= getattr(self, option) < float("inf"):
                raise OptionError(f"The {option} of hull is {getattr(self, option)}, expected a number from 0 up.")
        if not 0 < self.concentration < float("inf"):
            raise OptionError(f"The concentration of hull is {self.concentration}, expected a number above 0.")
        if not 0 <= self.clean < 1:
            raise OptionError(f"The clean share of hull is {self.clean}, expected one from 0 up to below 1.")

    @property
    def answers(self) -> bool:
        """Whether it acts when the model is asked."""
        return self.copies > 0

    @property
    def randomised(self) -> bool:
        return self.draws == "fresh"

    def check(self, inner: Classifier) -> None:
        if not isinstance(inner, MixingClassifier):
            raise ModelError(
                "hull mixes the model's input vectors, and this model does not let it: give a Hugging Face model or a "
                "built-in one, or use safer, which changes words."
            )
        if not inner.word_vocabulary().words:
            raise ModelError(
                "hull mixes the input vectors of words, and this model reads characters or bytes: use safer, which "
                "changes words."
            )

    def resources(self) -> Mapping[str, str]:
        return table_resources(self.neighbours)

    def surrogate(self) -> Hull:
        return replace(self, combine="probability")

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        hulls = word_hulls(await Vocabulary(), neighbour_table(self.neighbours), self.count, self.min_cosine)
        mixed = hulls.drawn(text, self.concentration, self.copies, rng)
        if mixed is None:
            return combine(np.array([(await Score([text]))[0].probabilities]), self.combine)
        return combine(await Mixed(mixed), self.combine)

    def objective(self, kit: TrainingKit) -> Objective:
        import torch

        from stockade.defenses.embedding_perturbation import refuse_nesting

        refuse_nesting("hull", kit)
        rows = neighbour_tokens(kit.tokenizer, neighbour_table(self.neighbours), self.count, self.min_cosine)
        device = kit.network.get_input_embeddings().weight.device
        concentration = self.concentration if self.start == "dirichlet" else None
        return HullTraining(
            network=kit.network,
            tokenizer=kit.tokenizer,
            plain=kit.plain,
            neighbours=torch.from_numpy(rows).to(device),
            ascent=HullAscent(
                steps=self.steps, step_size=self.step_size, sparsity=self.sparsity, concentration=concentration
            ),
            clean=self.clean,
        )


@dataclass(frozen=True, slots=True, eq=False)
class WordHulls:
    """The words of a model's vocabulary, each with its neighbours: random mixtures of them for copies of a text.

    The rows of `entries` are the numbers of a word and its neighbours; the rest of a row repeats the word itself.
    """

    numbers: Mapping[str, int]
    entries: NDArray[np.int64]
    cased: bool

    def number_of(self, word: str) -> int | None:
        """The number of a word that has neighbours."""
        number = self.numbers.get(word if self.cased else word.lower())
        return None if number is None or self.entries[number, 1] == number else number

    def drawn(self, text: Text, concentration: float, copies: int, rng: np.random.Generator) -> MixedCopies | None:
        """Copies with every word that has neighbours mixed, by Dirichlet weights; None if no word has neighbours."""
        mixed = {index: number for index, word in enumerate(text.words) if (number := self.number_of(word)) is not None}
        if not mixed:
            return None
        entries = self.entries[list(mixed.values())]
        columns = entries != entries[:, :1]
        columns[:, 0] = True
        scores = np.where(columns, dirichlet_scores(rng, concentration, (copies, *entries.shape)), -np.inf)
        shares = np.exp(scores - scores.max(2, keepdims=True))
        weights = (shares / shares.sum(2, keepdims=True)).astype(np.float32)
        return MixedCopies(text, tuple(mixed), entries, weights)


@lru_cache(maxsize=4)
def word_hulls(vocabulary: WordVocabulary, table: Neighbours, count: int, min_cosine: float) -> WordHulls:
    """The hulls of a vocabulary's words: the same neighbours as in training."""
    words = dict(enumerate(vocabulary.words))
    entries = neighbour_rows(words, len(words), table, count, min_cosine)
    cased = any(word != word.lower() for word in vocabulary.words)
    return WordHulls({word: number for number, word in words.items()}, entries, cased)


def dirichlet_scores(rng: np.random.Generator, concentration: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Scores whose softmax over any choice of columns is a draw of the symmetric Dirichlet distribution.

    They are logarithms of gamma draws. A draw of a small concentration is too small for a number: it is one of
    concentration + 1 times a power of a uniform draw, and so is computed in logarithms.
    """
    larger = np.log(rng.standard_gamma(concentration + 1, shape))
    return larger + np.log(1 - rng.random(shape)) / concentration


@dataclass(frozen=True, slots=True, kw_only=True)
class HullAscent:
    """How the scores of mixtures begin and move.

    With a `concentration` the first weights are Dirichlet draws, otherwise the first scores are normal.
    """

    steps: int
    step_size: float
    sparsity: float
    concentration: float | None

    def start(self, columns: Tensor, rng: np.random.Generator) -> Tensor:
        """The first scores; `columns` says which entries of each row are words."""
        import torch

        shape = tuple(columns.shape)
        if self.concentration is None:
            drawn = rng.standard_normal(shape)
        else:
            drawn = dirichlet_scores(rng, self.concentration, shape)
        scores = torch.from_numpy(drawn).to(columns.device, torch.float32)
        return scores.masked_fill(~columns, -torch.inf)

    def ascended(self, scores: Tensor, gradient: Tensor) -> Tensor:
        """One step up the gradient, of the same length for every word."""
        from torch.nn import functional

        gradient = gradient.nan_to_num(0.0, 0.0, 0.0)
        return scores + self.step_size * functional.normalize(gradient, dim=1, eps=1e-30)


@dataclass(frozen=True, slots=True, eq=False)
class BatchHulls:
    """The places of a batch whose word has neighbours.

    `texts` and `tokens` are where, `words` what may be combined there, `columns` which of those are not repetitions.
    """

    texts: Tensor
    tokens: Tensor
    words: Tensor
    columns: Tensor

    @classmethod
    def of(cls, ids: Tensor, changeable: Tensor, neighbours: Tensor) -> BatchHulls:
        """Those of token ids that may change; padding and what hides words have no neighbours, so none is here."""
        has_some = neighbours[:, 1] != neighbours[:, 0]
        texts, tokens = (has_some[ids] & changeable).nonzero(as_tuple=True)
        words = neighbours[ids[texts, tokens]]
        columns = words != words[:, :1]
        columns[:, 0] = True
        return cls(texts, tokens, words, columns)

    def combined(self, vectors: Tensor, table: Tensor, weights: Tensor) -> Tensor:
        """The vectors of a batch with those of the places replaced by the combinations."""
        import torch
        from torch.nn import functional

        mixed = torch.einsum("nc,ncw->nw", weights.to(table.dtype), functional.embedding(self.words, table))
        return vectors.index_put((self.texts, self.tokens), mixed.to(vectors.dtype))

    def entropy(self, weights: Tensor) -> Tensor:
        """The sum over texts of the mean entropy of their words' weights."""
        entropies = -(weights * weights.clamp(min=1e-30).log()).sum(1)
        number = self.texts.bincount().clamp(min=1)
        return (entropies / number[self.texts]).sum()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HullTraining:
    """Trains on the worst combinations, of pairs those of the hypothesis, and with the share `clean` on the texts."""

    ascends_vectors: ClassVar[bool] = True
    network: Any
    tokenizer: Any
    plain: Objective
    neighbours: Tensor
    ascent: HullAscent
    clean: float

    def augment(self, batch: Batch) -> Batch:
        return self.plain.augment(batch)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        import torch

        from stockade.defenses.changeable import changeable_tokens

        ids = batch.tensors["input_ids"]
        hulls = BatchHulls.of(ids, changeable_tokens(batch.inputs, batch.tensors, self.tokenizer), self.neighbours)
        scores = self.ascent.start(hulls.columns, np.random.default_rng(batch.rng.getrandbits(64)))
        if not len(hulls.texts):
            return self.plain.loss(model, batch)
        for _ in range(self.ascent.steps):
            scores.requires_grad_()
            raised = len(ids) * self._combined_loss(self.network, batch, hulls, scores)
            if self.ascent.sparsity:
                raised = raised - self.ascent.sparsity * hulls.entropy(scores.softmax(1))
            (gradient,) = torch.autograd.grad(raised, scores)
            scores = self.ascent.ascended(scores.detach(), gradient)
        before = torch.zeros((), device=ids.device)
        if self.clean:
            part = self.clean * self.plain.loss(model, batch)
            batch.backward(part)
            before = part.detach()
        return (1 - self.clean) * self._combined_loss(model, batch, hulls, scores) + before

    def _combined_loss(self, model: nn.Module, batch: Batch, hulls: BatchHulls, scores: Tensor) -> Tensor:
        from stockade.models.input_vectors import altered_vectors

        table, weights = self.network.get_input_embeddings().weight, scores.softmax(1)
        with altered_vectors(self.network, lambda vectors: hulls.combined(vectors, table, weights)):
            return self.plain.loss(model, batch)
