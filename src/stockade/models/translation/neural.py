"""A sequence-to-sequence network and its tokenizer as a translator: our own, or any of transformers.

Greedy decoding is ours for all networks (`decoding.py`) and gives what `generate(num_beams=1, do_sample=False)` gives.
Beam search is ours for our own networks, and `generate`'s for all others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import WordVocabulary
from stockade.core.text import Text
from stockade.core.translation import GreedySteps, SourceAttention, Vectors, ZeroableSource
from stockade.models.encoding import EncodedText, TextEncoder, in_length_batches
from stockade.models.huggingface import network_fingerprint, resolve_device
from stockade.models.translation.common import TranslationModel
from stockade.models.translation.decoding import DecodingRules, beam_search, greedy_search, rules_of

if TYPE_CHECKING:
    from stockade.models.translation.inside import Inside

_BATCH_TOKENS, _BATCH_ROWS = 4096, 256
Answer = TypeVar("Answer")


class NeuralTranslator:
    """A sequence-to-sequence network and its tokenizer, put into evaluation mode.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The network: encoder and decoder.
    tokenizer : transformers tokenizer
        The tokenizer it was trained with.
    device : str, optional
        "cpu", "cuda", "mps" or "auto"; None leaves the model where it is.
    prefix : str
        What stands before every source, such as "translate English to German: " for T5.
    length_penalty : float
        Beam search divides log-probabilities by length to this power.
    """

    deterministic = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        device: str | None = None,
        prefix: str = "",
        length_penalty: float = 1.0,
    ) -> None:
        if tokenizer is None:
            raise ModelError("The translator came without a tokenizer: pass both, as (model, tokenizer).")
        if not getattr(model.config, "is_encoder_decoder", False):
            raise ModelError(
                f"{type(model).__name__} is not a sequence-to-sequence model: expected one with an encoder and a "
                "decoder, such as Marian, T5, BART or one that stockade train --task translation has made."
            )
        if prefix and not prefix[-1].isspace():
            raise OptionError(f'The prefix "{prefix}" must end with a blank, so that it is no part of the first word.')
        if tokenizer.pad_token_id is None:
            raise ModelError("The tokenizer of the translator has no padding token; set tokenizer.pad_token first.")
        self.model = model if device is None else model.to(resolve_device(device))
        self.model.eval()
        self.tokenizer, self.prefix, self.length_penalty = tokenizer, prefix, length_penalty
        self.encoder = TextEncoder.of(tokenizer, model, inspect.signature(model.forward).parameters)
        self._fingerprint: str | None = None

    @cached_property
    def rules(self) -> DecodingRules:
        """How the network begins and ends translations, and what it may not write."""
        return rules_of(self.model)

    def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
        """The translation of each sentence, computed in batches of like lengths; a beam of 1 is greedy decoding."""
        if isinstance(beam, bool) or not isinstance(beam, int) or beam < 1:
            raise OptionError(f"The beam is {beam}, expected a whole number from 1 up.")

        def compute(batch: Sequence[EncodedText]) -> list[str]:
            return self.decoded(self._search(self.encoder.tensors(batch, self.model.device), beam))

        return self.in_batches(texts, compute, rows=max(1, _BATCH_ROWS // beam), tokens=max(1, _BATCH_TOKENS // beam))

    def in_batches(
        self,
        texts: Sequence[str],
        compute: Callable[[Sequence[EncodedText]], Sequence[Answer]],
        *,
        tokens: int = _BATCH_TOKENS,
        rows: int = _BATCH_ROWS,
    ) -> list[Answer]:
        """What `compute` answers to the tokenised texts, in batches of like lengths; each different text once."""
        different = list(dict.fromkeys(texts))
        encoded = self.encoder.encode([self.prefix + text for text in different])
        answers = dict(zip(different, in_length_batches(encoded, compute, tokens, rows), strict=True))
        return [answers[text] for text in texts]

    def decoded(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Tokens of translations as strings."""
        texts: list[str] = self.tokenizer.batch_decode([list(row) for row in rows], skip_special_tokens=True)
        return texts

    def _search(self, inputs: dict[str, Tensor], beam: int) -> list[Sequence[int]]:
        mask = inputs["attention_mask"]
        if beam > 1 and not isinstance(self.model, TranslationModel):
            return self._generate(inputs, beam)
        with torch.inference_mode():
            encoded = self.model.get_encoder()(**inputs)
        if beam == 1:
            return list(greedy_search(self.model, encoded, mask, self.rules))
        found = beam_search(self.model, encoded, mask, self.rules, beam, self.length_penalty)
        return [hypothesis.tokens for hypothesis in found]

    def _generate(self, inputs: dict[str, Tensor], beam: int) -> list[Sequence[int]]:
        """transformers' own beam search, apart for each length limit: how it ends depends on the limit of its batch."""
        written: list[Sequence[int]] = [()] * len(inputs["attention_mask"])
        limits = self.rules.limits(inputs["attention_mask"])
        for limit in limits.unique().tolist():
            rows = (limits == limit).nonzero()[:, 0]
            with torch.inference_mode():
                tokens = self.model.generate(
                    **{name: tensor[rows] for name, tensor in inputs.items()},
                    num_beams=beam,
                    do_sample=False,
                    length_penalty=self.length_penalty,
                    max_new_tokens=limit,
                    max_length=None,
                )
            for row, generated in zip(rows.tolist(), tokens[:, 1:].tolist(), strict=True):
                written[row] = generated
        return written

    def target_tokens(self, word: str) -> tuple[int, ...]:
        """The sub-words of a word as it stands within a translation, with a blank before it."""
        ids: list[int] = self.tokenizer(text_target=word, add_special_tokens=False)["input_ids"]
        if not ids:
            raise OptionError(f'The word "{word}" has no sub-words for this translator; give another.')
        return tuple(ids)

    def greedy_steps(self, sources: Sequence[ZeroableSource], wanted: Sequence[int]) -> list[GreedySteps]:
        """The greedy translation of each source step by step, with the logits of the wanted tokens."""
        return self._inside.greedy_steps(sources, wanted)

    def sentence_vectors(self, texts: Sequence[str]) -> Vectors:
        """A row per sentence: the mean of the encoder's last states over the tokens of the sentence."""
        return self._inside.sentence_vectors(texts)

    def source_attention(self, texts: Sequence[Text], layer: int = -1) -> list[SourceAttention]:
        """The attention of the decoder over the words of each source, step by step."""
        return self._inside.source_attention(texts, layer)

    @cached_property
    def _vocabulary(self) -> WordVocabulary:
        from stockade.models.white_box import word_vocabulary

        return word_vocabulary(self.model.get_encoder(), self.tokenizer)

    def word_vocabulary(self) -> WordVocabulary:
        """The whole words of the vocabulary with their input vectors; read once."""
        return self._vocabulary

    def visible_words(self, texts: Sequence[Text]) -> list[Sequence[int]]:
        """The words of each text that are left when it is cut to what the model can read."""
        if not self.prefix:
            return self.encoder.visible_words(texts)
        before = len(Text.parse(self.prefix).words)
        whole = self.encoder.visible_words([Text.parse(self.prefix + str(text)) for text in texts])
        ends = [(words[0], words[-1] + 1) if words else (0, 0) for words in whole]  # a single text is read in one run
        return [range(max(0, start - before), max(0, end - before)) for start, end in ends]

    @cached_property
    def _inside(self) -> Inside:
        from stockade.models.translation.inside import Inside

        return Inside(self)

    def fingerprint(self) -> str:
        """A hash of the config, every tensor, the tokenizer and how it decodes; computed once."""
        if self._fingerprint is None:
            generation = getattr(self.model, "generation_config", None)
            settings = {} if generation is None else generation.to_dict()
            settings.pop("transformers_version", None)
            self._fingerprint = network_fingerprint(
                self.model, self.tokenizer, settings, self.prefix, self.length_penalty
            )
        return self._fingerprint


def mean_states(states: Tensor, mask: Tensor) -> NDArray[np.float32]:
    """The mean of each row's states at real tokens."""
    real = mask.to(states.dtype)[:, :, None]
    means: NDArray[np.float32] = ((states * real).sum(1) / real.sum(1).clamp(min=1)).float().cpu().numpy()
    return means
