"""How options are chosen: apart from each other, and with optuna from the trials before."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from stockade.core.errors import ResourceMissing
from stockade.workflows.tune.ranges import Choices, Numbers, Range
from stockade.workflows.tune.samplers import OptunaSampler, make_sampler
from stockade.workflows.tune.trials import Trial


def test_optuna_is_asked_for_by_name_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ResourceMissing, match=r'pip install "stockade\[tune\]"'):
        make_sampler("tpe", {"rate": Numbers(0.1, 0.9)}, 0)


def test_optuna_proposes_from_what_was_found() -> None:
    """With the real package: proposals lie in the space, and the same trials give the same proposals."""
    optuna = pytest.importorskip("optuna")
    space: dict[str, Range] = {"rate": Numbers(0.1, 0.9), "how": Choices(("a", "b"))}
    before = [Trial(n, {"rate": 0.1 + n / 20, "how": "ab"[n % 2]}, 9, 1.0, n / 20, n / 20) for n in range(12)]
    sampler = OptunaSampler(space, 0, "TPESampler", optuna)
    chosen = sampler.choose([12, 13], before)
    assert all(0.1 <= options["rate"] <= 0.9 and options["how"] in "ab" for options in chosen)  # type: ignore[operator]
    assert sampler.choose([12, 13], before) == chosen
    assert all(len(str(options["rate"])) <= len("0.1234") for options in chosen)


def test_optuna_is_told_the_finished_trials_and_asked_in_our_terms() -> None:
    """With a stand-in: what reaches the library."""
    reported: list[Any] = []

    class Study:
        def add_trial(self, trial: Any) -> None:
            reported.append(trial)

        def ask(self, distributions: dict[str, Any]) -> Any:
            return types.SimpleNamespace(params={name: kind[1] for name, kind in distributions.items()})

    def create_study(direction: str, sampler: Any) -> Study:
        reported.append((direction, sampler))
        return Study()

    fake = types.SimpleNamespace(
        logging=types.SimpleNamespace(set_verbosity=lambda level: None, ERROR=0),
        samplers=types.SimpleNamespace(TPESampler=lambda seed: ("tpe", seed)),
        create_study=create_study,
        trial=types.SimpleNamespace(create_trial=lambda **content: content),
        distributions=types.SimpleNamespace(
            FloatDistribution=lambda low, high, log: ("float", low, high, log),
            IntDistribution=lambda low, high, log: ("int", low, high, log),
            CategoricalDistribution=lambda values: ("choice", values[0]),
        ),
    )
    space: dict[str, Range] = {
        "rate": Numbers(0.1, 0.9),
        "copies": Numbers(2, 8, whole=True, logarithmic=True),
        "how": Choices(("a", "b")),
    }
    before = [
        Trial(0, {"rate": 0.5, "copies": 4, "how": "b"}, 5, 1.0, 0.4, 0.4),
        Trial(1, {"rate": 0.2, "copies": 4, "how": "b"}, error="broken"),
    ]
    chosen = OptunaSampler(space, 1, "TPESampler", fake).choose([2, 3], before)
    assert chosen == [{"copies": 2, "how": "a", "rate": 0.1}] * 2
    assert reported[0][0] == "maximize"
    assert reported[0][1][0] == "tpe"
    assert [trial["value"] for trial in reported[1:]] == [0.4]
    assert reported[1]["params"] == {"rate": 0.5, "copies": 4, "how": "b"}
    assert reported[1]["distributions"]["copies"] == ("int", 2, 8, True)


def test_every_trial_draws_apart_whatever_round_it_is_in() -> None:
    """Trials of one round have the options that each has alone, and no two have the same."""
    sampler = make_sampler("random", {"rate": Numbers(0.1, 0.9), "copies": Numbers(2, 90, whole=True)}, 3)
    together = sampler.choose([0, 1, 2, 3], [])
    done = [Trial(number, options, 1, 1.0, 0.5, 0.5) for number, options in enumerate(together)]
    assert [sampler.choose([number], done[:number])[0] for number in range(4)] == together
    assert sampler.choose([2, 3], done[:2]) == together[2:]
    assert len({tuple(options.values()) for options in together}) == 4


def test_optunas_seed_is_of_the_search_and_the_round() -> None:
    seeds: list[int] = []

    class Study:
        def ask(self, distributions: dict[str, Any]) -> Any:
            return types.SimpleNamespace(params={})

    fake = types.SimpleNamespace(
        logging=types.SimpleNamespace(set_verbosity=lambda level: None, ERROR=0),
        samplers=types.SimpleNamespace(TPESampler=lambda seed: seeds.append(seed)),
        create_study=lambda direction, sampler: Study(),
        distributions=types.SimpleNamespace(FloatDistribution=lambda low, high, log: None),
    )
    for seed, first in ((1, 0), (1, 0), (1, 2), (2, 0)):
        OptunaSampler({"rate": Numbers(0.1, 0.9)}, seed, "TPESampler", fake).choose([first, first + 1], [])
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 3
