"""The study of FireBERT's neighbourhoods: shares by hand, and a whole study whose every answer is asked again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import ModelError, OptionError, StockadeError
from stockade.core.text import Text, match_case
from stockade.studies.firebert.analysis import analyse, check_claims
from stockade.studies.firebert.neighbourhoods import CODEC, NearWord, Neighbourhood, TextPair, noised_vectors
from stockade.studies.firebert.study import FirebertResult
from tests.toys import WeightVictim
from tests.training.tiny import OPTIONS, rows, tiny_origin, train_tiny, without_plots

P, N = "positive", "negative"


def around(predicted: str, near: str, noised: str = "") -> Neighbourhood:
    """A letter per neighbour or copy: p or n."""
    names = {"p": P, "n": N}
    words = tuple(NearWord(f"w{at}", 0.9, names[letter]) for at, letter in enumerate(near))
    return Neighbourhood("a text", 0, "a", predicted, words, tuple(names[letter] for letter in noised))


PAIRS = [
    TextPair("base", "0", P, around(P, "pppp", "pppp"), around(N, "ppnp", "pn")),  # with itself 3 of 5, and 1 of 3
    TextPair("base", "1", P, around(P, "pnnn", "pp"), around(N, "nnnn", "nn")),  # the original loses its majority
    TextPair("base", "2", N, around(N, "nn", "nn"), around(P, "")),  # no neighbours: left out
    TextPair("fact", "0", P, around(P, "pppp", "pp"), around(P, "pppp", "pp")),
    TextPair("fact", "1", P, around(P, "pppp", "pp"), around(N, "npnn", "nn")),
    TextPair("fact", "2", N, around(N, "nn", "nn"), around(P, "p")),
]


def test_shares_by_hand() -> None:
    numbers = analyse(PAIRS, ["base", "fact"], 0.25)
    assert (numbers.successes, numbers.without_word) == (3, 1)
    base, fact = numbers.models
    assert (base.original.texts, fact.adversarial.texts) == (2, 2)
    assert base.original.right["value"] == 1
    assert base.original.near["value"] == pytest.approx((1 + 1 / 4) / 2)
    assert base.original.near_majority["value"] == 1 / 2
    assert base.adversarial.near["value"] == pytest.approx((3 / 4 + 0) / 2)
    assert base.adversarial.near_majority["value"] == 1 / 2
    assert base.adversarial.noised["value"] == pytest.approx((1 / 2 + 0) / 2)
    assert base.adversarial.noised_majority["value"] == 0
    assert fact.adversarial.right["value"] == 1 / 2


def test_a_claim_is_held_where_the_interval_is_above_one_half() -> None:
    many = [TextPair("base", str(at), P, around(P, "pppp", "pp"), around(N, "nnnn", "nn")) for at in range(20)]
    first, second, third = check_claims(analyse(many, ["base"], 0.25))
    assert (first.holds, second.holds, third.holds) == (True, False, False)
    assert {claim.holds for claim in check_claims(analyse(PAIRS, ["base", "fact"], 0.25))} == {None}
    assert {claim.holds for claim in check_claims(analyse([], ["base"], 0.25))} == {None}


def test_what_is_stored_comes_back() -> None:
    pair = TextPair("m", "7", P, around(P, "pn", "pn"), Neighbourhood("b", 0, "b", N, vector=(0.5, 1.0), seed=3))
    assert CODEC.read(json.loads(json.dumps(CODEC.encode(pair)))) == pair


def test_the_noise_of_a_figure_is_that_which_the_model_read() -> None:
    side = Neighbourhood("t", 0, "w", P, noised=(P, N), seed=9, vector=(1.0, 2.0, 3.0))
    noise = np.random.default_rng(9).standard_normal((2, 1, 3), dtype=np.float32)[:, 0]
    assert noised_vectors(side, 0.5) == pytest.approx(np.array([1.0, 2.0, 3.0]) + 0.5 * noise)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patched:
        without_plots(patched)
        for seed, name in enumerate(("base", "other")):
            options = OPTIONS.changed(epochs=6, learning_rate=0.02, seed=seed)
            train_tiny(folder / name, rows(160), origin=tiny_origin(dropout=0.0), options=options)
    return {name: folder / name for name in ("base", "other")}


@pytest.fixture(scope="module")
def finished(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> FirebertResult:
    out = tmp_path_factory.mktemp("study") / "s"
    options: dict[str, Any] = {"neighbours": 6, "samples": 5, "deviation": 0.1}
    result = st.study("firebert", models, rows(16, seed=5), attacks="pwws", out=out, **options)
    assert isinstance(result, FirebertResult)
    return result


def test_every_answer_is_the_models(finished: FirebertResult, models: dict[str, Path]) -> None:
    assert finished.complete
    assert finished.pairs
    by_model = {name: st.load_model(path) for name, path in models.items()}
    words: dict[str, set[tuple[int | None, int | None]]] = {}
    for pair in finished.pairs:
        words.setdefault(pair.id, set()).add((pair.original.index, pair.adversarial.index))
        model = by_model[pair.model]
        for side in (pair.original, pair.adversarial):
            assert len(side.near) <= 6
            if side.index is None or side.word is None:
                continue
            text = Text.parse(side.text)
            changed = [str(text.replace(side.index, match_case(near.word, side.word))) for near in side.near]
            predicted = model.predict_proba([side.text, *changed]).argmax(axis=1)
            assert [model.labels[at] for at in predicted] == [side.predicted, *(near.predicted for near in side.near)]
            assert len(side.noised) == 5
    assert all(len(places) == 1 for places in words.values()), "all models are asked around the same words"
    first = [pair for pair in finished.pairs if pair.model == "base"]
    assert all(pair.adversarial.predicted != pair.label for pair in first)


def test_the_page_and_the_folder(finished: FirebertResult, tmp_path: Path) -> None:
    page = finished.document()
    markdown = page.to_markdown()
    assert "Around originals and adversarial texts" in markdown
    assert f"Text {finished.shown()[0]}" in markdown
    assert "<svg" in page.to_html()
    again = st.load(finished.folder)
    assert again.summary == finished.summary
    assert finished.verify().holds
    assert {pair.original.vector is not None for pair in finished.pairs if pair.id not in finished.shown()} <= {False}


def test_lost_neighbourhoods_are_asked_for_again(models: dict[str, Path], tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows(6, seed=5)))
    options: dict[str, Any] = {"neighbours": 3, "samples": 2, "attacks": "pwws"}
    whole = st.study("firebert", {"base": str(models["base"])}, str(data), out=tmp_path / "s", **options)
    whole.store.close()
    import sqlite3

    with sqlite3.connect(tmp_path / "s/run.sqlite") as connection:
        connection.execute("DELETE FROM results WHERE part = 'neighbourhoods'")
    again = st.study("firebert", {"base": str(models["base"])}, str(data), out=tmp_path / "s", resume=True, **options)
    assert again.summary == whole.summary


def test_models_that_cannot_be_asked_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="needs the model's gradients"):
        st.study("firebert", WeightVictim({"good": 1.0}), rows(4), out=tmp_path / "s")
    with pytest.raises(OptionError, match="--neighbours is 0"):
        st.study("firebert", models, rows(4), neighbours=0, out=tmp_path / "s")
    with pytest.raises(OptionError, match="looks around the texts of one attack"):
        st.study("firebert", models, rows(4), attacks=["pwws", "list"], out=tmp_path / "s")
    with pytest.raises(StockadeError, match="deviation"):
        st.study("firebert", models, rows(4), deviation=-1.0, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()
