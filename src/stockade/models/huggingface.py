"""Any Hugging Face sequence classifier as a victim: `AutoModelForSequenceClassification` and its tokenizer.

Logits are computed in the model's precision and turned into probabilities in float64, so that a log-odds
keeps its digits where a float32 probability would be 1. Texts that are longer than the model can read are cut
as in training (for pairs the longer side first).
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from stockade.core.errors import ModelError, OptionError
from stockade.core.masks import Keep
from stockade.core.protocols import (
    AttentionQuery,
    ImportanceObjective,
    MixedCopies,
    NoisedCopies,
    Probabilities,
    TokenScores,
    WordVocabulary,
)
from stockade.core.text import Text, TextInput
from stockade.datasets.wording import first_line
from stockade.models.encoding import EncodedText, TextEncoder, in_length_batches
from stockade.models.first_token import FirstTokenPass

if TYPE_CHECKING:
    from stockade.models.white_box import WhiteBox
    from stockade.models.word_tokens import WordReader

_BATCH_TOKENS = 4096
_BATCH_ROWS = 256
_REPRESENTED_TOKENS = 1024
_SMALL = 1_000_000
"""A model with fewer weights (embeddings aside) is faster on one thread than shared out to several."""
_VOLATILE = frozenset(
    {"_name_or_path", "name_or_path", "transformers_version", "dtype", "torch_dtype", "_attn_implementation"}
)
"""Config entries that say where a model came from or how it runs, not what it is."""


_DAMAGED = (AttributeError, LookupError, TypeError, ValueError)


class HuggingFaceClassifier:
    """A sequence classification model and its tokenizer, put into evaluation mode.

    A model with one logit (a binary classifier) is read as the probability of the second of two labels.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The sequence classification model.
    tokenizer : transformers tokenizer
        The tokenizer it was trained with.
    labels : sequence of str, optional
        Names of the classes, in place of those in the model's config.
    device : str, optional
        "cpu", "cuda", "mps" or "auto"; None leaves the model where it is.
    """

    deterministic = True

    def __init__(
        self, model: Any, tokenizer: Any, *, labels: Sequence[str] | None = None, device: str | None = None
    ) -> None:
        if tokenizer is None:
            raise ModelError("The model came without a tokenizer: pass both, as (model, tokenizer).")
        if getattr(model.config, "problem_type", None) == "multi_label_classification":
            raise ModelError(
                "The model is multi-label (problem_type multi_label_classification): its classes do not "
                "exclude each other. Stockade attacks single-label classifiers; wrap the one label you care "
                "about in a callable."
            )
        if getattr(model.config, "problem_type", None) == "regression":
            raise ModelError(
                "The model is a regression (problem_type regression), not a classifier: it has no classes to flip."
            )
        self.model = model if device is None else model.to(resolve_device(device))
        self.model.eval()
        self.tokenizer = tokenizer
        self.labels = _labels(model.config, labels)
        self._single_logit = int(model.config.num_labels) == 1
        self._encoder = TextEncoder.of(tokenizer, model, inspect.signature(model.forward).parameters)
        on_cpu = self.model.device.type == "cpu"
        small = on_cpu and _computing_weights(model) < _SMALL
        self.workers = torch.get_num_threads() if on_cpu and not small else 1
        self._threads = 1 if small else None
        self._one_by_one = tokenizer.pad_token_id is None
        self._forward = FirstTokenPass(self.model)
        self._fingerprint: str | None = None
        self._vocabulary: WordVocabulary | None = None
        self._signs: WordVocabulary | None = None

    @classmethod
    def from_pretrained(
        cls,
        reference: str | Path,
        *,
        labels: Sequence[str] | None = None,
        device: str | None = None,
        allow_pickle: bool = False,
        trust_remote_code: bool = False,
    ) -> HuggingFaceClassifier:
        """Load a local folder or a hub name; see `stockade.models.pretrained` for what is refused.

        Parameters
        ----------
        reference : str or Path
            The folder or the hub name.
        labels : sequence of str, optional
            Names of the classes, in place of those in the model's config.
        device : str, optional
            "cpu", "cuda", "mps" or "auto", which is the default.
        allow_pickle, trust_remote_code : bool
            Allow pickled weights; allow code that comes with the model.
        """
        from stockade.models.pretrained import load_pretrained

        model, tokenizer = load_pretrained(reference, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        try:
            return cls(model, tokenizer, labels=labels, device=device or "auto")
        except BaseException as problem:  # a config or tokenizer that was edited; Rust's panics are no Exception
            if not (isinstance(problem, _DAMAGED) or type(problem).__name__ == "PanicException"):
                raise
            raise ModelError(
                f"{reference} cannot be used: its config or its tokenizer is damaged ({first_line(problem, 200)}). "
                "Restore it, or save the model again."
            ) from problem

    def encode(self, inputs: Sequence[TextInput]) -> list[EncodedText]:
        """Tokenise all texts at once, without padding."""
        return self._encoder.encode(inputs)

    def predict_encoded(self, batch: Sequence[EncodedText]) -> Probabilities:
        """Class probabilities of tokenised texts, in one forward pass (without a padding token, one per text)."""
        if not batch:
            return np.zeros((0, len(self.labels)))
        if self._one_by_one and len(batch) > 1:
            return np.concatenate([self.predict_encoded([encoded]) for encoded in batch])
        return self._probabilities(self._logits(batch), len(batch))

    def logits_encoded(self, batch: Sequence[EncodedText]) -> Probabilities:
        """The logits of tokenised texts; a model with a single logit has 0 for the first class."""
        if not batch:
            return np.zeros((0, len(self.labels)))
        if self._one_by_one and len(batch) > 1:
            return np.concatenate([self.logits_encoded([encoded]) for encoded in batch])
        answer: Probabilities = self._by_class(self._logits(batch), len(batch)).numpy()
        return answer

    def _logits(self, batch: Sequence[EncodedText]) -> torch.Tensor:
        with torch.inference_mode(), _threads(self._threads):
            logits = self._forward.logits(self._encoder.tensors(batch, self.model.device))
            return logits.to("cpu", torch.float32).to(torch.float64)

    def _probabilities(self, logits: torch.Tensor, rows: int) -> Probabilities:
        with torch.inference_mode():
            answer: Probabilities = self._by_class(logits, rows).softmax(1).numpy()
        return answer

    def _by_class(self, logits: torch.Tensor, rows: int) -> torch.Tensor:
        if self._single_logit:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        if logits.shape != (rows, len(self.labels)):
            raise ModelError(
                f"The model answered {rows} texts with logits of shape {tuple(logits.shape)}; "
                f"expected {(rows, len(self.labels))}."
            )
        return logits

    def start_worker(self) -> None:
        """One thread per batch in a worker: several batches at once use the cores better than one batch shared out."""
        torch.set_num_threads(1)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text, computed in batches of like lengths."""
        rows = in_length_batches(self.encode(inputs), self.predict_encoded, _BATCH_TOKENS, _BATCH_ROWS)
        return np.array(rows, dtype=np.float64).reshape(len(inputs), len(self.labels))

    def encode_masked(self, words: Sequence[str], premise: str | None, keep: Keep) -> list[EncodedText]:
        """Copies of a text with words hidden, made from one tokenisation."""
        from stockade.models.masking import encode_masked

        return encode_masked(self._encoder, words, premise, keep, self._encoder.maximum)

    def visible_words(self, texts: Sequence[Text]) -> list[Sequence[int]]:
        """The words of each text that are left when it is cut to what the model can read."""
        return self._encoder.visible_words(texts)

    def word_gradients(self, texts: Sequence[Text], label: int) -> list[NDArray[np.float32]]:
        """The gradient of the loss of a class with respect to the input vector of each word; a row per word."""
        from stockade.models.white_box import word_gradients

        return word_gradients(self.word_reader, texts, label)

    def word_vocabulary(self) -> WordVocabulary:
        """The whole words of the vocabulary with their input vectors; read once."""
        from stockade.models.white_box import word_vocabulary

        if self._vocabulary is None:
            self._vocabulary = word_vocabulary(self.model, self.tokenizer)
        return self._vocabulary

    def whole_vocabulary(self) -> WordVocabulary:
        """The same with digits, punctuation and other signs; read once."""
        from stockade.models.white_box import word_vocabulary

        if self._signs is None:
            self._signs = word_vocabulary(self.model, self.tokenizer, "all")
        return self._signs

    def predict_zeroed(self, places: Sequence[tuple[Text, int]]) -> Probabilities:
        """Class probabilities of each text with the input vectors of one word zeroed."""
        return self._probabilities(torch.from_numpy(self._white_box.logits_zeroed(places)), len(places))

    def represent(self, inputs: Sequence[TextInput]) -> tuple[Probabilities, NDArray[np.float32]]:
        """Class probabilities and what the last linear layer reads, a row each per text."""

        def compute(batch: Sequence[EncodedText]) -> list[tuple[Any, Any]]:
            return list(zip(*self.represent_encoded(batch), strict=True))

        rows = in_length_batches(self.encode(inputs), compute, _REPRESENTED_TOKENS, _BATCH_ROWS)
        return np.stack([row for row, _ in rows]), np.stack([vector for _, vector in rows])

    def represent_encoded(self, batch: Sequence[EncodedText]) -> tuple[Probabilities, NDArray[np.float32]]:
        """Class probabilities and what the last linear layer reads, in one forward pass."""
        from stockade.models.white_box import sentence_vectors

        with sentence_vectors(self.model) as vectors:
            probabilities = self.predict_encoded(batch)
        computed = torch.cat(vectors)[-len(batch) :]  # a pass that was only compared came before
        return probabilities, computed.float().cpu().numpy()

    def word_attention(self, texts: Sequence[Text], layer: int, query: AttentionQuery) -> list[NDArray[np.float32]]:
        """How much attention each word gets in a layer: the mean over its heads, the sum over the word's tokens."""
        pieces = self._white_box.piece_attention(texts, layer, query)
        return [np.array([float(word.sum()) for word in words], dtype=np.float32) for words in pieces]

    def piece_attention(
        self, texts: Sequence[Text], layer: int, query: AttentionQuery
    ) -> list[list[NDArray[np.float32]]]:
        """How much attention each token of each word gets in a layer, the mean over its heads."""
        return self._white_box.piece_attention(texts, layer, query)

    def token_importance(self, texts: Sequence[Text], objective: ImportanceObjective) -> list[TokenScores]:
        """How much the answer depends on each token of each word: the norm of a gradient."""
        from stockade.models.input_vectors import token_importance

        return token_importance(self.word_reader, texts, objective)

    def predict_noised(self, requests: Sequence[NoisedCopies]) -> Probabilities:
        """Class probabilities of copies of texts with noise on the input vectors of some tokens."""
        from stockade.models.input_vectors import logits_noised

        logits = logits_noised(self.word_reader, requests)
        return self._probabilities(torch.from_numpy(logits), sum(request.copies for request in requests))

    def predict_mixed(self, requests: Sequence[MixedCopies]) -> Probabilities:
        """Class probabilities of copies of texts with mixtures for the input vectors of some words."""
        from stockade.models.input_vectors import logits_mixed

        logits = logits_mixed(self.word_reader, self.word_vocabulary().vectors, requests)
        return self._probabilities(torch.from_numpy(logits), sum(len(request.weights) for request in requests))

    @cached_property
    def _white_box(self) -> WhiteBox:
        from stockade.models.white_box import WhiteBox

        return WhiteBox(self.word_reader)

    @cached_property
    def word_reader(self) -> WordReader:
        """Reads texts word by word, cut as they are for an answer."""
        from stockade.models.word_tokens import WordReader

        return WordReader(self.model, self.tokenizer, self._encoder.maximum)

    def fingerprint(self) -> str:
        """A hash of the config, every tensor and the tokenizer; computed once, so change a model before wrapping it."""
        if self._fingerprint is None:
            self._fingerprint = network_fingerprint(self.model, self.tokenizer)
        return self._fingerprint


