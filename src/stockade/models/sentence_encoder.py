"""Sentence vectors: the packaged MiniLM by default, any sentence-transformers model by name or folder.

The packaged encoder is run directly (mean of the last layer over the real tokens, divided by its length),
which gives the vectors of sentence-transformers (to 1e-5, tested) without its overhead: texts are tokenised
once and batched by length.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stockade.core.errors import ModelError, ResourceMissing
from stockade.datasets.wording import first_line
from stockade.models.encoding import EncodedText, TextEncoder, in_length_batches
from stockade.models.huggingface import resolve_device
from stockade.models.language import DEFAULT_ENCODER, minilm_folder
from stockade.models.pretrained import check_config, quiet

Vectors = NDArray[np.float32]

_BATCH_TOKENS = {"cpu": 1024}
"""On a CPU larger batches fall out of its caches and take a fifth longer; elsewhere they fill the device."""
_LARGE_BATCH = 16_384
_BATCH_ROWS = 256
_MAXIMUM = 256
"""What the packaged model was made for (its sentence_bert_config.json); longer texts are cut there by
sentence-transformers too.
"""


class SentenceEncoder:
    """Texts to unit vectors; the dot product of two vectors is their cosine. Nothing is loaded before the first text.

    Parameters
    ----------
    reference : str or Path, optional
        A sentence-transformers folder or hub name; the packaged MiniLM by default.
    device : str, optional
        Where it is computed; the best there is by default.
    """

    deterministic = True

    def __init__(self, reference: str | Path | None = None, *, device: str | None = None) -> None:
        self.name = DEFAULT_ENCODER if reference is None else str(reference)
        self._reference = reference
        self._device = device or "auto"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text, as float32 [n, dimensions]."""
        if self._reference is not None:
            return self._embed_elsewhere(list(texts))
        encoder, model = self._packaged
        encoded = encoder.encode(texts)

        def compute(batch: Sequence[EncodedText]) -> Vectors:
            with torch.inference_mode():
                inputs = encoder.tensors(batch, model.device)
                states = model(**inputs).last_hidden_state
                weights = inputs["attention_mask"].unsqueeze(2).to(states.dtype)
                means = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
                vectors: Vectors = torch.nn.functional.normalize(means, dim=1).cpu().numpy()
            return vectors

        rows = in_length_batches(encoded, compute, _BATCH_TOKENS.get(model.device.type, _LARGE_BATCH), _BATCH_ROWS)
        return np.array(rows, dtype=np.float32).reshape(len(texts), model.config.hidden_size)

    @cached_property
    def _packaged(self) -> tuple[TextEncoder, Any]:
        from transformers import AutoTokenizer, BertModel

        folder = minilm_folder()
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder)
            model = BertModel.from_pretrained(
                folder, add_pooling_layer=False, use_safetensors=True, dtype=torch.float32
            )
        model.train(False)
        torch.nn.Module.to(model, resolve_device(self._device))
        return TextEncoder(tokenizer, _MAXIMUM, with_types=False), model

    def _embed_elsewhere(self, texts: list[str]) -> Vectors:
        vectors = self._other.encode(
            texts, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False, batch_size=64
        )
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _other(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
            from transformers import PreTrainedConfig
        except ImportError:
            raise ResourceMissing(
                f"The sentence encoder {self.name} needs sentence-transformers, which is not installed. "
                "Install it with: pip install sentence-transformers"
            ) from None
        try:
            with quiet():
                for config in sorted(Path(self.name).rglob("config.json")):  # one for each part that is a transformer
                    check_config(self.name, PreTrainedConfig.from_json_file(config))
                return SentenceTransformer(
                    self.name,
                    device=str(resolve_device(self._device)),
                    trust_remote_code=False,
                    model_kwargs={"use_safetensors": True},
                )
        except ModelError:
            raise
        except Exception as problem:
            raise ModelError(
                f'The sentence encoder "{self.name}" cannot be loaded ({first_line(problem, 200)}). Give a '
                f"sentence-transformers folder or hub name, or leave it out to use the packaged {DEFAULT_ENCODER}."
            ) from problem
