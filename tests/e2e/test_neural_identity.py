"""On neural victims, what is found depends on concurrency and batches in fewer than one outcome in two hundred."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.models.huggingface import HuggingFaceClassifier


def outcomes(
    victim: str, attack: str, texts: int, concurrency: int, tokens: int | None, folder: Path
) -> list[tuple[object, ...]]:
    run = st.attack(
        f"builtin:{victim}",
        "builtin:reviews",
        attack,
        limit=texts,
        similarity=False,
        concurrency=concurrency,
        batch_tokens=tokens,
        out=folder / f"{concurrency}-{tokens}",
    )
    return [(record.id, record.status, record.adversarial) for record in run.examples]


@pytest.mark.parametrize(
    ("victim", "attack", "texts"),
    [
        ("sentiment-cnn", "pwws@textattack", 20),
        pytest.param("sentiment-cnn", "pwws@textattack", 100, marks=pytest.mark.slow),
        pytest.param("sentiment-cnn", "deepwordbug@textattack", 100, marks=pytest.mark.slow),
        pytest.param("sentiment-lstm", "pwws@textattack", 100, marks=pytest.mark.slow),
        pytest.param("sentiment-bert", "deepwordbug@textattack", 12, marks=pytest.mark.slow),
    ],
)
def test_outcomes_are_the_same_for_any_concurrency_and_batch(
    victim: str, attack: str, texts: int, tmp_path: Path
) -> None:
    reference = outcomes(victim, attack, texts, 64, None, tmp_path)
    assert len(reference) == texts
    for concurrency, tokens in ((1, 64), (7, 1000), (64, 100)):
        other = outcomes(victim, attack, texts, concurrency, tokens, tmp_path)
        same = sum(a == b for a, b in zip(reference, other, strict=True))
        assert same >= 0.995 * texts


def test_texts_finish_steadily_though_all_fit_into_the_concurrency(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 texts a quarter is stored by the middle of the model's work, and half before three quarters of it."""
    rows, moments = [0], list[int]()
    predict = HuggingFaceClassifier.predict_encoded

    def counted(self: HuggingFaceClassifier, batch: Sequence[Any]) -> Any:
        rows[0] += len(batch)
        return predict(self, batch)

    monkeypatch.setattr(HuggingFaceClassifier, "predict_encoded", counted)
    st.attack(
        "builtin:sentiment-cnn",
        "builtin:reviews",
        "pwws",
        limit=40,
        similarity=False,
        batch_tokens=512,
        observer=lambda progress: moments.extend([rows[0]] if progress.status else []),
    )
    assert len(moments) == 40
    assert moments[9] < 0.5 * rows[0]
    assert moments[19] < 0.75 * rows[0]
