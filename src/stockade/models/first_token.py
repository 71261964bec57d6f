"""The last layer of a BERT for its first token only: a classifier that reads nothing but [CLS] needs no other.

Every token of the last layer but the first is computed and thrown away. Computed for the first alone, the layer costs
next to nothing: with one query q per head, its score for token j is q · (W_K h_j) = (W_Kᵀ q) · h_j, and the mean of
values is W_V of the mean, so not even keys and values are made for every token. Biases of the keys shift all scores of
a head alike and cancel.

It is algebra, but code can be wrong about a model, so it is used only after its answers were the full pass's on the
first texts. Nothing is changed in the model: the pass runs on copies of the few modules that lead to the last layer,
which share everything else with it, made anew for each batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from stockade.models.encoding import logits_of

COMPARED_TEXTS = 64
"""How many texts both passes must answer alike before the short one is trusted."""
TOLERANCE = 1e-5
"""The largest difference between their logits, as a share of the largest logit where that is above one."""
_LEAST_TOKENS = 3
"""A text of fewer tokens says little about the others that are left out."""
_LAYERS = {
    "BertForSequenceClassification": "bert.encoder.layer",
    "CamembertForSequenceClassification": "roberta.encoder.layer",
    "ElectraForSequenceClassification": "electra.encoder.layer",
    "RobertaForSequenceClassification": "roberta.encoder.layer",
    "XLMRobertaForSequenceClassification": "roberta.encoder.layer",
    "DistilBertForSequenceClassification": "distilbert.transformer.layer",
}
"""Where the layers of the classifiers are that read the first token only."""


class FirstTokenPass:
    """The forward pass of a classifier, short where that was shown to be the same.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The classifier, in evaluation mode.
    """

    def __init__(self, model: Any) -> None:
        known = type(model).__module__.startswith("transformers.models.")
        self._model = model
        self._path = _LAYERS.get(type(model).__name__, "").split(".") if known else [""]
        self._compared = 0
        self._refused = self._path == [""]

    @property
    def trusted(self) -> bool:
        """Whether the short pass has answered enough texts as the full one does."""
        return not self._refused and self._compared >= COMPARED_TEXTS

    def logits(self, inputs: dict[str, Tensor]) -> Tensor:
        """The logits of a batch. While both passes are compared, the full one is the last and gives them."""
        if self._refused or not self._applies(inputs):
            return logits_of(self._model(**inputs))
        if self.trusted:
            return logits_of(self._shortened()(**inputs))
        return self._compare(inputs)

    def _compare(self, inputs: dict[str, Tensor]) -> Tensor:
        try:
            short = logits_of(self._shortened()(**inputs))
        except Exception:  # a model that is not what its name says
            short = None
        full = logits_of(self._model(**inputs))
        if short is None or not _alike(short, full):
            self._refused = True
        elif inputs["input_ids"].shape[1] >= _LEAST_TOKENS:
            self._compared += len(full)
        return full

    def _applies(self, inputs: dict[str, Tensor]) -> bool:
        """Whether nobody looks at what would be left out: gradients, attention, hidden vectors, hooks."""
        config = self._model.config
        asked_for = getattr(config, "output_attentions", False) or getattr(config, "output_hidden_states", False)
        if torch.is_grad_enabled() or self._model.training or asked_for or "input_ids" not in inputs:
            return False
        *parents, layers = self._modules()
        return not any(_is_hooked(module) for module in (*parents, layers, *layers[-1].modules()))

    def _modules(self) -> list[Any]:
        """The model and the modules on the way to its layers."""
        modules = [self._model]
        for name in self._path:
            modules.append(getattr(modules[-1], name))
        return modules

    def _shortened(self) -> Any:
        """The model with another last layer; what leads there is copied, all else is shared."""
        modules = self._modules()
        layers = modules[-1]
        below = _shallow(layers)
        below._modules[str(len(layers) - 1)] = FirstTokenLayer(layers[-1])
        for parent, name in zip(modules[-2::-1], self._path[::-1], strict=True):
            above = _shallow(parent)
            above._modules[name] = below
            below = above
        return below


class FirstTokenLayer(nn.Module):
    """A layer of a BERT or a DistilBERT that answers for the first token only.

    Parameters
    ----------
    layer : torch.nn.Module
        The layer whose weights it uses.
    """

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.train(layer.training)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
        """The vectors of the first token, (texts, 1, width)."""
        first = hidden_states[:, :1]
        attention = self.layer.attention
        if hasattr(attention, "q_lin"):
            parts = (attention.q_lin, attention.k_lin, attention.v_lin, attention.n_heads)
            attended = attention.out_lin(attend(first, hidden_states, attention_mask, *parts))
            attended = self.layer.sa_layer_norm(attended + first)
            answer: Tensor = self.layer.output_layer_norm(self.layer.ffn(attended) + attended)
            return answer
        own = attention.self
        context = attend(first, hidden_states, attention_mask, own.query, own.key, own.value, own.num_attention_heads)
        attended = attention.output(context, first)
        answer = self.layer.output(self.layer.intermediate(attended), attended)
        return answer


def attend(first: Tensor, states: Tensor, mask: Tensor | None, query: Any, key: Any, value: Any, heads: int) -> Tensor:
    """What the first token reads by self-attention, (texts, 1, width).

    Parameters
    ----------
    first, states
        The vectors of the first token, (texts, 1, width), and of all.
    mask
        (texts, 1, queries, tokens): True or 0 where a token is read, False or a low number where it is not.
    query, key, value
        The linear maps.
    heads
        How many heads share the width.
    """
    if not all(type(part) is nn.Linear for part in (query, key, value)):
        raise TypeError("the weights of its attention are not plain")
    texts, _, width = states.shape
    size = query.out_features // heads
    asked = query(first).view(texts, heads, size).transpose(0, 1)  # heads × texts × size
    keys = torch.bmm(asked, key.weight.view(heads, size, width)).transpose(0, 1)  # texts × heads × width
    scores = torch.bmm(keys, states.transpose(1, 2)) * size**-0.5  # texts × heads × tokens
    if mask is not None:
        hidden = mask[:, 0, :1]
        scores = scores.masked_fill(~hidden, -torch.inf) if hidden.dtype == torch.bool else scores + hidden
    means = torch.bmm(scores.softmax(-1), states).transpose(0, 1)  # heads × texts × width
    context = torch.bmm(means, value.weight.view(heads, size, width).transpose(1, 2))  # heads × texts × size
    values = context.transpose(0, 1).reshape(texts, 1, heads * size)
    return values if value.bias is None else values + value.bias


def _alike(short: Tensor, full: Tensor) -> bool:
    if short.shape != full.shape:
        return False
    scale = max(1.0, float(full.abs().max())) if full.numel() else 1.0
    return bool(((short - full).abs() <= TOLERANCE * scale).all())


def _is_hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _shallow(module: Any) -> Any:
    """A copy of one module; its submodules are the same, but others can be put in their place."""
    copy = module.__new__(type(module))
    copy.__dict__ = dict(module.__dict__)
    copy.__dict__["_modules"] = dict(module._modules)
    return copy
