"""Greedy and beam search over a batch of sentences, with a decoder that remembers the steps before.

Both work on every sequence-to-sequence model that is called as those of transformers are. A sentence that has ended
leaves the batch, and how long a translation may become depends on its own source alone, so that a translation does not
depend on the sentences beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from stockade.core.errors import ModelError

_PER_SOURCE_TOKEN, _BESIDES = 2, 20
"""A translation has at most so many tokens for each token of its source, and so many besides."""
_LONGEST = 1024
"""The most tokens of a translation where the model has no limit of its own."""


class LogitsRule(Protocol):
    """A logits processor of transformers: changes the logits of the next token, given all tokens before it."""

    def __call__(self, input_ids: Any, scores: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class DecodingRules:
    """What a model's configuration says about decoding.

    Parameters
    ----------
    start
        The token that the decoder begins with.
    ends
        The tokens that end a sentence.
    longest
        The most tokens that the model can write.
    processors
        Changes to the logits that the model's generation config asks for, in order.
    forced_end
        The token that a translation is made to end with where it would become too long; None cuts it off.
    """

    start: int
    ends: tuple[int, ...]
    longest: int
    processors: tuple[LogitsRule, ...] = ()
    forced_end: int | None = None

    def limits(self, attention_mask: Tensor) -> Tensor:
        """How many tokens the translation of each row may have."""
        return (_PER_SOURCE_TOKEN * attention_mask.sum(1) + _BESIDES).clamp(max=self.longest)

    def next_logits(self, tokens: Tensor, logits: Tensor) -> Tensor:
        """The logits from which the next token is chosen; `tokens` begin with the start token."""
        for processor in self.processors:
            logits = processor(tokens, logits)
        return logits


StepObserver = Callable[[Tensor, Tensor, Any], None]
"""Told at each step of the rows that are still being written: their numbers, their logits and the model's output."""


@torch.inference_mode()
def greedy_search(
    model: Any,
    encoded: Any,
    attention_mask: Tensor,
    rules: DecodingRules,
    observe: StepObserver | None = None,
    **arguments: Any,
) -> list[list[int]]:
    """For each row of a batch the tokens that are the most probable ones step by step; the last one ends the sentence.

    Parameters
    ----------
    model
        The network.
    encoded
        The encoder's output for the batch.
    attention_mask
        1 at real tokens of the sources.
    rules
        How the model begins, ends, and what it may not write.
    observe
        Told of each step.
    **arguments
        More arguments of the model's forward pass, such as `output_attentions`.
    """
    limits, device = rules.limits(attention_mask), attention_mask.device
    count = len(attention_mask)
    written: list[list[int]] = [[] for _ in range(count)]
    steps = _Steps(model, encoded, attention_mask, arguments)
    rows = torch.arange(count, device=device)
    tokens = torch.full((count, 1), rules.start, dtype=torch.long, device=device)
    ends = torch.tensor(rules.ends, device=device)
    while len(rows):
        output = steps.next(tokens[:, -1:])
        logits = rules.next_logits(tokens, output.logits[:, -1].float())
        step = tokens.shape[1]
        if rules.forced_end is not None:
            logits = _forced(logits, limits[rows] == step, rules.forced_end)
        if observe is not None:
            observe(rows, logits, output)
        chosen = logits.argmax(1)
        for row, token in zip(rows.tolist(), chosen.tolist(), strict=True):
            written[row].append(token)
        tokens = torch.cat([tokens, chosen[:, None]], 1)
        going = (~torch.isin(chosen, ends) & (limits[rows] > step)).nonzero()[:, 0]
        if len(going) < len(rows):
            rows, tokens = rows[going], tokens[going]
            if len(rows):
                steps.select(going)
    return written


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished translation of a beam search: its tokens, its log-probability, and that divided by its length."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float


