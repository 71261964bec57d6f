"""Mining rules: saliences computed by hand, any batch size, any interruption, any part of an ensemble."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import DataError, ModelError, OptionError
from stockade.experiment.progress import Progress
from stockade.lexicon.association import pmi_rules
from stockade.lexicon.rules import read_rules
from stockade.workflows.mine import scoring
from stockade.workflows.mine.result import MinedRule, MineResult
from tests.toys import WeightVictim
from tests.workflows.mine.toys import MeanVictim

FUNNY = {"funny": (-1.0, 2.0), "laughable": (3.0, -0.5), "dull": (2.0, 0.0), "slow": (1.0, 0.0)}
TEXTS = [
    ("a funny film", "positive"),
    ("such a funny , funny film", "positive"),
    ("a dull and slow film", "negative"),
    ("a dull film", "negative"),
]


def mined(models: object, data: object = TEXTS, **options: Any) -> MineResult:
    return st.mine_rules(models, data, **{"max_count": None, **options})


def rule_of(result: MineResult, label: str, word: str, replacement: str) -> MinedRule:
    (rule,) = [
        rule for rule in result.records() if (rule.label, rule.word, rule.replacement) == (label, word, replacement)
    ]
    return rule


def test_salience_is_what_a_person_computes() -> None:
    # positive, funny -> laughable: (2 - -0.5) + (3 - -1) = 6.5, over the number of words: 3, and twice 5.
    result = mined(MeanVictim(FUNNY))
    rule = rule_of(result, "positive", "funny", "laughable")
    assert (rule.count, rule.occurrences) == (3, 3)
    assert result.salience(rule) == pytest.approx((6.5 / 3 + 2 * 6.5 / 5) / 3, abs=1e-4)
    # negative, dull -> slow: (2 - 1) + (0 - 0) = 1, over 5 words and over 3.
    assert result.salience(rule_of(result, "negative", "dull", "slow")) == pytest.approx((1 / 5 + 1 / 3) / 2, abs=1e-4)
    strongest = next(rule for rule in result.rules().rules if rule.label == "positive")
    assert strongest.key == ("positive", "funny", "laughable")


def test_only_rules_of_positive_salience_are_in_the_file_and_they_come_by_class_and_salience() -> None:
    result = mined(MeanVictim({"funny": (0.0, -1.0), "film": (0.0, 1.0), "movie": (0.0, 0.5)}))
    assert result.salience(rule_of(result, "positive", "funny", "laughable")) < 0
    rules = read_rules(result.path).rules
    assert rules == result.rules().rules
    assert all(rule.salience > 0 for rule in rules)
    assert [rule.key for rule in rules] == [
        rule.key for rule in sorted(rules, key=lambda rule: (rule.label, -rule.salience, rule.word, rule.replacement))
    ]
    assert "funny" not in {rule.word for rule in rules}
    assert ("positive", "film", "movie") in {rule.key for rule in rules}


def test_case_is_one_word_and_the_replacement_takes_it() -> None:
    victim = MeanVictim({"funny": (0.0, 1.0)})
    result = mined(victim, [("Funny film", "positive"), ("a funny film", "positive"), ("nothing", "negative")])
    assert rule_of(result, "positive", "funny", "laughable").count == 2


def test_two_classes_give_the_same_rules_by_logits_by_likelihoods_and_without_logits() -> None:
    by_logits = mined(MeanVictim(FUNNY))
    by_likelihood = mined(MeanVictim(FUNNY), score="log-likelihood")
    without = mined(WeightVictim({"funny": 3.0, "laughable": -3.5}), min_count=1)
    with_logits = mined(_SumVictim({"funny": (-1.0, 2.0), "laughable": (3.0, -0.5)}), min_count=1)
    assert [rule.salience for rule in by_likelihood.rules().rules] == pytest.approx(
        [rule.salience for rule in by_logits.rules().rules], abs=1e-4
    )
    assert [rule.salience for rule in without.rules().rules] == pytest.approx(
        [rule.salience for rule in with_logits.rules().rules], abs=1e-3
    )
    assert "logarithms of its probabilities" in without.summary["warnings"][0]
    assert without.summary["members"][0]["scores"] == "log-probabilities"
    assert without.rules().provenance["members"][0]["scores"] == "log-probabilities"


class _SumVictim(MeanVictim):
    """Logits are sums in place of means."""

    def logits_encoded(self, batch: Sequence[Any]) -> Any:
        return super().logits_encoded(batch) * [[len(text)] for text in batch]


def test_three_classes_differ_by_what_f_is() -> None:
    data = [("a funny film", "b"), ("so funny", "b"), ("a film", "a"), ("film", "c")]
    victim = MeanVictim({"funny": (0.0, 6.0, 0.0), "laughable": (3.0, 0.0, 0.0)}, labels=("a", "b", "c"))
    logits = mined(victim, data)
    likelihood = mined(victim, data, score="log-likelihood")
    # Logits: f_b falls by 6, f_a rises by 3, over 3 and over 2 words.
    rule = rule_of(logits, "b", "funny", "laughable")
    assert logits.salience(rule) == pytest.approx((9 / 3 + 9 / 2) / 2, abs=1e-4)
    assert likelihood.salience(rule_of(likelihood, "b", "funny", "laughable")) != pytest.approx(logits.salience(rule))


@pytest.mark.parametrize("batch_tokens", [1, 7, 10_000])
def test_batches_do_not_change_the_rules(batch_tokens: int) -> None:
    whole = mined([MeanVictim(FUNNY), MeanVictim({"film": (1.0, 0.0)})])
    again = mined([MeanVictim(FUNNY), MeanVictim({"film": (1.0, 0.0)})], batch_tokens=batch_tokens)
    assert list(again.records()) == list(whole.records())


def test_each_text_is_computed_once() -> None:
    victim = MeanVictim(FUNNY)
    mined(victim, [("a funny film", "positive")] * 3 + [("a dull film", "negative")])
    texts = sum(victim.batches) - 1  # one was asked to see that the model answers
    again = MeanVictim(FUNNY)
    mined(again, [("a funny film", "positive"), ("a dull film", "negative")], min_count=1)
    assert texts < sum(again.batches)
    assert max(victim.batches) > 1


def test_a_killed_job_goes_on_with_the_same_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "CHUNK_OCCURRENCES", 7)
    models = {"first": MeanVictim(FUNNY), "second": MeanVictim({"film": (0.3, 0.1)})}
    whole = mined(models, out=tmp_path / "whole")
    assert len(whole.store.ids("chunks")) > 3

    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) % 2 == 0:
            raise KeyboardInterrupt

    for attempt in range(20):
        try:
            result = mined(models, out=tmp_path / "killed", resume=attempt > 0, observer=stop)
            break
        except KeyboardInterrupt:
            assert not st.load(tmp_path / "killed").complete
            assert "Not complete" in st.load(tmp_path / "killed").document().to_markdown()
    assert attempt > 1
    assert result.path.read_bytes() == whole.path.read_bytes()
    assert list(result.records()) == list(whole.records())
    assert seen[-1].done == seen[-1].total == whole.summary["scored"]


def test_a_time_limit_leaves_the_rest_for_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "CHUNK_OCCURRENCES", 7)
    begun = mined(MeanVictim(FUNNY), out=tmp_path / "m", seconds=1e-9)
    assert not begun.complete
    assert not begun.path.exists()
    result = st.resume(tmp_path / "m", models=MeanVictim(FUNNY), data=TEXTS)
    assert result.complete
    assert result.rules() == mined(MeanVictim(FUNNY)).rules()


def test_another_model_or_option_is_refused_on_resume(tmp_path: Path) -> None:
    mined(MeanVictim(FUNNY), out=tmp_path / "m")
    with pytest.raises(st.StockadeError, match="min_count was 2, now 3"):
        mined(MeanVictim(FUNNY), out=tmp_path / "m", resume=True, min_count=3)


def test_a_part_of_an_ensemble_gives_the_rules_of_those_models_alone() -> None:
    first, second, third = MeanVictim(FUNNY), MeanVictim({"film": (0.0, 1.0)}), MeanVictim({"dull": (5.0, 0.0)})
    whole = mined({"a": first, "b": second, "c": third})
    for names, models in ((["a"], {"a": first}), (["a", "c"], {"a": first, "c": third})):
        alone = mined(models)
        assert whole.rules(names).rules == alone.rules().rules
        assert whole.rules(names).provenance["models"] == names
    assert whole.rules(["a", "b", "c"]).rules == whole.rules().rules
    with pytest.raises(OptionError, match='no model in this ensemble "d"'):
        whole.rules(["d"])
    with pytest.raises(OptionError, match="--score logits"):
        mined({"a": first, "b": second}, score="log-likelihood").rules(["a"])


def test_an_ensemble_takes_part_by_its_members_with_their_temperatures() -> None:
    first, second = MeanVictim(FUNNY), MeanVictim({"film": (0.0, 1.0)})
    listed, together = mined([first, second]), mined(st.ensemble([first, second]))
    assert together.rules().rules == listed.rules().rules
    assert len(together.members) == 2
    cooled = mined(st.ensemble([first, second], temperatures=[2.0, 1.0]))
    rule = rule_of(cooled, "positive", "funny", "laughable")
    assert cooled.salience(rule) == pytest.approx(listed.salience(rule_of(listed, *_key(rule))) / 2, abs=1e-4)


def _key(rule: MinedRule) -> tuple[str, str, str]:
    return rule.label, rule.word, rule.replacement


def test_classes_in_another_order_are_matched_by_name_and_other_classes_refused() -> None:
    swapped = {word: weights[::-1] for word, weights in FUNNY.items()}
    result = mined([MeanVictim(FUNNY), MeanVictim(swapped, labels=("positive", "negative"))])
    assert result.rules().rules == mined([MeanVictim(FUNNY), MeanVictim(FUNNY)]).rules().rules
    with pytest.raises(ModelError, match="need the same classes"):
        mined([MeanVictim(FUNNY), MeanVictim(FUNNY, labels=("bad", "good"))])


def test_a_text_that_a_model_cannot_read_is_left_out_and_said() -> None:
    result = mined([MeanVictim(FUNNY), MeanVictim(FUNNY, refused="laughable")])
    assert result.summary["failed"] == 3
    assert "3 replacements could not be scored" in result.summary["warnings"][0]
    assert "cannot read this" in result.summary["warnings"][0]
    assert not [rule for rule in result.records() if rule.replacement == "laughable"]
    broken = mined([MeanVictim(FUNNY), MeanVictim(FUNNY, refused="film")])
    assert (broken.problem() or "").startswith("No replacement could be scored; the first: MeanVictim-2")


def test_rules_by_word_counts_need_no_model() -> None:
    data = [("a funny film", "positive"), ("a laughable film", "negative")] * 2
    for method in ("pmi", "pmi-smoothed"):
        result = mined(None, data, method=method)
        examples = [(label, st.Text.parse(text)) for text, label in data]
        expected = pmi_rules(examples, method=method)
        assert [rule.key for rule in result.rules().rules] == [rule.key for rule in expected.rules]
        assert [rule.salience for rule in result.rules().rules] == pytest.approx(
            [rule.salience for rule in expected.rules], abs=1e-4
        )
        assert result.rules().provenance["method"] == method
        assert result.verify().holds


def test_the_page_the_export_and_the_provenance(tmp_path: Path) -> None:
    result = mined({"toy": MeanVictim(FUNNY), "other": MeanVictim({})}, out=tmp_path / "m", limit=4, seed=3)
    again = st.load(tmp_path / "m")
    assert isinstance(again, MineResult)
    markdown = again.document().to_markdown()
    assert "The strongest replaces “funny” by “laughable” in texts of the class positive" in markdown
    row = next(row for row in again.rows() if row["replacement"] == "laughable")
    assert row["saliences"]["other"] == 0
    assert row["salience"] == pytest.approx(row["saliences"]["toy"] / 2, abs=1e-4)
    assert json.loads((tmp_path / "m" / "summary.json").read_text()) == json.loads(json.dumps(result.summary))
    provenance = read_rules(result.path).provenance
    assert provenance["models"] == ["toy", "other"]
    assert (provenance["seed"], provenance["limit"], provenance["max_count"]) == (3, 4, None)
    assert provenance["texts"] == {"negative": 2, "positive": 2}


def test_verification_scores_again_and_notices_other_models_and_files(tmp_path: Path) -> None:
    data = tmp_path / "films.csv"
    data.write_text("text,label\n" + "".join(f'"{text}",{label}\n' for text, label in TEXTS))
    result = mined({"toy": MeanVictim(FUNNY)}, str(data), out=tmp_path / "m")
    checked = result.verify({"toy": MeanVictim(FUNNY)})
    assert checked.holds
    assert checked.checked == result.summary["scored"]
    assert result.verify({"toy": MeanVictim({"film": (9.0, 0.0)})}).problems == (
        "chunk 0: the sums differ from those that the models give now",
    )
    lines = result.path.read_text().splitlines()
    result.path.write_text("\n".join([*lines[:-1], lines[-1].replace("salience", "Salience")]))
    assert 'has no "salience"' in result.verify({"toy": MeanVictim(FUNNY)}).problems[0]
    result.path.write_text("\n".join(lines[:-1]))
    assert result.verify({"toy": MeanVictim(FUNNY)}).problems == ("rules.jsonl does not follow from the results",)


def test_a_randomised_model_has_the_same_answers_in_any_batch() -> None:
    defended = st.defend(WeightVictim({"funny": 3.0, "dull": -2.0}), "ranmask:copies=5")
    first, second = (mined({"m": defended}, batch_tokens=tokens) for tokens in (None, 7))
    assert list(first.records()) == list(second.records())
    assert [warning for warning in first.summary["warnings"] if "answers at random" in warning]
    assert list(mined({"m": defended}, seed=1).records()) != list(first.records())


def test_bad_options_are_one_sentence() -> None:
    with pytest.raises(OptionError, match="at least one model"):
        mined(None)
    with pytest.raises(OptionError, match="come from the data alone"):
        mined(MeanVictim(FUNNY), method="pmi")
    with pytest.raises(OptionError, match="--method cannot be 'guess'"):
        mined(MeanVictim(FUNNY), method="guess")
    with pytest.raises(OptionError, match="--min-count is 0, expected a whole number from 1 up"):
        mined(MeanVictim(FUNNY), min_count=0)
    with pytest.raises(DataError, match="only the class"):
        mined(None, [("a film", "positive")] * 2, method="pmi")


def test_data_without_any_rule_say_so() -> None:
    result = mined(MeanVictim(FUNNY), [("of the", "positive"), ("and", "negative")])
    assert result.complete
    assert (result.problem() or "").startswith("There is no rule")
