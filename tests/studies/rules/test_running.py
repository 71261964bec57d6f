"""`st.study("rules", …)` and `stockade study rules` from the first word to the last file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import OptionError, StockadeError
from stockade.experiment.progress import Progress
from stockade.lexicon.rules import read_rules
from stockade.studies.rules.spec import RulesSpec
from stockade.studies.rules.study import RulesResult
from tests.studies.rules.toys import (
    BERT,
    CHARACTERS,
    CNN,
    LSTM,
    SMALL,
    TEXTS,
    TRAINING,
    study,
    victims,
    write_csv,
)
from tests.toys import WeightVictim


@pytest.fixture(autouse=True)
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than everything else; one test looks at what is drawn."""
    for name in ("size_plot", "budget_plot", "target_plot"):
        monkeypatch.setattr(f"stockade.studies.rules.page.{name}", lambda *numbers: "")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RulesResult:
    """A study of four toys; not to be written to."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("size_plot", "budget_plot", "target_plot"):
            patch.setattr(f"stockade.studies.rules.page.{name}", lambda *numbers: "")
        return study(out=tmp_path_factory.mktemp("rules") / "made")


def test_the_sources_are_the_papers_as_far_as_they_are_there(finished: RulesResult) -> None:
    assert finished.spec.mined_with == (LSTM, CHARACTERS, BERT)
    assert [entry.key for entry in finished.sets] == ["uawr-2", "uawr-3", "pmi", "pmi-smoothed", "random"]
    assert finished.main == "uawr-3"
    assert {name for name, target in finished.numbers.targets.items() if target.held_out} == {CNN}


def test_rules_of_a_smaller_ensemble_are_those_that_it_would_have_mined(finished: RulesResult) -> None:
    models = victims()
    alone = st.mine_rules({name: models[name] for name in (LSTM, CHARACTERS)}, TRAINING, max_count=3, min_count=1)
    file = finished.folder / "rules" / "uawr-2.jsonl"
    assert read_rules(file).rules == alone.rules().rules
    assert read_rules(file).provenance["models"] == [LSTM, CHARACTERS]


def test_every_rule_set_is_applied_to_every_model(finished: RulesResult) -> None:
    assert set(finished.runs) == {LSTM, CHARACTERS, CNN, BERT}
    attacks = finished.runs[CNN].attacks
    assert attacks == (
        *("uawr-2", "uawr-3", "uawr-3-final", "pmi", "pmi-final"),
        *("pmi-smoothed", "pmi-smoothed-final", "random", "random-final"),
    )
    rate = finished.runs[CNN].summary["attacks"]["uawr-3"]["success_rate"]["value"]
    assert finished.numbers.targets[CNN].success["uawr-3"] == pytest.approx(rate)
    assert rate > 0


def test_budgets_are_what_attacks_under_each_budget_find(finished: RulesResult) -> None:
    file = finished.folder / "rules" / "uawr-3.jsonl"
    for budget, rates in finished.numbers.budgets.items():
        found = [
            st.attack(model, TEXTS, f"rules:file={file},budget={budget}", similarity=False)
            for model in victims().values()
        ]
        values = [run.summary["attacks"]["rules"]["success_rate"]["value"] for run in found]
        assert rates["uawr-3"]["value"] == pytest.approx(sum(values) / len(values), abs=1e-6)


def test_the_page_and_the_summary(finished: RulesResult) -> None:
    page = (finished.folder / "report.md").read_text(encoding="utf-8")
    for heading in ("Table 5", "Table 9", "Table 10", "Table 1", "Mined rules against the others"):
        assert heading in page
    assert "| UAWR, MR | 86.8 | 9.0 |" in page
    assert "funny" in page
    summary = json.loads((finished.folder / "summary.json").read_text())
    assert summary["mined_with"] == [LSTM, CHARACTERS, BERT]
    assert summary["complete"]
    assert {claim["verdict"] for claim in summary["claims"]} <= {"held", "not held", "undecided"}
    assert any("Only" in warning for warning in summary["warnings"])


def test_the_study_is_opened_and_verified_without_models(finished: RulesResult, tmp_path: Path) -> None:
    copied = shutil.copytree(finished.folder, tmp_path / "copy")
    again = st.load(copied)
    assert isinstance(again, RulesResult)
    assert again.numbers == finished.numbers
    assert finished.verify(victims()).holds
    file = finished.folder / "rules" / "pmi" / "rules.jsonl"
    content = file.read_bytes()
    try:
        file.write_text("")
        problems = finished.verify(victims()).problems
        assert [problem for problem in problems if problem.startswith("pmi: ")]
    finally:
        file.write_bytes(content)


def test_an_interrupted_study_goes_on_with_the_same_numbers(finished: RulesResult, tmp_path: Path) -> None:
    calls = 0

    def stop(progress: Progress) -> None:
        nonlocal calls
        calls += 1
        if calls in (1, 12):
            raise KeyboardInterrupt

    for attempt in range(5):
        try:
            result = study(out=tmp_path / "made", resume=attempt > 0, observer=stop)
            break
        except KeyboardInterrupt:
            continue
    assert attempt == 2
    assert result.numbers == finished.numbers
    assert [claim.verdict for claim in result.claims] == [claim.verdict for claim in finished.claims]


def test_rules_can_be_given(finished: RulesResult, tmp_path: Path) -> None:
    file = shutil.copy(finished.folder / "rules" / "uawr-3.jsonl", tmp_path / "mine.jsonl")
    result = study(rules=[file], train_data=None, out=tmp_path / "made")
    assert [entry.key for entry in result.sets] == ["mine", "random"]
    assert result.main == "mine"
    assert result.mining is None
    assert {name for name, target in result.numbers.targets.items() if target.held_out} == {CNN}, "said by the file"
    assert result.numbers.targets[CNN].success["mine"] == finished.numbers.targets[CNN].success["uawr-3"]


def test_a_model_that_fails_is_marked_and_the_others_go_on(tmp_path: Path) -> None:
    class Failing(WeightVictim):
        def predict_proba(self, inputs: Any) -> Any:
            if self.asked:
                raise MemoryError("gone")
            return super().predict_proba(inputs)

    result = study({**victims(), "CNN-WC-ELMo-1": Failing({"funny": 1.0})}, sources=[LSTM], out=tmp_path / "made")
    assert "CNN-WC-ELMo-1" in result.failures
    assert set(result.runs) == {LSTM, CHARACTERS, CNN, BERT}
    assert any(warning.startswith("CNN-WC-ELMo-1 was left out") for warning in result.warnings)
    assert result.complete


def test_texts_that_were_mined_are_warned_of() -> None:
    result = study(data=TRAINING, sources=[LSTM, CHARACTERS, CNN, BERT])
    assert any("mined from the texts that they are applied to" in warning for warning in result.warnings)
    assert any("nothing is said about models that nobody asked" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"train_data": None}, "needs texts to mine from"),
        ({"sources": ["nobody"]}, 'no model in this study "nobody"'),
        ({"sources": [LSTM, LSTM]}, "names a model twice"),
        ({"stand_ins": ["BERT=nobody"]}, 'no model in this study "nobody"'),
        ({"max_changed": 30}, "--max-changed is 30"),
        ({"rules": ["nothing.jsonl"]}, "nothing.jsonl"),
    ],
)
def test_bad_options_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StockadeError, match=sentence):
        study(**options)


def test_without_a_model_of_the_papers_sources_have_to_be_named() -> None:
    with pytest.raises(OptionError, match="Name those to mine with: --source toy"):
        RulesSpec.of(models={"toy": WeightVictim({})}, data=TEXTS, **SMALL)
    spec = RulesSpec.of(models={"toy": WeightVictim({})}, data=TEXTS, sources=["toy"], **SMALL)
    assert (spec.mined_with, spec.sizes) == (("toy",), (1,))


def test_a_stand_in_takes_the_place_of_a_model_of_the_papers() -> None:
    models = {name: WeightVictim({}) for name in (LSTM, "MiniLM-L3", BERT)}
    assert RulesSpec.of(models=models, data=TEXTS, **SMALL).mined_with == (LSTM, "MiniLM-L3")
    chosen = RulesSpec.of(models=models, data=TEXTS, stand_ins={"BERT": BERT}, **SMALL)
    assert chosen.mined_with == (LSTM, BERT)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, test = write_csv(tmp_path / "train.csv", TRAINING), write_csv(tmp_path / "test.csv", TEXTS)
    (tmp_path / "toys.py").write_text(
        "from tests.studies.rules.toys import WORDS\nfrom tests.toys import WeightVictim\n"
        "first = WeightVictim(WORDS)\nsecond = WeightVictim(WORDS)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    words = [
        *("study", "rules", "python:toys:first", "python:toys:second", test, "--train-data", train),
        *("--source", "first", "--min-count", "1", "--out", "runs/rules"),
    ]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.exception is None, done.output
    assert "UAWR, 1 model fools" in done.output
    again = CliRunner().invoke(cli, ["resume", "runs/rules"], standalone_mode=False)
    assert again.exception is None, again.output
