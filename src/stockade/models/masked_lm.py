"""Masked language models: our own on the packaged MiniLM, or any of the hub or a local folder.

The vocabulary is scored at the mask only, which saves most of the cost of scoring every position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from stockade.artifacts import artifact_path
from stockade.core.errors import ModelError, ResourceMissing
from stockade.core.protocols import Filling
from stockade.datasets.wording import first_line
from stockade.models.encoding import length_batches
from stockade.models.huggingface import resolve_device
from stockade.models.language import DEFAULT_MASKED_LM, minilm_folder
from stockade.models.lora import load_adapter, merge_adapter
from stockade.models.masked_places import EncodedPlace, EncodedWords, PlaceEncoder, Spans
from stockade.models.pretrained import check_config, check_sizes, quiet
from stockade.models.word_tokens import whole_words

ADAPTER = "masked-lm.safetensors"
_LONGEST = 512
_PREDICT_TOKENS = 512
"""Tokens computed together where the vocabulary is scored at every one of them."""
_PERPLEXITY_ROWS = 128
_IGNORED = -100
_HEADS = ("cls", "lm_head", "predictions")
"""What the heads of BERT, RoBERTa and ALBERT kinds are called: functions of hidden states, one position at a time."""

Value = TypeVar("Value")
Guesses = tuple[Filling, ...]


class MaskedLM:
    """A masked language model; make it with `default()` or `from_pretrained(name)`.

    Parameters
    ----------
    tokenizer : transformers tokenizer
        Its tokenizer.
    hidden, head : callable
        Ids and attention mask to hidden vectors; hidden vectors to scores of the vocabulary.
    name : str
        What manifests call it.
    maximum : int
        How many tokens it reads.
    """

    def __init__(
        self,
        tokenizer: Any,
        hidden: Callable[..., Tensor],
        head: Callable[[Tensor], Tensor],
        *,
        name: str,
        maximum: int,
    ) -> None:
        self.name = name
        self._hidden, self._head = hidden, head
        self._places = PlaceEncoder(tokenizer, maximum)
        self._words = whole_words(tokenizer)

    @classmethod
    def default(cls, device: str | None = None) -> MaskedLM:
        """Our adapter and head on the packaged MiniLM."""
        from transformers import AutoTokenizer, BertForMaskedLM

        path = artifact_path(ADAPTER)
        if not path.is_file():
            raise ResourceMissing(f"The masked LM {ADAPTER} is missing from the installation. Reinstall Stockade.")
        folder = minilm_folder()
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder)
            model = BertForMaskedLM.from_pretrained(folder, use_safetensors=True, dtype=torch.float32)
        adapter = load_adapter(path)
        mask_vector, scale = adapter.replaced.pop("mask_vector"), adapter.replaced.pop("output_scale")
        merge_adapter(model, adapter)
        nn.Module.to(model, resolve_device(device or "auto"))
        embeddings = model.bert.embeddings.word_embeddings.weight
        words = embeddings.detach().clone()  # the output side keeps the old vector of the mask token
        with torch.no_grad():
            embeddings[tokenizer.mask_token_id] = mask_vector.to(embeddings)
        predictions = model.cls.predictions

        def head(states: Tensor) -> Tensor:
            logits: Tensor = predictions.transform(states) @ words.t() * scale.to(words) + predictions.bias
            return logits

        return cls(tokenizer, hidden_states(model.bert.train(False)), head, name=DEFAULT_MASKED_LM, maximum=_LONGEST)

    @classmethod
    def from_pretrained(cls, reference: str | Path, device: str | None = None) -> MaskedLM:
        """Any masked LM of the hub or a local folder, from safetensors."""
        from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

        try:
            with quiet():
                check_sizes(str(reference))
                config = AutoConfig.from_pretrained(reference, trust_remote_code=False)
                check_config(str(reference), config)
                tokenizer = AutoTokenizer.from_pretrained(reference, trust_remote_code=False)
                model = AutoModelForMaskedLM.from_pretrained(
                    reference, config=config, use_safetensors=True, trust_remote_code=False, dtype=torch.float32
                )
        except ModelError:
            raise
        except Exception as problem:
            raise ModelError(
                f'The masked LM "{reference}" cannot be loaded ({first_line(problem, 200)}). Give a local folder or '
                "hub name of a masked LM in safetensors, or leave it out to use the default."
            ) from problem
        if tokenizer.mask_token_id is None:
            raise ModelError(f'"{reference}" is no masked LM: its tokenizer has no mask token.')
        nn.Module.to(model.eval(), resolve_device(device or "auto"))
        window = getattr(model.config, "max_position_embeddings", _LONGEST) - 2
        maximum = min(_LONGEST, window, tokenizer.model_max_length)
        head = next((getattr(model, head) for head in _HEADS if callable(getattr(model, head, None))), None)
        if head is None:
            hidden, head = logits_everywhere(model), lambda logits: logits
        else:
            hidden = hidden_states(getattr(model, model.base_model_prefix))
        return cls(tokenizer, hidden, head, name=str(reference), maximum=maximum)

    def encode(self, places: Sequence[tuple[str, str]]) -> list[EncodedPlace]:
        """Token ids of each place with one mask token between what stands before and behind."""
        return self._places.encode(places)

    def encode_words(self, place: tuple[str, str], words: Sequence[str]) -> list[EncodedWords]:
        """The place with as many mask tokens as the words have pieces, once for each number of pieces."""
        return self._places.encode_words(place, words)

    def hidden_in_turn(self, text: str) -> list[tuple[EncodedPlace, int]]:
        """Every piece of the text with the text in which it alone is hidden."""
        return self._places.hidden_in_turn(text)

    def fill(self, batch: Sequence[EncodedPlace], count: int) -> list[tuple[Filling, ...]]:
        """The best `count` tokens at each mask with their raw scores."""
        with torch.inference_mode():
            best = self._at_masks(batch).topk(count)
        return self._fillings(best)

    def word_log_probabilities(self, batch: Sequence[EncodedWords]) -> list[tuple[float, ...]]:
        """The log-probability of each word: its pieces' log-probabilities, each at its own mask token, added up."""
        with torch.inference_mode():
            states = self._hidden(*self._places.padded(batch))
            answers = []
            for row, part in enumerate(batch):
                length = len(part.pieces[0])
                logs = self._head(states[row, part.mask : part.mask + length]).float().log_softmax(1)
                chosen = torch.tensor(part.pieces, device=logs.device)
                answers.append(tuple(logs[torch.arange(length, device=logs.device), chosen].sum(1).tolist()))
        return answers

    def predict(self, texts: Sequence[str], spans: Sequence[Spans], count: int) -> list[list[tuple[Guesses, ...]]]:
        """Guesses at every piece of the words at the spans of each text; a word beyond what the model can read has no
        pieces.
        """
        return self._at_words(texts, spans, lambda logits, _: self._fillings(logits.topk(count)))

    def surprisals(self, texts: Sequence[str], spans: Sequence[Spans]) -> list[list[float]]:
        """How unexpected the words at the spans of each text are where they stand, seen as they are: the mean of -ln p
        over a word's pieces, 0 for a word beyond what the model can read.
        """

        def losses(logits: Tensor, pieces: Tensor) -> list[float]:
            values: list[float] = nn.functional.cross_entropy(logits.float(), pieces, reduction="none").tolist()
            return values

        return [
            [sum(pieces) / len(pieces) if pieces else 0.0 for pieces in words]
            for words in self._at_words(texts, spans, losses)
        ]

    def _at_words(
        self, texts: Sequence[str], spans: Sequence[Spans], read: Callable[[Tensor, Tensor], Sequence[Value]]
    ) -> list[list[tuple[Value, ...]]]:
        """What `read` makes of the scores of the vocabulary, and of the piece itself, at every piece of the words at
        the spans of each text.
        """
        encoded = self._places.encode_whole(texts, spans)
        answers: list[list[tuple[Value, ...]]] = [[] for _ in texts]
        for batch in length_batches([len(row) for row, _ in encoded], _PREDICT_TOKENS, _PREDICT_TOKENS):
            pieces = [encoded[index][1] for index in batch]
            places = [(row, at) for row, words in enumerate(pieces) for group in words for at in group]
            values = iter(self._read([encoded[index][0] for index in batch], places, read))
            for index, words in zip(batch, pieces, strict=True):
                answers[index] = [tuple(next(values) for _ in group) for group in words]
        return answers

    def _read(
        self,
        batch: Sequence[EncodedPlace],
        places: Sequence[tuple[int, int]],
        read: Callable[[Tensor, Tensor], Sequence[Value]],
    ) -> Sequence[Value]:
        """What `read` makes of (row, position) places of a batch."""
        if not places:
            return []
        with torch.inference_mode():
            ids, attention = self._places.padded(batch)
            states = self._hidden(ids, attention)
            rows, positions = torch.tensor(places, device=states.device).t()
            return read(self._head(states[rows, positions]), ids.to(states.device)[rows, positions])

    def perplexities(self, rows: Sequence[tuple[int, ...]]) -> list[float]:
        """exp(mean cross-entropy) of each row of tokens given to the model by itself, without special tokens."""
        answers = [0.0] * len(rows)
        for batch in length_batches([len(row) for row in rows], _PREDICT_TOKENS, _PERPLEXITY_ROWS):
            ids, attention = self._places.padded([EncodedPlace(rows[index], 0) for index in batch])
            with torch.inference_mode():
                logits = self._head(self._hidden(ids, attention)).float()
                targets = ids.masked_fill(attention == 0, _IGNORED).to(logits.device)
                losses = nn.functional.cross_entropy(
                    logits.flatten(0, 1), targets.flatten(), reduction="none", ignore_index=_IGNORED
                )
            lengths = torch.tensor([len(rows[index]) for index in batch], device=losses.device)
            means = losses.view(len(batch), -1).sum(1) / lengths
            for index, value in zip(batch, means.exp().tolist(), strict=True):
                answers[index] = value
        return answers

    def losses(self, batch: Sequence[EncodedPlace], pieces: Sequence[int]) -> list[float]:
        """-ln p of the piece that each mask hides."""
        with torch.inference_mode():
            logits = self._at_masks(batch).float()
            targets = torch.tensor(pieces, device=logits.device)
            losses: list[float] = nn.functional.cross_entropy(logits, targets, reduction="none").tolist()
        return losses

    def _at_masks(self, batch: Sequence[EncodedPlace]) -> Tensor:
        """Scores of the vocabulary at each mask."""
        states = self._hidden(*self._places.padded(batch))
        rows = torch.arange(len(batch), device=states.device)
        masks = torch.tensor([place.mask for place in batch], device=states.device)
        return self._head(states[rows, masks])

    def _fillings(self, best: Any) -> list[tuple[Filling, ...]]:
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [tuple(self._filling(token, score) for token, score in zip(*row, strict=True)) for row in rows]

    def _filling(self, token: int, score: float) -> Filling:
        word, whole = self._words[token]
        return Filling(word, score, whole, token)


def hidden_states(base: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """What a masked LM computes before its head: a hidden vector for every position."""

    def compute(ids: Tensor, attention: Tensor) -> Tensor:
        device = base.device
        states: Tensor = base(input_ids=ids.to(device), attention_mask=attention.to(device)).last_hidden_state
        return states

    return compute


def logits_everywhere(model: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """The logits of every position in place of hidden vectors, for architectures whose head we do not know."""

    def compute(ids: Tensor, attention: Tensor) -> Tensor:
        device = model.device
        logits: Tensor = model(input_ids=ids.to(device), attention_mask=attention.to(device)).logits
        return logits

    return compute
