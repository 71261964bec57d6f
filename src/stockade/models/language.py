"""The language models that attacks ask besides the victim: which ones, made when they are first needed."""

from __future__ import annotations

from dataclasses import dataclass
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

    def make_encoder(self) -> SentenceEncoder:
        from stockade.models.sentence_encoder import SentenceEncoder

        return SentenceEncoder(self.encoder, device=self.device)

    def make_masked_lm(self) -> MaskedLanguageModel:
        from stockade.models.masked_lm import MaskedLM

        if self.masked_lm is None:
            return MaskedLM.default(self.device)
        return MaskedLM.from_pretrained(self.masked_lm, self.device)
