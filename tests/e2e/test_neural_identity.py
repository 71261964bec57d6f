"""On neural victims, what is found depends on concurrency and batches in fewer than one outcome in two hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st


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
    for concurrency, tokens in ((1, 64), (7, 1000)):
        other = outcomes(victim, attack, texts, concurrency, tokens, tmp_path)
        same = sum(a == b for a, b in zip(reference, other, strict=True))
        assert same >= 0.995 * texts
