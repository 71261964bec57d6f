"""The input vectors of a model's tokens, altered inside its own forward pass: noise, mixtures, gradients.

What is altered is the answer of the input embedding: position and type vectors and the first layer norm come after it.
Tokens are named by the word of the `Text` they belong to, found through the tokenizer's offsets, so that words and
tokens cannot drift apart, whatever stands between the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.errors import ModelError
from stockade.models.encoding import logits_of
from stockade.models.word_tokens import WordReader, WordTokens

if TYPE_CHECKING:
    from stockade.core.protocols import ImportanceObjective, MixedCopies, NoisedCopies, TokenScores
    from stockade.core.text import Text

_TOKENS, _ROWS = 2048, 128
Change = Callable[[Tensor], Tensor]
"""What is done to the input vectors of a batch."""


@contextmanager
def altered_vectors(network: Any, change: Change) -> Iterator[None]:
    """Inside the `with`, forward passes use `change(vectors)`, texts × tokens × width, in place of the vectors."""
    changed = []

    def alter(_: object, __: object, vectors: Tensor) -> Tensor:
        changed.append(True)
        return change(vectors)

    handle = network.get_input_embeddings().register_forward_hook(alter)
    try:
        yield
    finally:
        handle.remove()
    if not changed:
        raise ModelError(
            f"{type(network).__name__} does not read its texts through its input embedding, so nothing can be put in "
            "there: gradients, and defenses that perturb vectors, need a model that does."
        )


@contextmanager
def input_variable(network: Any) -> Iterator[list[Tensor]]:
    """Inside the `with`, gradients are taken of the input vectors; after the forward pass the list holds them."""
    variables: list[Tensor] = []

    def leaf(vectors: Tensor) -> Tensor:
        variables.append(vectors.detach().requires_grad_(True))
        return variables[-1]

    with altered_vectors(network, leaf):
        yield variables


def token_importance(reader: WordReader, texts: Sequence[Text], objective: ImportanceObjective) -> list[TokenScores]:
    """For each token of each word the L2 norm of d objective / d input vector."""
    scores: dict[int, TokenScores] = {}
    for tokens in reader.batches(texts, _TOKENS, _ROWS):
        norms = _norms(reader, tokens, objective).tolist()
        for number, row, words in zip(tokens.numbers, norms, tokens.positions, strict=True):
            scores[number] = tuple(tuple(row[place] for place in places) for places in words)
    return [scores[number] for number in range(len(texts))]


def _norms(reader: WordReader, tokens: WordTokens, objective: ImportanceObjective) -> NDArray[np.float64]:
    """The norm at each position of a batch.

    The loss of a confident model has a gradient too small for single precision, so it is propagated at length one and
    the norms are scaled down at the end.
    """
    with torch.enable_grad():
        with input_variable(reader.model) as inputs:
            logits = logits_of(reader.model(**tokens.inputs))
        outward = gradient_at_logits(logits.detach().double(), objective)
        scale = outward.abs().amax(1, keepdim=True).clamp(min=1e-300)
        (gradient,) = torch.autograd.grad(logits, inputs[0], (outward / scale).to(logits.dtype))
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


def logits_noised(reader: WordReader, requests: Sequence[NoisedCopies]) -> NDArray[np.float64]:
    """The logits of all copies. A text is tokenised once, its noise is drawn from its seed alone."""

    def change(tokens: WordTokens) -> Change:
        group = [requests[number] for number in tokens.numbers]
        places = [
            [words[word][token] for word, token in request.tokens]
            for request, words in zip(group, tokens.positions, strict=True)
        ]
        return partial(_add_noise, group=group, places=places)

    texts, counts = [request.text for request in requests], [request.copies for request in requests]
    return _logits_of_copies(reader, texts, counts, change)


def logits_mixed(
    reader: WordReader, table: NDArray[np.float32], requests: Sequence[MixedCopies]
) -> NDArray[np.float64]:
    """The logits of all copies; `table` has the vectors that are mixed, a row per entry."""

    def change(tokens: WordTokens) -> Change:
        group = [requests[number] for number in tokens.numbers]
        return partial(_mix, group=group, positions=tokens.positions, table=table)

    texts, counts = [request.text for request in requests], [len(request.weights) for request in requests]
    return _logits_of_copies(reader, texts, counts, change)


def _logits_of_copies(
    reader: WordReader, texts: Sequence[Text], counts: Sequence[int], change: Callable[[WordTokens], Change]
) -> NDArray[np.float64]:
    """The logits of `counts` copies of each text; `change` says what is done to the input vectors of a batch."""
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
    for request, positions in zip(group, places, strict=True):
        shape = (request.copies, len(positions), vectors.shape[-1])
        noise = np.random.default_rng(request.seed).standard_normal(shape, dtype=np.float32)
        noise *= np.float32(request.deviation)
        moved[row : row + request.copies, positions] += torch.from_numpy(noise).to(vectors.device, vectors.dtype)
        row += request.copies
    return moved


def _mix(
    vectors: Tensor, group: Sequence[MixedCopies], positions: Sequence[list[list[int]]], table: NDArray[np.float32]
) -> Tensor:
    """The vectors with mixtures at the words that are one token each."""
    mixed, row = vectors.clone(), 0
    for request, tokens in zip(group, positions, strict=True):
        copies = len(request.weights)
        single = [number for number, word in enumerate(request.words) if len(tokens[word]) == 1]
        if single:
            places = [tokens[request.words[number]][0] for number in single]
            mixtures = np.einsum("pnc,ncw->pnw", request.weights[:, single], table[request.entries[single]])
            mixed[row : row + copies, places] = torch.from_numpy(mixtures).to(vectors.device, vectors.dtype)
        row += copies
    return mixed
