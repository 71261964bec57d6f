"""Which tokens of a training batch may be changed: no padding, no masks, and of a pair only the hypothesis.

A batch may show other words than its texts have: hidden ones, flipped ones, unknown ones. But all of that leaves the
premise and what stands before it alone, so the hypothesis begins behind as much of the premise as is still there.

Needs torch, so defenses import it when they train.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stockade.core.text import TextInput


def perturbable_tokens(tensors: Mapping[str, Tensor], tokenizer: Any) -> Tensor:
    """For each token of a batch whether its vector may be moved: no padding, and no token that hides a word.

    Words are hidden by the mask token, or by the unknown one where the tokenizer has no mask.
    """
    hiding = tokenizer.unk_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id
    there = tensors["attention_mask"].bool()
    return there if hiding is None else there & (tensors["input_ids"] != hiding)


def changeable_tokens(inputs: Sequence[TextInput], tensors: Mapping[str, Tensor], tokenizer: Any) -> Tensor:
    """For each token whether it belongs to a text or hypothesis; special tokens beside words count as their words do.

    Parameters
    ----------
    inputs, tensors
        The texts of a batch, and the model's arguments made from them.
    tokenizer
        The model's, which tells where the premise of a pair ends.
    """
    changeable = tensors["attention_mask"].bool().clone()
    for row, text in enumerate(inputs):
        if isinstance(text, str):
            continue
        places = torch.nonzero(changeable[row]).squeeze(1)
        begins = _Premise.read(tokenizer, *text).hypothesis_begins(tensors["input_ids"][row, places].tolist())
        changeable[row, places[:begins]] = False
    return changeable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Premise:
    """The tokens of a premise, and how many special ones stand before and behind it."""

    tokens: list[int]
    before: int
    behind: int
    cut_on_the_left: bool
    unknown: int | None

    @classmethod
    def read(cls, tokenizer: Any, premise: str, hypothesis: str) -> _Premise:
        pair = tokenizer(premise, hypothesis, truncation=False, return_special_tokens_mask=True, verbose=False)
        special = pair["special_tokens_mask"]
        length = len(tokenizer(premise, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])
        before = _leading(special)
        return cls(
            tokens=pair["input_ids"][before : before + length],
            before=before,
            behind=_leading(special[before + length :]),
            cut_on_the_left=tokenizer.truncation_side == "left",
            unknown=tokenizer.unk_token_id,
        )

    def hypothesis_begins(self, ids: Sequence[int]) -> int:
        """Where it begins among the tokens of a pair whose premise may have been cut."""
        whole = len(self.tokens)
        for length in range(whole, 0, -1):
            tokens = self.tokens[whole - length :] if self.cut_on_the_left else self.tokens[:length]
            shown = ids[self.before : self.before + length]
            if len(shown) == length and all(
                number in (token, self.unknown) for number, token in zip(shown, tokens, strict=True)
            ):
                return self.before + length + self.behind
        return self.before + self.behind


def _leading(marks: Sequence[int]) -> int:
    """How many of the marks are 1 before the first that is 0."""
    return next((place for place, mark in enumerate(marks) if not mark), len(marks))
