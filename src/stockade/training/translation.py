"""What the training loop needs for a translator: batches of like lengths, the smoothed loss, validation by BLEU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from stockade.core.errors import OptionError
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import TextInput
from stockade.models.encoding import EncodedText, TextEncoder
from stockade.models.translation.bleu import corpus_bleu, sacrebleu_metrics
from stockade.models.translation.common import IGNORED, TranslationModel
from stockade.models.translation.neural import NeuralTranslator
from stockade.training.averaging import WeightAverage
from stockade.training.data import TextSet, TrainingData
from stockade.training.devices import Device
from stockade.training.loop import Training, make_optimiser
from stockade.training.network import make_encoder
from stockade.training.objective import Batch
from stockade.training.state import Evaluation
from stockade.training.translation_options import TranslationOptions

_JITTER = 4
"""Sources of a target length are sorted by length up to such differences, so that batches differ between epochs."""
_BLEU_SENTENCES = 2000
"""BLEU is taken of so many validation sentences at most, spread evenly."""


def plan_token_batches(
    sources: Sequence[int], targets: Sequence[int], tokens: int, seed: int, epoch: int
) -> list[list[int]]:
    """The rows of each batch of an epoch: sorted by length of target, then about that of source; batches shuffled.

    Where batches are cut depends on the targets' lengths alone, so every epoch has the same number of batches.

    Parameters
    ----------
    sources, targets
        How many tokens each side of each row has.
    tokens
        Target tokens of a batch, padding included; one row at least.
    seed, epoch
        Decide the order.
    """
    rng = derive_rng(seed, "batches", epoch)
    keys = [(length, sources[row] + rng.uniform(0, _JITTER), rng.random()) for row, length in enumerate(targets)]
    batches: list[list[int]] = []
    for row in sorted(range(len(targets)), key=keys.__getitem__):
        if not batches or (len(batches[-1]) + 1) * targets[row] > tokens:
            batches.append([row])
        else:
            batches[-1].append(row)
    rng.shuffle(batches)
    return batches


@dataclass(frozen=True, kw_only=True)
class ParallelBatches:
    """Pairs of sentences that are ready to be taken in batches.

    Parameters
    ----------
    inputs
        The pairs: source and target.
    sources, targets
        The tokens of both sides.
    encoder
        Makes the encoder's arguments from tokens.
    tokens, seed, epochs
        Target tokens per batch, the seed of their order, and how many epochs there will be.
    device, backward
        Where the batches are computed, and how gradients are added there.
    rank, world
        This process takes its part, `rank` of `world`, of each batch.
    """

    inputs: Sequence[TextInput]
    sources: Sequence[EncodedText]
    targets: Sequence[Sequence[int]]
    encoder: TextEncoder
    tokens: int
    seed: int
    device: torch.device
    backward: Callable[[Tensor], None]
    rank: int = 0
    world: int = 1
    epochs: int = 1

    @cached_property
    def per_epoch(self) -> int:
        """How many batches an epoch has."""
        return len(self._plan(0))

    def _plan(self, epoch: int) -> list[list[int]]:
        lengths = [len(source) for source in self.sources], [len(target) for target in self.targets]
        return plan_token_batches(*lengths, self.tokens, self.seed, epoch)

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, without the first `skip`."""
        plan = self._plan(epoch)
        for number in range(skip, len(plan)):
            rows = plan[number][self.rank :: self.world] or plan[number][:1]  # no process may miss a step
            progress = (epoch + number / len(plan)) / self.epochs
            yield self._batch(rows, derive_seed(self.seed, "batch", epoch, number, self.rank), progress)

    def by_length(self) -> Iterator[Batch]:
        """All pairs in order of length."""
        for rows in sorted(self._plan(0), key=lambda rows: len(self.targets[rows[0]])):
            yield self._batch(rows, 0, 1.0)

    def _batch(self, rows: Sequence[int], seed: int, progress: float) -> Batch:
        longest = max(len(self.targets[row]) for row in rows)
        padded = [[*self.targets[row], *[IGNORED] * (longest - len(self.targets[row]))] for row in rows]
        labels = torch.tensor(padded, device=self.device)
        tensors = self.encoder.tensors([self.sources[row] for row in rows], self.device)
        return Batch(
            inputs=tuple([self.inputs[row] for row in rows]),
            labels=labels,
            tensors={**tensors, "labels": labels},
            rng=Random(seed),
            encode=self._encode,
            backward=self.backward,
            progress=progress,
        )

    def _encode(self, inputs: Sequence[TextInput]) -> Mapping[str, Tensor]:
        sources = [text if isinstance(text, str) else text[0] for text in inputs]
        return self.encoder.tensors(self.encoder.encode(sources), self.device)


