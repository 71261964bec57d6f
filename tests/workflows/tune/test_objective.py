"""A trial attacks in several views: a text survives only if it survives all of them, and noise is no defense."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import stockade as st
from stockade.attacks.registry import NamedAttack
from stockade.attacks.trial import attack_example
from stockade.core.protocols import Classifier
from stockade.core.records import Record, Status
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.experiment.progress import Runtime
from stockade.workflows.attack.result import CODEC
from stockade.workflows.evaluate.views import Averaged
from stockade.workflows.tune.objective import Attacker, Objective, _merge
from stockade.workflows.tune.spec import TuneSpec
from tests.records import record
from tests.toys import WeightVictim

REVIEW = "good funny clever great dull slow film number tells us about people who live there"
REVIEWS = [(f"{REVIEW} {number}", "positive") for number in range(10)]
LIKED, DISLIKED = ("good", "funny", "clever", "great"), ("dull", "slow")
VICTIM = WeightVictim({**dict.fromkeys(LIKED, 1.0), **dict.fromkeys(DISLIKED, -0.6)})
"""Fooled when two or three of the four words are gone: the first lucky draw is not enough."""


def test_noise_does_not_win_by_luck() -> None:
    """With one copy a search sees a flip at once, stops, and learns that it was chance. Every text can be fooled."""
    tuned = st.tune(VICTIM, REVIEWS, "ranmask:rate=0.3", "pwws", ranges="copies=1|50", trials=2, limit=None)
    assert {trial.options["copies"]: trial.robust for trial in tuned.trials} == {1: 0.0, 50: 0.0}


@pytest.mark.parametrize(("goes_on", "eot_samples", "least", "most"), [
    (False, 1, 0.4, 1.0),  # the first lucky draw ends a search, and its text counts as robust
    (False, 3, 0.0, 0.1),  # more answers are averaged where successes did not hold
    (True, 1, 0.0, 0.1),  # the search goes on until it has what holds
])  # fmt: skip
def test_noise_ends_no_search(
    goes_on: bool, eot_samples: int, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same without what transfers from the bare model, which would hide it."""
    views = Attacker._views
    monkeypatch.setattr(Attacker, "_views", lambda self, model: {"direct": views(self, model)["direct"]})
    if not goes_on:

        def stopping(*arguments: Any, **options: Any) -> Any:
            return attack_example(*arguments, **{**options, "goes_on": False})

        monkeypatch.setattr("stockade.workflows.attack.searches.attack_example", stopping)
    tuned = st.tune(VICTIM, REVIEWS, "ranmask:rate=0.3,copies=1", "pwws", ranges="kept=1|1", trials=1, limit=None,
                    eot_samples=eot_samples)  # fmt: skip
    (trial,) = tuned.trials
    assert least <= (trial.robust or 0.0) <= most
    assert trial.first_flip_robust is not None
    assert trial.first_flip_robust <= (trial.robust or 0.0)
    assert "robust, first flip" in tuned.document().to_markdown()


def test_a_first_flip_in_any_view_is_one() -> None:
    records: dict[str, Record] = {}
    flip = record(0, "failed", first_flip=True)
    _merge(records, [flip, record(1, "failed", first_flip=False)])
    _merge(records, [record(0, "success", first_flip=True), record(1, "failed", first_flip=True)])
    assert [(each.status, each.first_flip) for each in records.values()] == [("success", True), ("failed", True)]


def test_what_tune_calls_robust_evaluate_does_too() -> None:
    """Where nothing is tried again, a trial's numbers are those of an evaluation in the same views."""
    data = [("a good film in all ways", "positive"), ("a bad film in all ways", "negative")] * 3
    victim = WeightVictim({"good": 2.0, "bad": -2.0, "film": 0.1}, bias=-0.05)
    tuned = st.tune(victim, data, "ranmask:copies=50", "deepwordbug", ranges="rate=0.1|0.2", trials=1, limit=None)
    defense = str(tuned.best_defense)
    row = st.evaluate({"toy": victim}, data, "deepwordbug", defense, eot_samples=3).row(defense)
    assert tuned.trials[0].robust == row.worst.robust_accuracy.value
    assert tuned.trials[0].clean == row.clean.accuracy.value


