"""What searches may see of a defended model, and the mean of its answers."""

from __future__ import annotations

import numpy as np
import pytest

from stockade.core.errors import OptionError
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.defended import Defended
from stockade.engine.composite import make_scoring
from stockade.engine.requests import Draw, Score
from stockade.engine.services import innermost
from stockade.models.language import LanguageModels
from stockade.workflows.evaluate.views import Averaged, counts_votes, surrogate_of, views_of
from tests.toys import RandomVictim
from tests.workflows.evaluate.kit import Hiding, Noisy, Shielding, victim

TEXT = Text.parse("a film")


def test_a_mean_is_of_the_answers_that_the_same_choices_give() -> None:
    noisy = Defended(name="noisy", defense=Noisy(), inner=victim())
    service = make_scoring(Averaged(noisy, 4))
    (answer,) = service.answer_scores([Score([TEXT], draw=Draw(7, 0))])
    search = derive_seed(7, 0)
    numbers = [np.random.default_rng(derive_seed(0, "noisy", derive_seed(search, at))).uniform(0, 1) for at in range(4)]
    assert len(set(numbers)) == 4
    assert isinstance(answer, list)
    assert answer[0].probabilities[1] == pytest.approx(np.mean(numbers))


def test_a_mean_of_many_answers_is_steadier() -> None:
    noisy = Defended(name="noisy", defense=Noisy(), inner=victim())
    inputs = [f"film {number}" for number in range(60)]
    single = Averaged(noisy, 1).predict_proba(inputs)[:, 1]
    many = Averaged(noisy, 25).predict_proba(inputs)[:, 1]
    assert single.shape == many.shape == (60,)
    assert np.std(many) < np.std(single) / 3
    assert not Averaged(noisy, 25).deterministic
    with pytest.raises(OptionError, match="0 draws"):
        Averaged(noisy, 0)


def test_the_views_of_a_chain() -> None:
    language = LanguageModels()
    bare = victim()
    assert list(views_of(bare, 5, language)) == ["direct"]
    hiding = Defended(name="hiding", defense=Hiding(), inner=bare)
    assert list(views_of(hiding, 5, language)) == ["direct", "eot", "surrogate", "transfer"]
    assert "eot" not in views_of(hiding, 1, language)
    assert list(views_of(Defended(name="shielding", defense=Shielding(), inner=bare), 5, language)) == [
        "direct",
        "transfer",
    ]
    nested = Defended(name="shielding", defense=Shielding(), inner=hiding)
    surrogate = surrogate_of(nested)
    assert surrogate is not None
    assert isinstance(surrogate.inner, Defended)
    assert surrogate.inner.defense == Hiding("probability")
    assert views_of(nested, 5, language)["transfer"] is innermost(nested) is bare
    assert surrogate_of(Defended(name="hiding", defense=Hiding("probability"), inner=bare)) is None
    assert counts_votes(hiding)
    assert counts_votes(nested)
    assert not counts_votes(surrogate)
    assert not counts_votes(bare)


def test_eot_averages_as_many_answers_as_were_asked_for() -> None:
    language = LanguageModels("a-masked-lm", "an-encoder")
    hiding = Defended(name="hiding", defense=Hiding(), inner=victim())
    assert views_of(hiding, 7, language)["eot"] == Averaged(hiding, 7, language)


def test_a_mean_of_answers_to_a_pair_is_of_the_pair() -> None:
    model = RandomVictim(classes=2)
    pair = ("a premise", "a film")
    assert Averaged(model, 2).predict_proba([pair])[0] == pytest.approx(model.predict_proba([pair])[0])