def network_fingerprint(model: Any, tokenizer: Any, *settings: object) -> str:
    """A hash of a network's config, every tensor, the tokenizer, and other settings that decide its answers."""
    digest = hashlib.sha256()
    config = {name: value for name, value in model.config.to_dict().items() if name not in _VOLATILE}
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    digest.update(_tokenizer_state(tokenizer))
    for setting in settings:
        digest.update(json.dumps(setting, sort_keys=True, default=str).encode())
    return digest.hexdigest()


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Compute on that many threads inside the `with`; None leaves torch's setting alone."""
    before = torch.get_num_threads()
    if number is None or number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _computing_weights(model: Any) -> int:
    """How many weights take part in every forward pass: all but the tables that are only looked up."""
    looked_up = {id(layer.weight) for layer in model.modules() if isinstance(layer, torch.nn.Embedding)}
    return sum(weight.numel() for weight in model.parameters() if id(weight) not in looked_up)


def resolve_device(name: str) -> torch.device:
    """The device of that name; "auto" takes the best there is."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    kind = name.partition(":")[0]
    if kind not in available:
        raise OptionError(f'There is no device "{name}" (expected: auto, cpu, cuda or mps).')
    if not available[kind]:
        kinds = ", ".join(kind for kind, there in available.items() if there)
        raise OptionError(f'The device "{name}" is not available here (found: {kinds}).')
    return torch.device(name)


def _labels(config: Any, labels: Sequence[str] | None) -> tuple[str, ...]:
    count = int(config.num_labels)
    expected = max(2, count)
    if labels is not None:
        if len(labels) != expected:
            raise ModelError(
                f"The model has {expected} classes but {len(labels)} labels were given ({', '.join(labels)})."
            )
        names = tuple(str(label) for label in labels)
        if len(set(names)) < len(names):
            raise ModelError(f"The labels {', '.join(names)} are not all different. Give each class a name of its own.")
        return names
    named = {int(number): str(name) for number, name in (config.id2label or {}).items()}
    if count > 1:
        return tuple(named.get(number, f"LABEL_{number}") for number in range(count))
    positive = named.get(0, "LABEL_0")
    return ("0", "1") if positive == "LABEL_0" else (f"not {positive}", positive)


def _tokenizer_state(tokenizer: Any) -> bytes:
    """What the tokenizer does, without the padding and truncation that its last call left behind."""
    if tokenizer.is_fast:
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        return json.dumps({**state, "padding": None, "truncation": None}, sort_keys=True).encode()
    return json.dumps([type(tokenizer).__name__, tokenizer.get_vocab()], sort_keys=True).encode()
