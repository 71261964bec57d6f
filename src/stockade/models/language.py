"""The language models that attacks ask besides the victim: which ones, made when they are first needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stockade.core.protocols import MaskedLanguageModel, SentenceEncoder

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_MASKED_LM = f"{DEFAULT_ENCODER} with Stockade's masked-LM adapter"


@dataclass(frozen=True, slots=True)
class LanguageModels:
    """References of a masked LM and a sentence encoder; None means the ones that come with the installation."""

    masked_lm: str | None = None
    encoder: str | None = None
    device: str | None = None

    @property
    def encoder_name(self) -> str:
        return self.encoder or DEFAULT_ENCODER

    @property
    def masked_lm_name(self) -> str:
        return self.masked_lm or DEFAULT_MASKED_LM

    def check(self) -> None:
        """Load the models that were named, so that one that cannot be had ends a command before it has begun."""
        if self.masked_lm is not None:
            self.make_masked_lm()
        if self.encoder is not None:
            self.make_encoder().embed(["a"])

    def make_encoder(self) -> SentenceEncoder:
        return _encoder(self.encoder, self.device)

    def make_masked_lm(self) -> MaskedLanguageModel:
        return _masked_lm(self.masked_lm, self.device)


@lru_cache(maxsize=2)
def _encoder(reference: str | None, device: str | None) -> SentenceEncoder:
    from stockade.models.sentence_encoder import SentenceEncoder

    return SentenceEncoder(reference, device=device)


@lru_cache(maxsize=2)
def _masked_lm(reference: str | None, device: str | None) -> MaskedLanguageModel:
    from stockade.models.masked_lm import MaskedLM

    return MaskedLM.default(device) if reference is None else MaskedLM.from_pretrained(reference, device)
