"""A tiny transformer, batches for it, and what the tests of adversarial training share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor

from stockade.models.encoding import TextEncoder
from stockade.models.zoo.build import build_model
from stockade.training.objective import Batch, CrossEntropy, TrainingKit
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.training.tiny import build

TEXTS = ("a good film", "the worst picture of the story", "dull", "a film with fun")
LABELS = (1, 0, 0, 1)
CLASSES = ("negative", "positive")


def make_kit(dropout: float = 0.0, seed: int = 0, **fields: Any) -> TrainingKit:
    """A kit around a tiny transformer of random weights, wide enough apart that gradients are not tiny."""
    torch.manual_seed(seed)
    model, tokenizer = build([], CLASSES, 0, dropout=dropout)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn_like(weight)
        model.get_input_embeddings().weight[0] = 0.0
    model.train()
    encoder = TextEncoder.of(tokenizer, model, ("input_ids", "attention_mask", "token_type_ids"))
    plain = fields.pop("plain", CrossEntropy())
    return TrainingKit(
        network=model,
        tokenizer=tokenizer,
        encoder=encoder,
        classes=CLASSES,
        inputs=TEXTS,
        labels=LABELS,
        plain=plain,
        seed=0,
        trained=False,
        **fields,
    )


def zoo_kit(vector_norm: float = 2.8) -> TrainingKit:
    """A kit around a CNN of the zoo without dropout, whose word vectors have this mean length."""
    torch.manual_seed(1)
    model, tokenizer = build_model("CNN-W-Random-1", TEXTS, CLASSES, options={"dropout": 0.0, "filters": 8})
    embedding: Any = model.get_input_embeddings()
    table = embedding.weight
    with torch.no_grad():
        lengths = table.norm(dim=1)
        table *= vector_norm / lengths[lengths > 0].mean()
    model.train()
    return TrainingKit(
        network=model,
        tokenizer=tokenizer,
        encoder=TextEncoder.of(tokenizer, model, ("input_ids", "attention_mask")),
        classes=CLASSES,
        inputs=TEXTS,
        labels=LABELS,
        plain=CrossEntropy(),
        seed=0,
        trained=False,
    )


def pair_kit(maximum: int = 24) -> TrainingKit:
    """A kit around a tiny BERT, whose tokenizer marks where texts begin and end and reads words in pieces."""
    model, tokenizer = tiny_bert(), tiny_tokenizer(maximum)
    encoder = TextEncoder.of(tokenizer, model, ("input_ids", "attention_mask", "token_type_ids"))
    return TrainingKit(
        network=model,
        tokenizer=tokenizer,
        encoder=encoder,
        classes=CLASSES,
        inputs=TEXTS,
        labels=LABELS,
        plain=CrossEntropy(),
        seed=0,
        trained=False,
    )


def make_batch(kit: TrainingKit, texts: Sequence[Any] = TEXTS, labels: Sequence[int] = LABELS, seed: int = 7) -> Batch:
    def encode(inputs: Sequence[Any]) -> dict[str, Tensor]:
        return kit.encoder.tensors(kit.encoder.encode(inputs), torch.device("cpu"))

    return Batch(
        inputs=tuple(texts),
        labels=torch.tensor(labels),
        tensors=encode(texts),
        rng=Random(seed),
        encode=encode,
        backward=torch.autograd.backward,
    )


def loss_at(model: Any, batch: Batch, vectors: Tensor) -> Tensor:
    """The loss with these input vectors, given to the model past its embedding."""
    output = model(inputs_embeds=vectors, attention_mask=batch.tensors["attention_mask"])
    return torch.nn.functional.cross_entropy(output.logits, batch.labels)


def gradients(model: Any) -> dict[str, Tensor]:
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for name, weight in model.named_parameters()
    }


def assert_same_gradients(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-6, rtol=1e-5, msg=partial("{}: {}".format, name))


@contextmanager
def watched_vectors(model: Any) -> Iterator[list[Tensor]]:
    """What the layer norm behind the word vectors is given is not shown by the embedding: look at the sum that comes
    after it, which the hooks of a defense have gone through.
    """
    vectors: list[Tensor] = []
    norm = model.bert.embeddings.LayerNorm
    handle = norm.register_forward_pre_hook(lambda _module, arguments: vectors.append(arguments[0].detach().clone()))
    try:
        yield vectors
    finally:
        handle.remove()


def reference_start(batch: Batch, width: int, norm: float, moved: Tensor, seed: int = 7) -> Tensor:
    """The first perturbation, number by number."""
    draws = torch.rand((*moved.shape, width), generator=torch.Generator().manual_seed(Random(seed).getrandbits(63)))
    start = torch.zeros_like(draws)
    for text in range(len(moved)):
        tokens = int(moved[text].sum())
        for token in range(moved.shape[1]):
            if moved[text, token]:
                start[text, token] = (2 * draws[text, token] - 1) * norm / (tokens * width) ** 0.5
    return start


def reference_step(perturbation: Tensor, gradient: Tensor, moved: Tensor, step: float, limit: float) -> Tensor:
    """One ascent, text by text."""
    moved_on = []
    for vector, slope, tokens in zip(perturbation, gradient, moved, strict=True):
        slope = torch.where(tokens[:, None], slope, 0.0)
        vector = vector + step * slope / slope.square().sum().sqrt()
        length = vector.square().sum().sqrt()
        moved_on.append(vector * (limit / length) if 0 < limit < length else vector)
    return torch.stack(moved_on)
