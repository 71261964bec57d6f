"""What defenses that perturb a text ask of a Hugging Face classifier: which tokens its answer depends on, and what it
says when noise is added to the input vectors of some.

Tokens are always named by the word of the `Text` they belong to, found through the tokenizer's offsets, so that words
and tokens cannot drift apart, whatever stands between the words. Everything goes through a hook on the input embedding:
before positions, segments and normalisation are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stockade.core.protocols import ImportanceObjective, NoisedCopies, TokenScores
from stockade.core.text import Text
from stockade.models.encoding import logits_of
from stockade.models.input_vectors import altered_vectors, input_variable
from stockade.models.word_tokens import WordReader, WordTokens

_TOKENS, _ROWS = 2048, 128


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
    most = max((one.copies for one in asked), default=1)
    answers: dict[int, NDArray[np.float64]] = {}
    for tokens in reader.batches([one.text for one in asked], max(1, _TOKENS // most), max(1, _ROWS // most)):
        group = [asked[number] for number in tokens.numbers]
        counts = torch.tensor([one.copies for one in group], device=reader.model.device)
        inputs = {name: tensor.repeat_interleave(counts, 0) for name, tensor in tokens.inputs.items()}
        places = [[words[w][t] for w, t in one.tokens] for one, words in zip(group, tokens.positions, strict=True)]
        noise = partial(_add_noise, group=group, places=places)
        with torch.inference_mode(), altered_vectors(reader.model, noise):
            logits = logits_of(reader.model(**inputs)).to("cpu", torch.float64).numpy()
        parts = np.split(logits, np.cumsum([one.copies for one in group])[:-1])
        answers.update(zip(tokens.numbers, parts, strict=True))
    return np.concatenate([answers[number] for number in range(len(asked))])


def _add_noise(vectors: Tensor, group: Sequence[NoisedCopies], places: Sequence[Sequence[int]]) -> Tensor:
    """The vectors with noise: for each text its own, other noise in each of its copies."""
    moved, row = vectors.clone(), 0
    for one, positions in zip(group, places, strict=True):
        shape = (one.copies, len(positions), vectors.shape[-1])
        noise = np.random.default_rng(one.seed).standard_normal(shape, dtype=np.float32) * np.float32(one.deviation)
        moved[row : row + one.copies, positions] += torch.from_numpy(noise).to(vectors.device, vectors.dtype)
        row += one.copies
    return moved
