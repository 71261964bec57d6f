"""Which tokens of a batch belong to words that may change: all of a single text, those of the hypothesis of a pair.

A batch may show other words than its texts have: hidden ones, flipped ones, unknown ones. But all of that leaves the
premise and what stands before it alone, so the hypothesis begins behind as much of the premise as is still there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stockade.core.text import TextInput


def changeable_tokens(inputs: Sequence[TextInput], tensors: Mapping[str, Tensor], tokenizer: Any) -> Tensor:
    """For each token whether it may change; special tokens beside words count as their words do."""
    found = tensors["attention_mask"].bool().clone()
    for row, one in enumerate(inputs):
        if isinstance(one, str):
            continue
        places = torch.nonzero(found[row]).squeeze(1)
        begins = _Premise.read(tokenizer, *one).hypothesis_begins(tensors["input_ids"][row, places].tolist())
        found[row, places[:begins]] = False
    return found


@dataclass(frozen=True, slots=True)
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
            pair["input_ids"][before : before + length],
            before,
            _leading(special[before + length :]),
            tokenizer.truncation_side == "left",
            tokenizer.unk_token_id,
        )

    def hypothesis_begins(self, ids: Sequence[int]) -> int:
        """Where it begins among the tokens of a pair whose premise may have been cut."""
        whole = len(self.tokens)
        for length in range(whole, 0, -1):
            kept = self.tokens[whole - length :] if self.cut_on_the_left else self.tokens[:length]
            shown = ids[self.before : self.before + length]
            if len(shown) == length and all(
                own in (token, self.unknown) for own, token in zip(shown, kept, strict=True)
            ):
                return self.before + length + self.behind
        return self.before + self.behind


def _leading(marks: Sequence[int]) -> int:
    """How many of the marks are 1 before the first that is 0."""
    return next((place for place, mark in enumerate(marks) if not mark), len(marks))
