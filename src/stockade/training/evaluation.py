"""A model on validation texts: its loss, and for a classifier what it gets right of each class."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stockade.training.batches import Batches
from stockade.training.objective import Objective, as_judged, logits_of
from stockade.training.state import Evaluation


@torch.inference_mode()
def evaluate_classes(model: nn.Module, texts: Batches, objective: Objective, classes: int) -> Evaluation:
    """The mean cross-entropy, and per class how many texts are right and how many there are, of the texts as the
    objective's model is asked about them.
    """
    model.eval()
    loss, right = 0.0, np.zeros(classes, dtype=np.int64)
    for batch in texts.by_length():
        logits = logits_of(model(**as_judged(objective, batch).tensors))
        loss += float(functional.cross_entropy(logits, batch.labels, reduction="sum"))
        hits = batch.labels[logits.argmax(1) == batch.labels].cpu()
        right += np.bincount(hits.numpy(), minlength=classes)
    totals = np.bincount(texts.labels, minlength=classes)
    return Evaluation(loss / len(texts.inputs), tuple(map(int, right)), tuple(map(int, totals)))


@torch.inference_mode()
def evaluate_loss(model: nn.Module, texts: Batches, objective: Objective) -> Evaluation:
    """The mean of the objective's own loss, each batch counted by its tokens."""
    model.eval()
    total, tokens = 0.0, 0
    for batch in texts.by_length():
        size = int(batch.tensors["attention_mask"].sum())
        total, tokens = total + float(objective.loss(model, batch)) * size, tokens + size
    return Evaluation(total / max(1, tokens))
