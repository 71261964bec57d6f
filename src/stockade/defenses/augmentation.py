"""Adversarial data augmentation: train on texts that an attack has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stockade.core.errors import OptionError
from stockade.core.registry import published
from stockade.core.seeds import derive_rng
from stockade.core.text import Text, TextInput

Variant = Literal["replace", "add"]


@published(
    "augmentation",
    paper="Zeng et al. 2021, RanMASK, section 4.3",
    presets={"paper": {}, "authors": {"variant": "replace"}},
)
@dataclass(frozen=True, slots=True)
class Augmentation:
    """Train on texts that were attacked before, the strongest text of each attack, successful or not.

    `model` is the trained model that is attacked, by `attack` with `budget` queries per text. With `variant=add` all
    texts of at least `words` words are attacked and the results added to the data. With `variant=replace` a random
    half of the texts is attacked and trained on together with another random half of the originals, so that there are
    as many texts as before. Texts that the model gets wrong are taken as they are.

    PWWS is the default because it is fast: its candidates are looked up, not computed by a language model, and it asks
    the model about all of them at once. Differences to the papers: texts come from one attack on the trained model, not
    anew in every epoch.
    """

    model: str = ""
    attack: str = "pwws"
    variant: Variant = "add"
    words: int = 3
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.words < 1 or (self.budget is not None and self.budget < 1):
            raise OptionError(
                f"augmentation attacks texts of {self.words} words with a budget of {self.budget}, expected at least 1."
            )

    def rewrite(
        self, inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[list[TextInput], list[int]]:
        """The texts to train on, with the numbers of their classes."""
        from stockade.defenses.adversarial.attacked_texts import attacked_texts, load_victim

        if not self.model:
            raise OptionError(
                "augmentation attacks a trained model, but none was named. Name its folder: --defense "
                "augmentation:model=models/m"
            )
        victim = load_victim(self.model, classes)
        rows = self.attacked_rows(inputs, seed)
        if not rows:
            raise OptionError(
                f"None of the {len(inputs):,} training texts has {self.words} words, so augmentation would attack none "
                "of them: give fewer, as in augmentation:words=1."
            )
        changed = attacked_texts(
            victim,
            [inputs[row] for row in rows],
            [classes[labels[row]] for row in rows],
            self.attack,
            budget=self.budget,
            seed=seed,
        )
        kept = self.kept_rows(len(inputs), len(rows), seed)
        return [*(inputs[row] for row in kept), *changed], [labels[row] for row in (*kept, *rows)]

    def attacked_rows(self, inputs: Sequence[TextInput], seed: int) -> list[int]:
        """Which texts are attacked: those with enough words, of a random half or of all."""
        rows = list(range(len(inputs)))
        if self.variant == "replace":
            rows = sorted(derive_rng(seed, "augmentation", "attacked").sample(rows, len(rows) // 2))
        return [row for row in rows if _words(inputs[row]) >= self.words]

    def kept_rows(self, texts: int, attacked: int, seed: int) -> list[int]:
        """Which texts are trained on as they are: all, or as many as make up the number of texts."""
        if self.variant == "add":
            return list(range(texts))
        return sorted(derive_rng(seed, "augmentation", "kept").sample(range(texts), texts - attacked))


def _words(one: TextInput) -> int:
    return len(Text.parse(one if isinstance(one, str) else one[1]))
