"""Methods by name: their options, the one for a defense, and models that they refuse, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.certificates.registry import default_method, make_method, methods
from stockade.core.errors import ModelError, OptionError
from tests.certificates.kit import ROWS
from tests.toys import RandomVictim, WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)


def test_every_method_is_found_by_its_file() -> None:
    assert list(methods()) == [
        "deletion",
        "hash-partition",
        "position-partition",
        "ranmask-exact",
        "ranmask-gap",
        "ranmask-legacy",
        "ranmask-lf",
        "safer",
    ]
    assert [name for name, entry in methods().items() if not entry.sound] == ["ranmask-legacy"]
    defaults = [name for name, entry in methods().items() if entry.default]
    assert defaults == ["deletion", "hash-partition", "position-partition", "ranmask-gap", "safer"]


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 2.0])
def test_an_alpha_that_is_no_probability_is_refused(alpha: float) -> None:
    with pytest.raises(OptionError, match=r"alpha is .*, expected a probability between 0 and 1"):
        make_method("ranmask-gap", alpha=alpha)


def test_options_are_checked() -> None:
    for reference, reason in (
        ("ranmask-gap:most=0", "expected at least one copy each"),
        ("ranmask-gap:growth=1", "a growth above 1"),
        ("ranmask-gap:target=-1", "expected a radius from 0 up"),
        ("ranmask-exact:most=0", "expected at least 1 copy"),
        ("ranmask-gap:scheme=never", "scheme of ranmask-gap cannot be"),
    ):
        with pytest.raises(OptionError, match=reason):
            make_method(reference)
    with pytest.raises(st.StockadeError, match='Did you mean "ranmask-gap"'):
        make_method("ranmask-gab")


@pytest.mark.parametrize(
    ("defense", "method"),
    [
        ("ranmask", "ranmask-gap"),
        ("partition", "position-partition"),
        ("partition:by=hash", "hash-partition"),
        ("deletion", "deletion"),
        ("safer", "safer"),
    ],
)
def test_without_a_name_the_method_is_the_one_for_the_defense(defense: str, method: str) -> None:
    robust = st.defend(VICTIM, defense)
    assert default_method(robust).name == method
    run = st.certify(robust, ROWS[:1], alpha=0.01)
    assert {certificate.method for certificate in run.certificates} == {method}
    assert run.summary["methods"][method]["alpha"] == (None if "partition" in method else 0.01)


def test_models_that_cannot_be_certified_are_refused_with_the_reason(tmp_path: Path) -> None:
    cases: list[tuple[object, str | None, str]] = [
        (
            VICTIM,
            "ranmask-gap",
            "needs a model inside ranmask, and this one has no defense: add --defense ranmask:rate",
        ),
        (VICTIM, None, "needs a model inside partition, and this one has no defense: add --defense partition:by=posi"),
        (st.defend(VICTIM, "safer"), "ranmask-gap", "this one is inside safer"),
        (st.defend(VICTIM, "ranmask", sampling="lm"), "ranmask-lf", "depends on the words, and no certificate holds"),
        (st.defend(VICTIM, "partition", by="hash"), "position-partition", "this model has groups by hash"),
        (
            st.defend(RandomVictim(deterministic=False), "ranmask"),
            "ranmask-exact",
            "randomised: asked twice about the same text",
        ),
    ]
    for number, (model, method, reason) in enumerate(cases):
        with pytest.raises(ModelError, match=reason):
            st.certify(model, ROWS, method, out=tmp_path / str(number))
        assert not (tmp_path / str(number)).exists()


def test_a_model_that_its_own_method_refuses_hears_the_reason_and_not_of_another_defense() -> None:
    with pytest.raises(ModelError, match="randomised: asked twice about the same text"):
        st.certify(st.defend(RandomVictim(deterministic=False), "deletion"), ROWS)
    with pytest.raises(ModelError, match="this one has no defense: add --defense partition"):
        st.certify(VICTIM, ROWS)


def test_a_model_that_does_not_repeat_itself_is_refused_whatever_it_says() -> None:
    rng = np.random.default_rng(1)

    def moody(texts: list[str]) -> Any:
        positive = rng.random(len(texts))
        return np.stack([1 - positive, positive], axis=1)

    with pytest.raises(ModelError, match=r"asked twice about the same text it answered \[.*\] and \["):
        st.certify(st.defend(moody, "ranmask", rate=0.7), ROWS)
