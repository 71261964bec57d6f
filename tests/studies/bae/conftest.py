"""A masked LM, an encoder and a victim that a person can follow, for all tests that run the study."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.studies.bae.toys import PROPOSED, ROWS, AlikeEncoder
from tests.toys import ListMaskedLM


@pytest.fixture(scope="module")
def language() -> Iterator[None]:
    """A masked LM that always proposes the same words, an encoder that finds all texts alike, and fluency by length."""
    with pytest.MonkeyPatch.context() as patch:
        words = ["", *PROPOSED, *(word for text, _ in ROWS for word in text.split())]
        masked_lm = ListMaskedLM(dict.fromkeys(words, PROPOSED))
        patch.setattr("stockade.models.language.LanguageModels.make_masked_lm", lambda _: masked_lm)
        patch.setattr("stockade.studies.bae.study._CHUNK", 2)
        patch.setattr("stockade.models.language.LanguageModels.make_encoder", lambda _: AlikeEncoder())
        patch.setattr(
            "stockade.models.pseudo_perplexity.pseudo_perplexities", lambda _, texts: [float(len(t)) for t in texts]
        )
        yield
