"""Adv-HotFlip: train on texts together with copies whose tokens are flipped along the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stockade.core.errors import OptionError
from stockade.core.registry import published

if TYPE_CHECKING:
    from stockade.training.objective import Objective, TrainingKit

Candidates = Literal["vocabulary", "neighbours"]


@published(
    "adv-hotflip",
    paper="Ebrahimi et al. 2018, HotFlip; as in Zeng et al. 2021, RanMASK, section 4.3",
    presets={"paper": {}, "synonyms": {"candidates": "neighbours"}},
)
@dataclass(frozen=True, slots=True)
class AdvHotFlip:
    """Train on each text and a copy of it in which tokens are flipped to raise the loss.

    In each of `rounds` the `share` of tokens (rounded down) with the greatest first-order gain are replaced by their
    best candidate. `candidates` are all tokens of the vocabulary that are whole words of letters, or the `neighbours`
    of the token: at most `count` words of like meaning with a cosine of at least `min_cosine`. Special tokens and those
    that hide words stay, and so does the premise of a pair.

    Differences to the paper: RanMASK's text speaks of synonyms, its code allows the whole vocabulary; the default does
    as the code. A flip that would not raise the loss is not made.
    """

    rounds: int = 3
    share: float = 0.2
    candidates: Candidates = "vocabulary"
    count: int = 50
    min_cosine: float = 0.5

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.count < 1:
            raise OptionError(
                f"adv-hotflip has {self.rounds} rounds and a count of {self.count} neighbours, expected at least 1."
            )
        if not 0 < self.share <= 1:
            raise OptionError(f"The share of adv-hotflip is {self.share}, expected one above 0 and at most 1.")

    def objective(self, kit: TrainingKit) -> Objective:
        import torch

        from stockade.defenses.adversarial.flips import FlipTraining
        from stockade.defenses.adversarial.vocabulary import neighbour_tokens, word_tokens
        from stockade.lexicon import load_neighbours

        if self.candidates == "vocabulary":
            allowed = torch.tensor(sorted(word_tokens(kit.tokenizer)))
        else:
            found = neighbour_tokens(kit.tokenizer, load_neighbours(), self.count, self.min_cosine)
            allowed = torch.from_numpy(found)
        device = kit.network.get_input_embeddings().weight.device
        return FlipTraining(kit.network, kit.tokenizer, kit.plain, allowed.to(device), self.rounds, self.share)
