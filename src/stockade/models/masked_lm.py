"""Masked language models: our own on the packaged MiniLM, or any of the hub or a local folder.

The hidden word becomes exactly one mask token whatever stood there, the text around it is tokenised on its own, and a
text that is too long is cut around the mask. The vocabulary is scored at the mask only, which is most of the cost
that is saved against scoring every position.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from stockade.core.errors import ModelError, ResourceMissing
from stockade.core.protocols import Filling
from stockade.models.encoding import length_batches
from stockade.models.hidden_states import hidden_states, logits_everywhere
from stockade.models.huggingface import resolve_device
from stockade.models.language import DEFAULT_MASKED_LM
from stockade.models.lora import load_adapter, merge_adapter
from stockade.models.masked_places import EncodedPlace, EncodedWords
from stockade.models.minilm import minilm_folder
from stockade.models.pretrained import quiet
from stockade.models.vocabulary import BLANKS, whole_words

ADAPTER = "masked-lm.safetensors"
_LONGEST = 512
_PREDICT_TOKENS = 512
"""Tokens computed together where the vocabulary is scored at every one of them."""
_PERPLEXITY_ROWS = 128
_IGNORED = -100
_HEADS = ("cls", "lm_head", "predictions")
"""What the heads of BERT, RoBERTa and ALBERT kinds are called: functions of hidden states, one position at a time."""


Found = TypeVar("Found")
Guesses = tuple[Filling, ...]
Spans = Sequence[tuple[int, int]]
"""Where words begin and end in a text, in characters."""


class MaskedLM:
    """A masked language model; make it with `default()` or `from_pretrained(name)`."""

    def __init__(
        self, tokenizer: Any, hidden: Callable[..., Tensor], head: Callable[[Tensor], Tensor], name: str, maximum: int
    ) -> None:
        self.name = name
        self._tokenizer, self._hidden, self._head = tokenizer, hidden, head
        self._maximum = maximum
        self._words = whole_words(tokenizer)
        self._blank_matters = any(mark in token for token in tokenizer.tokenize(" a") for mark in BLANKS)

    @classmethod
    def default(cls, device: str | None = None) -> MaskedLM:
        """Our adapter and head on the packaged MiniLM."""
        from transformers import AutoTokenizer, BertForMaskedLM

        path = Path(str(resources.files("stockade.artifacts").joinpath(ADAPTER)))
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

        return cls(tokenizer, hidden_states(model.bert.train(False)), head, DEFAULT_MASKED_LM, _LONGEST)

    @classmethod
    def from_pretrained(cls, reference: str | Path, device: str | None = None) -> MaskedLM:
        """Any masked LM of the hub or a local folder, from safetensors."""
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        try:
            with quiet():
                tokenizer = AutoTokenizer.from_pretrained(reference)
                model = AutoModelForMaskedLM.from_pretrained(reference, use_safetensors=True, dtype=torch.float32)
        except Exception as problem:
            said = (str(problem).strip().splitlines() or [type(problem).__name__])[0][:200]
            raise ModelError(
                f'The masked LM "{reference}" cannot be loaded ({said}). Give a local folder or hub name of a '
                "masked LM in safetensors, or leave it out to use the default."
            ) from problem
        if tokenizer.mask_token_id is None:
            raise ModelError(f'"{reference}" is no masked LM: its tokenizer has no mask token.')
        nn.Module.to(model.eval(), resolve_device(device or "auto"))
        known = min(getattr(model.config, "max_position_embeddings", _LONGEST) - 2, tokenizer.model_max_length)
        base = getattr(model, model.base_model_prefix)
        head = next((getattr(model, head) for head in _HEADS if callable(getattr(model, head, None))), None)
        if head is None:
            return cls(tokenizer, logits_everywhere(model), lambda logits: logits, str(reference), min(_LONGEST, known))
        return cls(tokenizer, hidden_states(base), head, str(reference), min(_LONGEST, known))

    def encode(self, places: Sequence[tuple[str, str]]) -> list[EncodedPlace]:
        """Token ids of each place with one mask token between what stands before and behind."""
        sides = [side for before, after in places for side in (before.rstrip(), after)]
        found = self._pieces(sides)
        return [self._place(found[at], found[at + 1]) for at in range(0, len(found), 2)]

    def _pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text without special tokens; fast tokenizers are asked through their Rust object."""
        if not texts:
            return []
        if not self._tokenizer.is_fast:
            found: list[list[int]] = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
            return found
        backend = self._tokenizer.backend_tokenizer
        backend.no_padding()
        backend.no_truncation()
        return [one.ids for one in backend.encode_batch_fast(list(texts), add_special_tokens=False)]

    def _place(self, before: list[int], after: list[int], masks: int = 1) -> EncodedPlace:
        room = max(0, self._maximum - 2 - masks)
        left = min(len(before), max(room // 2, room - len(after)))
        before, after = before[len(before) - left :], after[: room - left]
        tokenizer = self._tokenizer
        begin = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        hidden = [tokenizer.mask_token_id] * masks
        return EncodedPlace((begin, *before, *hidden, *after, end), 1 + len(before))

    def fill(self, batch: Sequence[EncodedPlace], count: int) -> list[tuple[Filling, ...]]:
        """The best `count` tokens at each mask with their raw scores."""
        with torch.inference_mode():
            best = self._at_masks(batch).topk(count)
        return self._fillings(best)

    def _padded(self, batch: Sequence[EncodedPlace | EncodedWords]) -> tuple[Tensor, Tensor]:
        """Ids and attention mask of a batch."""
        width = max(map(len, batch))
        pad = self._tokenizer.pad_token_id or 0
        flat = array("q")
        for place in batch:
            flat.extend(place.ids)
            flat.extend([pad] * (width - len(place)))
        ids = torch.frombuffer(flat, dtype=torch.int64).view(len(batch), width)
        lengths = torch.tensor([len(place) for place in batch])
        return ids, (torch.arange(width) < lengths[:, None]).long()

    def encode_words(self, place: tuple[str, str], words: Sequence[str]) -> list[EncodedWords]:
        """The place with as many mask tokens as the words have pieces, once for each number of pieces."""
        before, after = self._pieces([place[0].rstrip(), place[1]])
        behind_blank = bool(before) and self._blank_matters
        spelt = [f" {word}" if behind_blank else word for word in words]
        pieces = self._pieces(spelt)
        parts = []
        for length in sorted({len(found) for found in pieces} - {0}):
            numbers = tuple(number for number, found in enumerate(pieces) if len(found) == length)
            hidden = self._place(before, after, length)
            parts.append(EncodedWords(hidden.ids, hidden.mask, tuple(tuple(pieces[n]) for n in numbers), numbers))
        return parts

    def word_log_probabilities(self, batch: Sequence[EncodedWords]) -> list[tuple[float, ...]]:
        """The log-probability of each word: its pieces' log-probabilities, each at its own mask token, added up."""
        with torch.inference_mode():
            states = self._hidden(*self._padded(batch))
            found = []
            for row, part in enumerate(batch):
                length = len(part.pieces[0])
                logs = self._head(states[row, part.mask : part.mask + length]).float().log_softmax(1)
                chosen = torch.tensor(part.pieces, device=logs.device)
                found.append(tuple(logs[torch.arange(length, device=logs.device), chosen].sum(1).tolist()))
        return found

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
            found: list[float] = nn.functional.cross_entropy(logits.float(), pieces, reduction="none").tolist()
            return found

        return [
            [sum(pieces) / len(pieces) if pieces else 0.0 for pieces in words]
            for words in self._at_words(texts, spans, losses)
        ]

    def _at_words(
        self, texts: Sequence[str], spans: Sequence[Spans], read: Callable[[Tensor, Tensor], Sequence[Found]]
    ) -> list[list[tuple[Found, ...]]]:
        """What `read` makes of the scores of the vocabulary, and of the piece itself, at every piece of the words at
        the spans of each text.
        """
        cut = {"truncation": True, "max_length": self._maximum, "verbose": False}
        encoded = self._tokenizer(list(texts), return_offsets_mapping=True, **cut) if texts else {"input_ids": []}
        rows = [EncodedPlace(tuple(ids), 0) for ids in encoded["input_ids"]]
        answers: list[list[tuple[Found, ...]]] = [[] for _ in texts]
        for batch in length_batches([len(row) for row in rows], _PREDICT_TOKENS, _PREDICT_TOKENS):
            offsets = [encoded["offset_mapping"][index] for index in batch]
            pieces = [_pieces_of(words, spans[index]) for words, index in zip(offsets, batch, strict=True)]
            places = [(row, at) for row, words in enumerate(pieces) for group in words for at in group]
            found = iter(self._read([rows[index] for index in batch], places, read))
            for index, words in zip(batch, pieces, strict=True):
                answers[index] = [tuple(next(found) for _ in group) for group in words]
        return answers

    def _read(
        self,
        batch: Sequence[EncodedPlace],
        places: Sequence[tuple[int, int]],
        read: Callable[[Tensor, Tensor], Sequence[Found]],
    ) -> Sequence[Found]:
        """What `read` makes of (row, position) places of a batch."""
        if not places:
            return []
        with torch.inference_mode():
            ids, attention = self._padded(batch)
            states = self._hidden(ids, attention)
            rows, positions = torch.tensor(places, device=states.device).t()
            return read(self._head(states[rows, positions]), ids.to(states.device)[rows, positions])

    def perplexities(self, rows: Sequence[tuple[int, ...]]) -> list[float]:
        """exp(mean cross-entropy) of each row of tokens given to the model by itself, without special tokens."""
        found = [0.0] * len(rows)
        for batch in length_batches([len(row) for row in rows], _PREDICT_TOKENS, _PERPLEXITY_ROWS):
            ids, attention = self._padded([EncodedPlace(rows[index], 0) for index in batch])
            with torch.inference_mode():
                logits = self._head(self._hidden(ids, attention)).float()
                targets = ids.masked_fill(attention == 0, _IGNORED).to(logits.device)
                losses = nn.functional.cross_entropy(
                    logits.flatten(0, 1), targets.flatten(), reduction="none", ignore_index=_IGNORED
                )
            lengths = torch.tensor([len(rows[index]) for index in batch], device=losses.device)
            means = losses.view(len(batch), -1).sum(1) / lengths
            for index, value in zip(batch, means.exp().tolist(), strict=True):
                found[index] = value
        return found

    def hidden_in_turn(self, text: str) -> list[tuple[EncodedPlace, int]]:
        """Every known piece of the text with the text in which it alone is hidden; the end of a long text is cut."""
        ids = self._tokenizer(text, truncation=True, max_length=self._maximum, verbose=False)["input_ids"]
        special, mask = set(self._tokenizer.all_special_ids), self._tokenizer.mask_token_id
        return [
            (EncodedPlace((*ids[:at], mask, *ids[at + 1 :]), at), piece)
            for at, piece in enumerate(ids)
            if piece not in special
        ]

    def losses(self, batch: Sequence[EncodedPlace], pieces: Sequence[int]) -> list[float]:
        """-ln p of the piece that each mask hides."""
        with torch.inference_mode():
            logits = self._at_masks(batch).float()
            targets = torch.tensor(pieces, device=logits.device)
            losses: list[float] = nn.functional.cross_entropy(logits, targets, reduction="none").tolist()
        return losses

    def _at_masks(self, batch: Sequence[EncodedPlace]) -> Tensor:
        """Scores of the vocabulary at each mask."""
        states = self._hidden(*self._padded(batch))
        rows = torch.arange(len(batch), device=states.device)
        masks = torch.tensor([place.mask for place in batch], device=states.device)
        return self._head(states[rows, masks])

    def _fillings(self, best: Any) -> list[tuple[Filling, ...]]:
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [tuple(self._filling(token, score) for token, score in zip(*row, strict=True)) for row in rows]

    def _filling(self, token: int, score: float) -> Filling:
        word, whole = self._words[token]
        return Filling(word, score, whole, token)


def _pieces_of(offsets: Sequence[tuple[int, int]], spans: Spans) -> list[list[int]]:
    """The tokens that each stretch of a text overlaps."""
    return [[at for at, (a, b) in enumerate(offsets) if a < end and b > start and b > a] for start, end in spans]