@torch.inference_mode()
def beam_search(
    model: Any, encoded: Any, attention_mask: Tensor, rules: DecodingRules, beam: int, length_penalty: float = 1.0
) -> list[Hypothesis]:
    """The best translation of each row that a beam search finds, as fairseq searches.

    At each step the best 2 · beam continuations of a sentence are looked at: those of the first half that end it are
    finished, and the best `beam` that do not are continued. A sentence is done when it has `beam` finished ones. The
    best has the largest log-probability divided by length ** length_penalty; the end-of-sentence token counts.
    """
    limits, device = rules.limits(attention_mask).tolist(), attention_mask.device
    count = len(attention_mask)
    finished: list[list[Hypothesis]] = [[] for _ in range(count)]
    steps = _Steps(model, encoded, attention_mask, {})
    sentences = list(range(count))
    tokens = torch.full((count, 1), rules.start, dtype=torch.long, device=device)
    scores = torch.zeros(count, 1, device=device)
    ends = torch.tensor(rules.ends, device=device)
    width = 1
    while sentences:
        logits = rules.next_logits(tokens, steps.next(tokens[:, -1:]).logits[:, -1].float())
        step = tokens.shape[1]
        at_limit = torch.tensor([limits[sentence] <= step for sentence in sentences], device=device)
        only_end = at_limit[:, None] & ~torch.isin(torch.arange(logits.shape[1], device=device), ends)
        allowed = logits.log_softmax(1).view(len(sentences), width, -1)
        totals = scores[:, :, None] + allowed.masked_fill(only_end[:, None], -torch.inf)
        vocabulary = totals.shape[2]
        best, places = totals.flatten(1).topk(min(2 * beam, width * vocabulary), 1)
        sources, chosen = places // vocabulary, places % vocabulary
        ending = torch.isin(chosen, ends)
        offsets = torch.arange(len(sentences), device=device)[:, None] * width
        histories = tokens.view(len(sentences), width, -1)
        for number, column in (ending[:, :beam] & best[:, :beam].isfinite()).nonzero().tolist():
            prefix = histories[number, int(sources[number, column]), 1:].tolist()
            total = float(best[number, column])
            hypothesis = Hypothesis((*prefix, int(chosen[number, column])), total, total / step**length_penalty)
            if len(finished[sentences[number]]) < beam:
                finished[sentences[number]].append(hypothesis)
        kept = best.masked_fill(ending, -torch.inf)
        scores, order = kept.topk(min(beam, kept.shape[1]), 1)
        left = [
            number
            for number, sentence in enumerate(sentences)
            if len(finished[sentence]) < beam and limits[sentence] > step and bool(scores[number, 0].isfinite())
        ]
        if not left:
            break
        rows = (offsets + sources).gather(1, order)[left].flatten()
        tokens = torch.cat([tokens[rows], chosen.gather(1, order)[left].flatten()[:, None]], 1)
        steps.select(rows)
        scores, width = scores[left], scores.shape[1]
        sentences = [sentences[number] for number in left]
    return [max(hypotheses, key=lambda hypothesis: hypothesis.score) for hypotheses in finished]


class _Steps:
    """A decoder that is run one token at a time."""

    def __init__(self, model: Any, encoded: Any, attention_mask: Tensor, arguments: Mapping[str, Any]) -> None:
        self._model, self._arguments = model, arguments
        self._encoded, self._mask = encoded, attention_mask
        self._cache: Any = None

    def next(self, tokens: Tensor) -> Any:
        """The model's output for the next tokens of all rows, rows × 1."""
        output = self._model(
            encoder_outputs=self._encoded,
            attention_mask=self._mask,
            decoder_input_ids=tokens,
            past_key_values=self._cache,
            use_cache=True,
            **self._arguments,
        )
        self._cache = output.past_key_values
        return output

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        from transformers.modeling_outputs import BaseModelOutput

        self._cache.batch_select_indices(rows)
        self._mask = self._mask[rows]
        self._encoded = BaseModelOutput(last_hidden_state=self._encoded[0][rows])


def _forced(logits: Tensor, rows: Tensor, token: int) -> Tensor:
    """The logits with nothing but one token left in some rows."""
    if not bool(rows.any()):
        return logits
    only = torch.full_like(logits, -torch.inf)
    only[:, token] = 0.0
    return torch.where(rows[:, None], only, logits)


def rules_of(model: Any) -> DecodingRules:
    """The decoding rules in a model's config and generation config."""
    generation = getattr(model, "generation_config", None)

    def setting(name: str) -> Any:
        value = getattr(generation, name, None)
        return getattr(model.config, name, None) if value is None else value

    start = setting("decoder_start_token_id")
    start = setting("bos_token_id") if start is None else start
    end = setting("eos_token_id")
    if start is None or end is None:
        raise ModelError(
            f"{type(model).__name__} does not say which token begins or ends a translation: set "
            "decoder_start_token_id and eos_token_id in its config."
        )
    ends = tuple(end) if isinstance(end, list | tuple) else (int(end),)
    longest = getattr(model.config, "max_position_embeddings", None)
    return DecodingRules(
        start=int(start),
        ends=ends,
        longest=_LONGEST if not isinstance(longest, int) else min(longest - 1, _LONGEST),
        processors=tuple(_processors(setting, ends, getattr(model, "device", "cpu"))),
        forced_end=setting("forced_eos_token_id") if not isinstance(setting("forced_eos_token_id"), list) else None,
    )


def _processors(setting: Callable[[str], Any], ends: Sequence[int], device: Any) -> Iterator[LogitsRule]:
    """The logits processors that `generate` would make for greedy search, in its order."""
    from transformers import (
        ForcedBOSTokenLogitsProcessor,
        MinLengthLogitsProcessor,
        NoBadWordsLogitsProcessor,
        NoRepeatNGramLogitsProcessor,
        RepetitionPenaltyLogitsProcessor,
        SuppressTokensLogitsProcessor,
    )

    if (setting("repetition_penalty") or 1.0) != 1.0:
        yield RepetitionPenaltyLogitsProcessor(setting("repetition_penalty"))
    if setting("no_repeat_ngram_size"):
        yield NoRepeatNGramLogitsProcessor(setting("no_repeat_ngram_size"))
    if setting("bad_words_ids"):
        yield NoBadWordsLogitsProcessor(setting("bad_words_ids"), list(ends))
    if setting("min_length"):
        yield MinLengthLogitsProcessor(setting("min_length"), list(ends), device=str(device))
    if setting("forced_bos_token_id") is not None:
        yield ForcedBOSTokenLogitsProcessor(setting("forced_bos_token_id"))
    if setting("suppress_tokens"):
        yield SuppressTokensLogitsProcessor(setting("suppress_tokens"), device=str(device))
