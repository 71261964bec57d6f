"""A detector fitted on texts that differ in what it reads, the route it takes, and the attack that knows it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError
from stockade.core.example import Scores
from stockade.core.text import Text
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.defenses.defended import Defended, remarks_on
from stockade.defenses.detector import Detector, Logistic, fit_detector, load_detector, threshold_at, without_words_of
from stockade.defenses.detector_features import FREQUENCY, MASKING, EvidenceReader
from stockade.defenses.ranmask import RanMask
from stockade.defenses.route import AdaptiveRoute, Route, Routed
from stockade.engine.composite import make_scoring
from stockade.engine.requests import Draw, Score
from stockade.experiment.progress import Runtime
from stockade.experiment.store import ResultStore
from stockade.workflows.attack.result import CODEC
from stockade.workflows.attack.searches import run_searches
from stockade.workflows.attack.spec import AttackSpec
from tests.toys import WeightVictim

WEIGHTS = {"good": 1.0, "fine": 1.0, "nice": 1.0, "trick": -8.0, "bad": -1.0, "poor": -1.0}
VICTIM = WeightVictim(WEIGHTS, bias=0.1)
CLEAN = ["good fine nice film", "a good nice fine show", "bad poor bad film poor", "a poor and bad bad story"]
ATTACKED = ["good fine trick film", "a good nice trick show"]
"""One strong word turns them over, so a copy that hides it disagrees with the rest."""


def detector(**changes: object) -> Detector:
    fitted = fit_detector(VICTIM, CLEAN, ATTACKED, features=MASKING, rate=0.4, copies=60, false_positives=0.0)
    assert fitted.threshold < 0.5
    return replace(fitted, **{"threshold": 0.5, **changes})  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "detector.json"
    detector().save(path)
    return str(path)


def routed(file: str, **options: object) -> Defended:
    return Defended(name="route", defense=Route(detector=file, **options), inner=VICTIM)  # type: ignore[arg-type]


def test_clean_texts_are_answered_by_the_model_and_attacked_ones_by_their_copies(file: str) -> None:
    model = routed(file)
    for text in CLEAN:
        assert model.predict_proba([text])[0] == pytest.approx(VICTIM.predict_proba([text])[0])
    for text in ATTACKED:
        row = model.predict_proba([text])[0]
        assert row != pytest.approx(VICTIM.predict_proba([text])[0], abs=0.01)
        smoothed = Defended(name="m", defense=RanMask(rate=0.4, copies=3000), inner=VICTIM).predict_proba([text])[0]
        assert row == pytest.approx(smoothed, abs=0.2)


def test_a_threshold_that_all_reach_is_the_robust_branch_alone(tmp_path: Path) -> None:
    for threshold, branch in ((0.0, "masked"), (2.0, "plain")):
        path = tmp_path / f"{branch}.json"
        detector(threshold=threshold).save(path)
        row = routed(str(path), combine="vote").predict_proba([ATTACKED[0]])[0]
        is_plain = row == pytest.approx(VICTIM.predict_proba([ATTACKED[0]])[0])
        assert is_plain == (branch == "plain")
        if branch == "masked":
            assert (row * 60 == np.round(row * 60)).all(), "shares of sixty votes"


def test_the_file_is_the_detector(file: str) -> None:
    assert load_detector(file) == detector()
    other = routed(file).fingerprint()
    detector(threshold=0.9).save(file)
    assert load_detector(file).threshold == 0.9
    assert routed(file).fingerprint() != other


def test_logistic_regression_finds_the_least_loss() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 2)) * [3.0, 0.1] + [5.0, -1.0]
    attacked = rng.random(80) < 1 / (1 + np.exp(-(rows[:, 0] - 5)))
    fitted = Logistic.fit(rows, attacked, ridge=0.5)
    share = attacked.mean()

    def loss(weights: tuple[float, ...], bias: float) -> float:
        tried = replace(fitted, weights=weights, bias=bias)
        chances = np.array([tried.probability(row) for row in rows.tolist()])
        losses = np.where(attacked, -np.log(chances) * 0.5 / share, -np.log(1 - chances) * 0.5 / (1 - share))
        return float(losses.sum() + 0.25 * sum(weight**2 for weight in weights))

    least = loss(fitted.weights, fitted.bias)
    for step in (-0.01, 0.01):
        assert loss((fitted.weights[0] + step, fitted.weights[1]), fitted.bias) > least
        assert loss((fitted.weights[0], fitted.weights[1] + step), fitted.bias) > least
        assert loss(fitted.weights, fitted.bias + step) > least


def test_separable_and_constant_numbers_are_survived() -> None:
    fitted = Logistic.fit(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([False, True]))
    assert fitted.probability([0.0, 1.0]) < 0.5 < fitted.probability([1.0, 1.0])
    assert fitted.weights[1] == pytest.approx(0.0)


@pytest.mark.parametrize(("share", "caught"), [(0.0, 0), (0.05, 0), (0.1, 1), (0.25, 2), (0.39, 3)])
def test_no_more_clean_texts_than_allowed_reach_the_threshold(share: float, caught: int) -> None:
    clean = [number / 10 for number in range(10)]
    threshold = threshold_at(clean, share)
    assert sum(value >= threshold for value in clean) == caught
    assert threshold_at([0.5] * 4, 0.25) > 0.5, "of equal ones none is caught rather than all"


def test_rare_words_become_frequent_synonyms() -> None:
    reader = EvidenceReader(
        features=FREQUENCY, rate=0.3, kept=1, copies=5, rare=1, counts={"movie": 9, "film": 3, "good": 7, "flick": 1}
    )
    assert str(reader.frequent(Text.parse("A good flick, picture"))) == "A good movie, movie"
    assert str(reader.frequent(Text.parse("film qqq"))) == "film qqq"


def test_a_clean_text_does_not_make_its_own_words_frequent() -> None:
    """Else every word of the texts that a detector is fitted on would be known, which is true of no other text."""
    reader = EvidenceReader(
        features=FREQUENCY, rate=0.3, kept=1, copies=5, rare=0, counts={"movie": 2, "flick": 2, "a": 3}
    )
    assert str(reader.frequent(Text.parse("a flick"))) == "a flick"
    assert without_words_of(reader, "a flick, a Flick").counts == {"movie": 2, "flick": 0, "a": 1}
    assert str(without_words_of(reader, "a flick, a Flick").frequent(Text.parse("a flick"))) == "a movie"


def test_evidence_by_hand(tmp_path: Path) -> None:
    """Two words, one stays: copies are "good [MASK]" and "[MASK] trick"."""
    path = tmp_path / "d.json"
    plain = 1 / (1 + math.exp(6.9))
    detector(rate=0.5, copies=4000).save(path)
    loaded = load_detector(str(path))
    reader = EvidenceReader(
        features=loaded.features,
        rate=loaded.rate,
        kept=loaded.kept,
        copies=loaded.copies,
        rare=loaded.rare,
        counts=loaded.counts,
    )
    victim = WeightVictim(WEIGHTS, bias=0.1)

    class Shown:
        randomised = False

        def check(self, inner: object) -> None: ...

        async def answer(self, text: Text, rng: np.random.Generator) -> st.Scores:
            return st.Scores((await reader.read(text, rng)).numbers)

    service = make_scoring(Defended(name="shown", defense=Shown(), inner=victim))
    (answer,) = service.answer_scores([Score([Text.parse("good trick")])])
    disagreement, fall, margin = answer[0].probabilities  # type: ignore[index]
    mean = 0.5 / (1 + math.exp(-1.1)) + 0.5 / (1 + math.exp(7.9))
    assert disagreement == pytest.approx(0.5, abs=0.03)
    assert fall == pytest.approx((1 - plain) - (1 - mean), abs=0.03)
    assert margin == pytest.approx(1 - 2 * mean, abs=0.05)


def test_the_adaptive_view_falls_with_the_probability_and_with_the_suspicion(file: str) -> None:
    model = routed(file, draws="fixed")
    view = model.surrogate()
    assert view is not None
    assert isinstance(view.defense, AdaptiveRoute)
    original = Text.parse(CLEAN[0])
    weaker, turned = original.replace(0, "qq"), original.replace_all({0: "bad", 1: "bad", 2: "bad"})
    service = make_scoring(view)
    (answers,) = service.answer_scores([Score([original, weaker, turned])])
    first, second, third = (scores.probabilities[1] for scores in answers)  # type: ignore[union-attr]
    assert 1 > first > second > 0.5, "still the class, and less sure of it"
    assert third < 0.5
    (truth,) = make_scoring(model).answer_scores([Score([turned])])
    assert answers[2] == truth[0], "once it is turned the routed answer itself is shown"  # type: ignore[index]
    suspicious = replace(view, defense=AdaptiveRoute(view.defense.route, weight=1.0))
    (only,) = make_scoring(suspicious).answer_scores([Score([original])])
    evidence_free = 2 * only[0].probabilities[1] - 1  # type: ignore[index]
    assert 0 < evidence_free < load_detector(file).threshold, "with all the weight on it, it is the suspicion"


class Known(Route):
    """A route of which both branches and the suspicion are known: (plain, robust, suspicion), from 0.5 on caught, of a
    text's first two words. Branches are told by the probability of "positive".
    """

    TOLD: ClassVar = {
        "good fine": (0.9, 0.9, 0.3),
        "loud fine": (0.55, 0.9, 0.45),  # nearer to the other class, nearer to being caught as well
        "hush fine": (0.6, 0.9, 0.1),
        "loud bold": (0.2, 0.9, 0.65),
        "hush bold": (0.25, 0.9, 0.3),
        "a trick": (0.2, 0.7, 0.9),  # the model is wrong on it, its copies are right
        "a joke": (0.2, 0.6, 0.6),
    }

    def check(self, inner: object) -> None:
        pass

    async def routed(self, text: Text, rng: np.random.Generator) -> Routed:
        plain, robust, suspicion = self.TOLD[" ".join(text.words[:2])]
        return Routed(Scores((1 - plain, plain)), Scores((1 - robust, robust)), suspicion, suspicion >= 0.5)

    def resources(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class WordByWord:
    """Gives each word in turn what brings it farthest."""

    choices: tuple[tuple[str, ...], ...] = (("loud", "hush"), ("bold",))

    async def search(self, example: st.Example, rng: object) -> st.Outcome:
        text = example.text
        for index, words in enumerate(self.choices):
            tried = [text.replace(index, word) for word in words]
            scores = await Score(tried)
            best = max(range(len(tried)), key=lambda at: example.gain(scores[at]))
            text = tried[best]
            if example.fooled(scores[best]):
                return st.Outcome.found(text)
        return st.Outcome.failed("no word is left")


@pytest.mark.parametrize(("knows", "adversarial"), [(False, None), (True, "hush bold film")])
def test_an_attack_that_knows_the_detector_passes_where_another_is_caught(
    tmp_path: Path, knows: bool, adversarial: str | None
) -> None:
    """Who follows the routed answer takes "loud" and is caught with the second word; who sees the suspicion is not."""
    model = Defended(name="route", defense=Known(draws="fixed"), inner=VICTIM)
    examples = prepare_examples(load_data([("good fine film", "positive")]), model.labels)
    spec = AttackSpec.of(model="toy", data="toy", attacks=WordByWord(), similarity=False)
    store = ResultStore(tmp_path, writable=True)
    run_searches(store, model, examples, spec, Runtime(), queried=model.surrogate() if knows else None)
    (record,) = map(CODEC.read, store.documents())
    assert record.status == ("success" if knows else "failed")
    if knows:
        assert (record.adversarial, record.adversarial_prediction) == (adversarial, "negative")


@pytest.mark.parametrize("draws", ["fresh", "fixed"])
def test_the_adaptive_view_knows_the_suspicion_where_only_the_masked_branch_is_right(draws: str) -> None:
    """The routed answer to the original is "positive", whatever the model alone would say of it."""
    victim = WeightVictim({"trick": -8.0})
    model = Defended(name="route", defense=Known(draws=draws), inner=victim)  # type: ignore[arg-type]
    view = model.surrogate()
    assert view is not None
    original = Text.parse("a trick film")
    (answers,) = make_scoring(view).answer_scores([Score([original, original.replace(1, "joke")])])
    first, second = (scores.probabilities[1] for scores in answers)  # type: ignore[union-attr]
    assert first == pytest.approx(0.5 + 0.5 * (0.5 * 0.9 + 0.5 * (0.9 * 0.7 + 0.1 * 0.2)))
    assert second == pytest.approx(0.5 + 0.5 * (0.5 * 0.6 + 0.5 * (0.6 * 0.6 + 0.4 * 0.2)))


def test_an_original_has_the_same_class_in_a_whole_search(tmp_path: Path) -> None:
    """Its copies are drawn once for all questions, where the choices are fixed as the route itself draws them."""
    path = tmp_path / "always.json"
    detector(threshold=0.0, copies=1).save(path)  # one copy, which decides
    routes: list[tuple[str, tuple[float, ...]]] = []

    class Watched(Route):
        async def routed(self, text: Text, rng: np.random.Generator) -> Routed:
            route = await super().routed(text, rng)
            routes.append((str(text), route.robust.probabilities))
            return route

    original = Text.parse("good fine trick film")
    others = [original.replace(3, word) for word in ("movie", "picture", "story", "show", "plot", "play")]
    for draws in ("fresh", "fixed"):
        routes.clear()
        model = Defended(name="route", defense=Watched(detector=str(path), draws=draws), inner=VICTIM)
        view = model.surrogate()
        assert view is not None
        make_scoring(view).answer_scores([Score(others, draw=Draw(3, 0))])
        answers = {scores for text, scores in routes if text == str(original)}
        assert len(answers) == 1
        if draws == "fixed":
            assert answers == {tuple(model.predict_proba([str(original)])[0].tolist())}


def test_bad_input(tmp_path: Path, file: str) -> None:
    with pytest.raises(OptionError, match="route needs a detector"):
        st.defend(VICTIM, "route")
    with pytest.raises(OptionError, match=r"missing\.json cannot be read .*stockade detector MODEL RUN"):
        st.defend(VICTIM, "route", detector=str(tmp_path / "missing.json"))
    with pytest.raises(OptionError, match="route and ranmask cannot be combined"):
        st.defend(VICTIM, [f"route:detector={file}", "ranmask"])
    content = json.loads(Path(file).read_text())
    for broken in ({}, {**content, "schema": 9}, {**content, "logistic": {}}, [1]):
        path = tmp_path / "broken.json"
        path.write_text(json.dumps(broken))
        with pytest.raises(OptionError, match="no detector of Stockade"):
            load_detector(str(path))
    with pytest.raises(DataError, match="0 attacked texts"):
        fit_detector(VICTIM, CLEAN, [])
    with pytest.raises(OptionError, match='"luck"'):
        fit_detector(VICTIM, CLEAN, ATTACKED, features=["luck"])
    with pytest.raises(OptionError, match="without its defenses"):
        fit_detector(routed(file), CLEAN, ATTACKED)
    with pytest.raises(OptionError, match="false-positive rate"):
        fit_detector(VICTIM, CLEAN, ATTACKED, features=MASKING, copies=3, false_positives=1.0)


def test_a_text_that_just_reaches_the_threshold_is_caught(tmp_path: Path) -> None:
    """Without weights every text has a suspicion of one half."""
    nothing = (0.0,) * len(MASKING)
    even = Logistic(nothing, (1.0,) * len(MASKING), nothing, 0.0)
    for threshold, is_plain in ((0.5, False), (math.nextafter(0.5, 1), True)):
        path = tmp_path / "even.json"
        detector(logistic=even, threshold=threshold).save(path)
        row = routed(str(path)).predict_proba([ATTACKED[0]])[0]
        assert (row == pytest.approx(VICTIM.predict_proba([ATTACKED[0]])[0])) == is_plain


class Given(Route):
    """A route whose branches and suspicion are known."""

    async def routed(self, text: Text, rng: np.random.Generator) -> Routed:
        return Routed(Scores((0.1, 0.3, 0.6)), Scores((0.2, 0.3, 0.5)), 0.25, caught=False)

    def check(self, inner: object) -> None:
        pass


def test_the_adaptive_view_by_hand() -> None:
    """The class has 0.25 × 0.5 + 0.75 × 0.6 = 0.575 in both branches; half of that and of the suspicion is 0.4125."""

    class Sure:
        labels, deterministic = ("a", "b", "c"), True

        def predict_proba(self, inputs: Sequence[object]) -> np.ndarray:
            return np.array([[0.1, 0.2, 0.7]] * len(inputs))

    row = Defended(name="route", defense=AdaptiveRoute(Given()), inner=Sure()).predict_proba(["film"])[0]
    held = 0.5 + 0.5 * 0.4125
    assert row == pytest.approx([(1 - held) / 4, (1 - held) * 3 / 4, held]), "the others share the rest as 0.1 to 0.3"


def test_a_share_is_of_whole_texts_whatever_its_product_rounds_to() -> None:
    """0.29 × 100 is a little less than 29 to a computer."""
    clean = [at / 100 for at in range(100)]
    threshold = threshold_at(clean, 0.29)
    assert sum(value >= threshold for value in clean) == 29


def test_a_detector_of_another_model_is_remarked_on(tmp_path: Path) -> None:
    @dataclass
    class Named(WeightVictim):
        name: str = "one"

        def fingerprint(self) -> str:
            return self.name

    first, other = Named(WEIGHTS, bias=0.1), Named(WEIGHTS, bias=0.1, name="other")
    path = tmp_path / "detector.json"
    fit_detector(first, CLEAN, ATTACKED, features=MASKING, rate=0.4, copies=20).save(path)
    assert remarks_on(st.defend(first, "route", detector=str(path))) == []
    remark = "The detector of route was fitted on another model: its threshold says little here."
    assert remarks_on(st.defend(other, "route", detector=str(path))) == [remark]