def test_attacks_with_nothing_to_try_prove_nothing() -> None:
    """No synonym stands for words that nobody knows; they can still be misspelled."""
    data, victim = [("xqzvt wrtkp bpltg", "positive")] * 3, WeightVictim({}, bias=1.0)
    options: dict[str, Any] = {"ranges": "rate=0.1|0.2", "trials": 1, "limit": None}
    untried = st.tune(victim, data, "ranmask:copies=5", "pwws", **options)
    assert untried.best is None
    assert "nothing to try on most texts" in (untried.problem() or "")
    tuned = st.tune(victim, data, "ranmask:copies=5", ["pwws", "deepwordbug"], **options)
    assert tuned.trials[0].robust == 1.0


Script = dict[str, dict[str, tuple[Status, float | None]]]
"""What becomes of each text, by attack and view; a view alone stands for the first attack."""


class Scripted:
    """Attacks whose outcomes are written down, by what the searches see."""

    def __init__(self, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script, self.tried = script, list[tuple[str, list[str]]]()
        monkeypatch.setattr(Attacker, "_attacked", lambda _, *arguments: self.attacked(*arguments))

    def attacked(
        self, model: Classifier, attack: NamedAttack, examples: ExampleSet, queried: Classifier | None
    ) -> list[Record]:
        view = "direct" if queried is None else "transfer" if queried is VICTIM else _surrogate_or_mean(model, queried)
        place = view if attack.key == "pwws" else f"{attack.key}, {view}"
        texts = [example.id for example in examples] if examples.size else []
        self.tried.append((place, texts))
        outcomes = {text: self.script.get(place, {}).get(text, ("failed", None)) for text in texts}
        return [record(int(text), status, hit_rate=rate) for text, (status, rate) in outcomes.items()]


def _surrogate_or_mean(model: Any, queried: Any) -> str:
    surrogate = model.defense.surrogate()
    if isinstance(queried, Averaged):
        inner: Any = queried.inner
        assert inner.defense == surrogate
        return f"mean of {queried.draws}"
    assert queried.defense == surrogate
    return "surrogate"


def _outcomes(defense: str, eot_samples: int = 3, attacks: Any = "pwws") -> dict[str, Status]:
    """What became of each of five texts inside a defense."""
    spec = TuneSpec.of(
        model=VICTIM, data=REVIEWS[:5], defense="ranmask", attacks=attacks, limit=None, eot_samples=eot_samples
    )
    examples = prepare_examples(st.load_data(REVIEWS[:5]), VICTIM.labels)
    records = Attacker(spec, examples, Runtime()).records(st.defend(VICTIM, defense))
    return {record.id: record.status for record in records}


def test_each_view_is_tried_on_what_the_views_before_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(
        {
            "transfer": {"0": ("success", 1.0), "1": ("skipped", None), "2": ("failed", 0.0)},
            "surrogate": {"2": ("failed", 0.3), "3": ("error", None)},
            "mean of 3": {"4": ("success", 0.5)},
            "mean of 12": {"2": ("success", 0.6)},
        },
        monkeypatch,
    )
    outcomes = _outcomes("ranmask:combine=vote")
    assert scripted.tried == [
        ("transfer", ["0", "1", "2", "3", "4"]),
        ("surrogate", ["2", "3", "4"]),
        ("mean of 3", ["2", "3", "4"]),
        ("mean of 6", ["2"]),
        ("mean of 12", ["2"]),
        ("mean of 24", []),
    ]
    assert outcomes == {"0": "success", "1": "skipped", "2": "success", "3": "error", "4": "success"}


def test_a_text_is_robust_only_if_it_survives_every_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(
        {
            "transfer": {"0": ("success", 1.0), "1": ("skipped", None)},
            "deepwordbug, transfer": {"2": ("success", 1.0)},
            "deepwordbug, direct": {"3": ("failed", 0.4)},
            "deepwordbug, mean of 6": {"3": ("success", 0.7)},
        },
        monkeypatch,
    )
    monkeypatch.setattr(
        "tests.workflows.tune.test_objective._surrogate_or_mean", lambda model, queried: f"mean of {queried.draws}"
    )
    outcomes = _outcomes("ranmask", attacks=["pwws", "deepwordbug"])
    tried = {place: texts for place, texts in scripted.tried if place.startswith("deepwordbug") and texts}
    assert tried == {
        "deepwordbug, transfer": ["2", "3", "4"],
        "deepwordbug, direct": ["3", "4"],
        "deepwordbug, mean of 3": ["3", "4"],
        "deepwordbug, mean of 6": ["3"],
    }
    assert outcomes == {"0": "success", "1": "skipped", "2": "success", "3": "success", "4": "failed"}


def test_an_error_in_a_later_view_is_not_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what it hides; a success in spite of it is known."""
    errors: Script = {"surrogate": {"0": ("error", None), "1": ("error", None)}, "mean of 3": {"1": ("success", 1.0)}}
    Scripted(errors, monkeypatch)
    outcomes = _outcomes("ranmask:combine=vote")
    assert (outcomes["0"], outcomes["1"], outcomes["2"]) == ("error", "success", "failed")


@pytest.mark.parametrize(
    ("defense", "eot_samples", "views"),
    [
        ("ranmask", 1, ["transfer", "direct"]),
        ("ranmask:combine=vote", 1, ["transfer", "surrogate"]),
        ("ranmask:draws=fixed", 3, ["transfer", "direct"]),
        ("ranmask:draws=fixed,combine=vote", 3, ["transfer", "surrogate"]),
    ],
)
def test_views_that_would_show_the_same_are_left_out(
    defense: str, eot_samples: int, views: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = Scripted({}, monkeypatch)
    _outcomes(defense, eot_samples)
    assert [view for view, texts in scripted.tried if texts] == views


def test_a_trial_attacks_as_the_search_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed options, seed, budget and texts are the search's; searches see the bare model, then the surrogate."""
    calls: list[Any] = []

    def noting(store: Any, model: Any, examples: Any, spec: Any, runtime: Any, *, queried: Any) -> None:
        calls.append((model, examples, spec, runtime, queried))
        for example in examples:
            attacked = record(int(example.id), "failed", attack="deepwordbug")
            store.add("deepwordbug", example.id, CODEC.encode(attacked), status="failed")

    monkeypatch.setattr("stockade.workflows.tune.objective.run_searches", noting)
    spec = TuneSpec.of(
        model=VICTIM, data=REVIEWS, defense="ranmask:copies=5,combine=vote", attacks="deepwordbug", eot_samples=1,
        ranges="rate=0.1..0.9", seed=3, limit=4, budget=33, max_words=70,
    )  # fmt: skip
    trial = Objective(spec, Runtime(concurrency=5, batch_tokens=900, workers=3)).rate(7, {"rate": 0.4})
    assert (trial.number, trial.n, trial.clean, trial.robust) == (7, 4, 1.0, 1.0)
    (model, examples, job, runtime, bare), (_, _, _, _, surrogate) = calls
    assert (model.seed, model.defense.copies, model.defense.combine, model.defense.rate) == (3, 5, "vote", 0.4)
    assert bare is VICTIM
    assert surrogate.defense == replace(model.defense, combine="probability")
    assert (job.seed, job.budget, job.max_words, examples.size) == (3, 33, 70, 4)
    assert (runtime.concurrency, runtime.batch_tokens, runtime.observer) == (5, 900, None)