@dataclass(frozen=True, slots=True)
class SmoothedTranslationLoss:
    """Label-smoothed cross-entropy over the target tokens of a batch.

    Parameters
    ----------
    smoothing
        The share of the target's probability that is spread over all tokens.
    fused
        Whether the network computes the smoothed loss itself, as our own do.
    """

    smoothing: float
    fused: bool

    def augment(self, batch: Batch) -> Batch:
        return batch

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        if self.fused:
            loss: Tensor = model(**batch.tensors, label_smoothing=self.smoothing).loss
            return loss
        logits = model(**batch.tensors).logits.float().flatten(0, 1)
        return functional.cross_entropy(
            logits, batch.labels.flatten(), ignore_index=IGNORED, label_smoothing=self.smoothing
        )


def make_translation_training(
    network: Any, tokenizer: Any, texts: TrainingData, place: Device, options: TranslationOptions
) -> Training:
    """Everything the loop needs; what does not fit together is an error before a folder is made.

    Parameters
    ----------
    network, tokenizer
        The translator that is trained.
    texts
        Training and validation pairs.
    place
        Where it is computed.
    options
        How it is trained.
    """
    if options.validate == "bleu":
        sacrebleu_metrics()
    fused = isinstance(network, TranslationModel)
    if options.dropout is not None:
        _set_dropout(network, options.dropout)
    network.to(place.device)
    encoder = make_encoder(network, tokenizer, options.max_length)
    train = _batches(texts.train, encoder, place, options, place.rank, place.world)
    validation = _batches(texts.validation, encoder, place, options)
    evaluate = partial(
        evaluate_translation, NeuralTranslator(network, tokenizer), validation, fused, options.validate == "bleu"
    )
    model, optimiser = place.prepare(network, make_optimiser(network, options))
    return Training(
        model=model,
        optimiser=optimiser,
        objective=SmoothedTranslationLoss(options.label_smoothing, fused),
        batches=train,
        evaluate=evaluate,
        device=place,
        options=options,
        average=WeightAverage(network, options.average) if options.average > 1 else None,
    )


def _set_dropout(network: Any, dropout: float) -> None:
    if not isinstance(network, TranslationModel):
        raise OptionError(
            f"The dropout of a {type(network).__name__} is fixed by its config; leave the training option dropout out."
        )
    network.config.dropout = dropout
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout


def _batches(
    texts: TextSet, encoder: TextEncoder, place: Device, options: TranslationOptions, rank: int = 0, world: int = 1
) -> ParallelBatches:
    pairs = [(text, text) if isinstance(text, str) else text for text in texts.inputs]
    cut = {} if encoder.maximum is None else {"truncation": True, "max_length": encoder.maximum}
    targets = encoder.tokenizer(text_target=[target for _, target in pairs], **cut)["input_ids"]
    return ParallelBatches(
        inputs=texts.inputs,
        sources=encoder.encode([source for source, _ in pairs]),
        targets=targets,
        encoder=encoder,
        tokens=options.batch,
        seed=options.seed,
        device=place.device,
        backward=place.backward,
        rank=rank,
        world=world,
        epochs=options.epochs,
    )


@torch.inference_mode()
def evaluate_translation(translator: NeuralTranslator, texts: ParallelBatches, fused: bool, bleu: bool) -> Evaluation:
    """The mean cross-entropy of validation pairs over target tokens, and BLEU of greedy translations."""
    translator.model.eval()
    objective, total, tokens = SmoothedTranslationLoss(0.0, fused), 0.0, 0
    for batch in texts.by_length():
        size = int((batch.labels != IGNORED).sum())
        total, tokens = total + float(objective.loss(translator.model, batch)) * size, tokens + size
    if not bleu:
        return Evaluation(total / max(1, tokens))
    step = -(-len(texts.inputs) // _BLEU_SENTENCES)
    pairs = [(text, text) if isinstance(text, str) else text for text in texts.inputs[::step]]
    translations = translator.translate([source for source, _ in pairs])
    score = corpus_bleu(translations, [target for _, target in pairs]).score
    return Evaluation(total / max(1, tokens), bleu=round(score, 4))
