"""What defenses that perturb a text ask of a Hugging Face classifier: which tokens its answer depends on, and what it
says when noise is added to the input vectors of some, or when they are mixtures.

Tokens are always named by the word of the `Text` they belong to, found through the tokenizer's offsets, so that words
and tokens cannot drift apart, whatever stands between the words. Everything goes through a hook on the input embedding:
before positions, segments and normalisation are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.models.encoding import logits_of
from stockade.models.input_vectors import altered_vectors, input_variable
from stockade.models.word_tokens import WordReader, WordTokens

if TYPE_CHECKING:
    from stockade.core.protocols import ImportanceObjective, MixedCopies, NoisedCopies, TokenScores
    from stockade.core.text import Text

_TOKENS, _ROWS = 2048, 128
Change = Callable[[Tensor], Tensor]
"""What is done to the input vectors of a batch."""


def token_importance(reader: WordReader, texts: Sequence[Text], objective: ImportanceObjective) -> list[TokenScores]:
    """For each token of each word the L2 norm of d objective / d input vector."""
    found: dict[int, TokenScores] = {}
    for tokens in reader.batches(texts, _TOKENS, _ROWS):
        norms = _norms(reader, tokens, objective).tolist()
        for number, row, words in zip(tokens.numbers, norms, tokens.positions, strict=True):
            found[number] = tuple(tuple(row[place] for place in places) for places in words)
    return [found[number] for number in range(len(texts))]


def _norms(reader: WordReader, tokens: WordTokens, objective: ImportanceObjective) -> NDArray[np.float64]:
    """The norm at each position of a batch.

    A sure model's loss has a gradient too small for single precision: it is sent back at a length of one, and the
    norms are scaled down in the end.
    """
    with torch.enable_grad():
        with input_variable(reader.model) as seen:
            logits = logits_of(reader.model(**tokens.inputs))
        outward = gradient_at_logits(logits.detach().double(), objective)
        scale = outward.abs().amax(1, keepdim=True).clamp(min=1e-300)
        (gradient,) = torch.autograd.grad(logits, seen[0], (outward / scale).to(logits.dtype))
    norms = gradient.double().norm(dim=2) * scale
    answer: NDArray[np.float64] = norms.cpu().numpy()
    return answer


def gradient_at_logits(logits: Tensor, objective: ImportanceObjective) -> Tensor:
    """d objective / d logits, a row per text. A single logit z is read as the two logits -z/2 and z/2."""
    if logits.shape[1] == 1:
        pair = gradient_at_logits(torch.cat([-logits, logits], 1) / 2, objective)
        return (pair[:, 1:] - pair[:, :1]) / 2
    if objective == "half_sq_norm":
        return logits
    predicted = nn.functional.one_hot(logits.argmax(1), logits.shape[1]).to(logits.dtype)
    if objective == "logit_pred":
        return predicted
    others = logits.softmax(1) * (1 - predicted)
    return others - predicted * others.sum(1, keepdim=True)


def logits_noised(reader: WordReader, asked: Sequence[NoisedCopies]) -> NDArray[np.float64]:
    """The logits of all copies. A text is tokenised once, its noise is drawn from its seed alone."""

    def change(tokens: WordTokens) -> Change:
        group = [asked[number] for number in tokens.numbers]
        places = [[words[w][t] for w, t in one.tokens] for one, words in zip(group, tokens.positions, strict=True)]
        return partial(_add_noise, group=group, places=places)

    return _logits_of_copies(reader, [one.text for one in asked], [one.copies for one in asked], change)


def logits_mixed(reader: WordReader, table: NDArray[np.float32], asked: Sequence[MixedCopies]) -> NDArray[np.float64]:
    """The logits of all copies; `table` has the vectors that are mixed, a row per entry."""

    def change(tokens: WordTokens) -> Change:
        group = [asked[number] for number in tokens.numbers]
        return partial(_mix, group=group, positions=tokens.positions, table=table)

    return _logits_of_copies(reader, [one.text for one in asked], [len(one.weights) for one in asked], change)


def _logits_of_copies(
    reader: WordReader, texts: Sequence[Text], counts: Sequence[int], change: Callable[[WordTokens], Change]
) -> NDArray[np.float64]:
    """The logits of so many copies of each text; `change` makes of a batch of texts what is done to the input vectors
    of its copies.
    """
    most = max(counts, default=1)
    answers: dict[int, NDArray[np.float64]] = {}
    for tokens in reader.batches(texts, max(1, _TOKENS // most), max(1, _ROWS // most)):
        copies = [counts[number] for number in tokens.numbers]
        repeated = torch.tensor(copies, device=reader.model.device)
        inputs = {name: tensor.repeat_interleave(repeated, 0) for name, tensor in tokens.inputs.items()}
        with torch.inference_mode(), altered_vectors(reader.model, change(tokens)):
            logits = logits_of(reader.model(**inputs)).to("cpu", torch.float64).numpy()
        answers.update(zip(tokens.numbers, np.split(logits, np.cumsum(copies)[:-1]), strict=True))
    return np.concatenate([answers[number] for number in range(len(texts))])


def _add_noise(vectors: Tensor, group: Sequence[NoisedCopies], places: Sequence[Sequence[int]]) -> Tensor:
    """The vectors with noise: for each text its own, other noise in each of its copies."""
    moved, row = vectors.clone(), 0
    for one, positions in zip(group, places, strict=True):
        shape = (one.copies, len(positions), vectors.shape[-1])
        noise = np.random.default_rng(one.seed).standard_normal(shape, dtype=np.float32) * np.float32(one.deviation)
        moved[row : row + one.copies, positions] += torch.from_numpy(noise).to(vectors.device, vectors.dtype)
        row += one.copies
    return moved


def _mix(
    vectors: Tensor, group: Sequence[MixedCopies], positions: Sequence[list[list[int]]], table: NDArray[np.float32]
) -> Tensor:
    """The vectors with mixtures at the words that are one token each."""
    mixed, row = vectors.clone(), 0
    for one, tokens in zip(group, positions, strict=True):
        copies = len(one.weights)
        found = [number for number, word in enumerate(one.words) if len(tokens[word]) == 1]
        if found:
            places = [tokens[one.words[number]][0] for number in found]
            mixtures = np.einsum("pnc,ncw->pnw", one.weights[:, found], table[one.entries[found]])
            mixed[row : row + copies, places] = torch.from_numpy(mixtures).to(vectors.device, vectors.dtype)
        row += copies
    return mixed
