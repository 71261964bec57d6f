"""What TextAttack's recipes ask of the outside (sentence encoder, word vectors, tagger), answered by Stockade's files.

A comparison of two tools means something only if both see the same models. These are the thinnest adapters that give
TextAttack what Stockade uses; the classes they derive from, and so the time they take, are TextAttack's own. Nothing
here is imported before `run_textattack.prepare_offline` has run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import torch
from textattack.constraints import Constraint
from textattack.constraints.semantics.sentence_encoders import SentenceEncoder
from textattack.shared import WordEmbedding
from textattack.shared.utils import words_from_text
from textattack.transformations import WordSwapMaskedLM
from transformers import AutoTokenizer, BertModel

from stockade.lexicon.neighbours import load_neighbours
from stockade.lexicon.pos import load_tagger

LONGEST = 256
ROWS = 64
NEIGHBOURS = 50


class PackagedEncoder(SentenceEncoder):  # type: ignore[misc]
    """Stockade's default sentence encoder as a TextAttack constraint: the mean of MiniLM's last layer over the real
    tokens, divided by its length.

    Texts are padded to the longest of 64, which is what a careful wrapper would do. TextAttack encodes the reference
    once for every candidate; that is its own doing and stays.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(**options)
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._bert = BertModel.from_pretrained(folder, add_pooling_layer=False, local_files_only=True).eval()

    def encode(self, sentences: Sequence[str]) -> torch.Tensor:
        """Unit vectors of the sentences."""
        parts = [self._encode(list(sentences[at : at + ROWS])) for at in range(0, len(sentences), ROWS)]
        return torch.cat(parts)

    def _encode(self, sentences: list[str]) -> torch.Tensor:
        batch = self._tokenizer(sentences, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        with torch.inference_mode():
            states = self._bert(**batch).last_hidden_state
            weights = batch["attention_mask"].unsqueeze(2).to(states.dtype)
            return torch.nn.functional.normalize((states * weights).sum(1) / weights.sum(1), dim=1)


class RememberingEncoder(PackagedEncoder):
    """The same encoder, set up with care: a string is encoded once, however often TextAttack asks about it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **options)
        self._vectors: dict[str, torch.Tensor] = {}

    def encode(self, sentences: Sequence[str]) -> torch.Tensor:
        """Unit vectors of the sentences; those that were asked about before are not computed again."""
        missing = [sentence for sentence in dict.fromkeys(sentences) if sentence not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, super().encode(missing), strict=True))
        return torch.stack([self._vectors[sentence] for sentence in sentences])


class TightMaskedLM(WordSwapMaskedLM):  # type: ignore[misc]
    """TextAttack's masked-LM transformation, set up with care: texts are padded to the longest, not to 512 tokens."""

    def _encode_text(self, text: Any) -> Any:
        return self._lm_tokenizer(text, max_length=self.max_length, truncation=True, padding=True, return_tensors="pt")


class NoLanguageModel(Constraint):  # type: ignore[misc]
    """Stands where a recipe builds a language model that cannot be had; `recipes.build` takes it out of the attack."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(compare_against_original=True)

    def _check_constraint(self, transformed_text: Any, reference_text: Any) -> bool:
        return True


def packaged_vectors(texts: Iterable[str]) -> WordEmbedding:
    """TextAttack's own `WordEmbedding` over the vectors of Stockade's neighbour table, scaled to length one.

    Its own download brings the nearest neighbours and the distances of pairs ready made, so looking them up costs it
    nothing; here they are made beforehand, outside the clock, for every word of `texts`. All pairs a recipe asks
    about are a word of the text and one of its neighbours. A word the table has not got raises KeyError, as in its
    own table: it gets no candidates. Any other pair of known words is computed from the vectors when it is asked for.
    """
    table = load_neighbours()
    index = {word: row for row, word in enumerate(table.words)}
    vectors = table.matrix / np.linalg.norm(table.matrix, axis=1, keepdims=True)
    nearest: dict[int, list[int]] = {}
    embedding = WordEmbedding(vectors, index, dict(enumerate(table.words)), nearest)
    for word in sorted({word.lower() for text in texts for word in words_from_text(text)} & index.keys()):
        row = index[word]
        found = table.neighbours(word, count=NEIGHBOURS)
        nearest[row] = [row, *(index[near.word] for near in found)]  # TextAttack leaves out the first, the word itself
        for near in found:
            pair = sorted((row, index[near.word]))
            embedding._cos_sim_mat[pair[0]][pair[1]] = near.cosine
            embedding._mse_dist_mat[pair[0]][pair[1]] = 2 - 2 * near.cosine
    return embedding


def use_packaged_tagger() -> None:
    """Let `nltk.pos_tag` answer with Stockade's tagger: NLTK's own wants data that is not at hand, and both sides
    should see the same tags anyway.

    TextAttack's `PartOfSpeech` stays as it is, with its window of words and its cache.
    """
    tagger = load_tagger()

    def pos_tag(words: Sequence[str], tagset: str | None = None, lang: str = "eng") -> list[tuple[str, str]]:
        tags = tagger.universal(words) if tagset == "universal" else tagger.tag(words)
        return list(zip(words, tags, strict=True))

    nltk.pos_tag = pos_tag
