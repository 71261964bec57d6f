"""Chains, ways, the mean of answers, pre-made files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stockade.core.errors import DataError, OptionError
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.chain import save_defenses
from stockade.defenses.defended import Defended
from stockade.defenses.registry import make_defense
from stockade.engine.composite import make_scoring
from stockade.engine.requests import Draw, Score
from stockade.engine.scheduler import innermost
from stockade.evaluation.averaged import Averaged
from stockade.evaluation.chains import parse_chains
from stockade.evaluation.grid import folder_names
from stockade.evaluation.premade import load_premade
from stockade.evaluation.ways import lets_vote, twin_of, views
from stockade.jobs import ModelOptions
from stockade.models.language import LanguageModels
from tests.evaluation.kit import Hiding, Noisy, Shielding, victim
from tests.toys import RandomVictim

TEXT = Text.parse("a film")


def test_a_mean_is_of_the_answers_that_the_same_choices_give() -> None:
    noisy = Defended(name="noisy", defense=Noisy(), inner=victim())
    service = make_scoring(Averaged(noisy, 4))
    found = service.answer_scores([Score([TEXT], draw=Draw(7, 0))])
    search = derive_seed(7, 0)
    numbers = [np.random.default_rng(derive_seed(0, "noisy", derive_seed(search, at))).uniform(0, 1) for at in range(4)]
    assert len(set(numbers)) == 4
    assert isinstance(found[0], list)
    assert found[0][0].probabilities[1] == pytest.approx(np.mean(numbers))


def test_a_mean_of_many_answers_is_steadier() -> None:
    noisy = Defended(name="noisy", defense=Noisy(), inner=victim())
    inputs = [f"film {number}" for number in range(60)]
    one = Averaged(noisy, 1).predict_proba(inputs)[:, 1]
    many = Averaged(noisy, 25).predict_proba(inputs)[:, 1]
    assert one.shape == many.shape == (60,)
    assert np.std(many) < np.std(one) / 3
    assert not Averaged(noisy, 25).deterministic
    with pytest.raises(OptionError, match="0 draws"):
        Averaged(noisy, 0)


@pytest.mark.usefixtures("toy_defenses")
def test_chains_are_read_from_the_outside_in() -> None:
    bare, both, own = parse_chains(["hiding+ranmask:rate=0.3,combine=vote", "none", "own"])
    assert (bare.name, bare.references) == ("none", ("none",))
    assert both.references == ("hiding", "ranmask:rate=0.3,combine=vote")
    assert own.references == ()
    (_, single) = parse_chains(["hiding+ranmask:mask=a+b+shielding-not"])
    assert single.references == ("hiding", "ranmask:mask=a+b+shielding-not")
    assert [chain.name for chain in parse_chains([])] == ["none"]
    for wrong in ("hiding+", "+hiding", "own+hiding", ""):
        with pytest.raises(OptionError, match="is not made of defenses"):
            parse_chains([wrong])
    with pytest.raises(OptionError, match='no defense "nothing"'):
        parse_chains(["hiding+nothing"])


def test_what_a_folder_says_is_a_column_of_its_own(tmp_path: Path) -> None:
    save_defenses(tmp_path, [make_defense("ranmask", rate=0.4)])
    (bare, own) = parse_chains([], [str(tmp_path), "builtin:sentiment-cnn"])
    assert (bare.name, own.name) == ("none", "own")
    options, language = ModelOptions(defenses=own.references), LanguageModels()
    made = own.around(victim(), str(tmp_path), options, 0, language)
    assert isinstance(made, Defended)
    assert made.defense == make_defense("ranmask", rate=0.4).defense
    with pytest.raises(OptionError, match="names no defense"):
        own.around(victim(), "builtin:sentiment-cnn", options, 0, language)
    save_defenses(tmp_path, [make_defense("freelb")])
    assert [chain.name for chain in parse_chains([], [str(tmp_path)])] == ["none"], "asked, it is the bare model"
    assert [chain.name for chain in parse_chains([], ["builtin:sentiment-cnn"])] == ["none"]


def test_the_ways_of_a_chain() -> None:
    language = LanguageModels()
    bare = victim()
    assert list(views(bare, 5, language)) == ["direct"]
    hiding = Defended(name="hiding", defense=Hiding(), inner=bare)
    assert list(views(hiding, 5, language)) == ["direct", "expectation", "twin", "transfer"]
    assert "expectation" not in views(hiding, 1, language)
    assert list(views(Defended(name="shielding", defense=Shielding(), inner=bare), 5, language)) == [
        "direct",
        "transfer",
    ]
    nested = Defended(name="shielding", defense=Shielding(), inner=hiding)
    twin = twin_of(nested)
    assert twin is not None
    assert isinstance(twin.inner, Defended)
    assert twin.inner.defense == Hiding("probability")
    assert views(nested, 5, language)["transfer"] is innermost(nested) is bare
    assert twin_of(Defended(name="hiding", defense=Hiding("probability"), inner=bare)) is None
    assert lets_vote(hiding)
    assert lets_vote(nested)
    assert not lets_vote(twin)
    assert not lets_vote(bare)


def test_folders_stay_different() -> None:
    assert folder_names(["a:x=1", "a/x=1", "..", "a+b,c"]) == ["a-x=1", "a-x=1-2", "part", "a-b-c"]


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, content: str) -> Path:
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


def test_exports_give_their_successes(file: Callable[[str, str], Path]) -> None:
    rows = [
        '{"id": "0", "status": "success", "label": "negative", "original": "a", "adversarial": "a bda film"}',
        '{"id": "1", "status": "failed", "label": "positive", "original": "b", "adversarial": null}',
        '{"id": "2", "status": "failed", "label": "positive", "original": "b", "adversarial": "closest"}',
    ]
    source = load_premade(file("run.jsonl", "\n".join(rows)))
    assert [(row.text, row.premise, row.label) for row in source.rows()] == [("a bda film", None, "negative")]


def test_pairs_keep_their_premise(file: Callable[[str, str], Path]) -> None:
    row = '{"status": "success", "label": "entailment", "adversarial": "a dgo", "premise": "a dog runs"}'
    (found,) = load_premade(file("run.jsonl", row)).rows()
    assert (found.text, found.premise) == ("a dgo", "a dog runs")


def test_tables_of_other_tools_lose_their_brackets(file: Callable[[str, str], Path]) -> None:
    content = (
        "original_text,perturbed_text,ground_truth_output,result_type\n"
        "a [[bad]] film,a [[bda]] film,0.0,Successful\n"
        "a good film,a good film,1.0,Skipped\n"
    )
    (found,) = load_premade(file("log.csv", content)).rows()
    assert (found.text, found.label) == ("a bda film", 0)


def test_a_column_named_result_says_which_are_successes(file: Callable[[str, str], Path]) -> None:
    content = "original,perturbed,label,result\na bad film,a bda film,0,Successful\na fine film,a fnie film,1,Failed\n"
    (found,) = load_premade(file("log.csv", content)).rows()
    assert found.text == "a bda film"


def test_plain_data_are_taken_whole(file: Callable[[str, str], Path]) -> None:
    rows = list(load_premade(file("plain.csv", "text,label\nbda film,0\ngodo film,1\n")).rows())
    assert [(row.text, row.label) for row in rows] == [("bda film", 0), ("godo film", 1)]


def test_columns_that_were_named_for_the_data_count_where_the_file_has_them(file: Callable[[str, str], Path]) -> None:
    named = {"text_column": "said", "label_column": "meant", "premise_column": None}
    table = file("own.csv", "number,said,meant\n7,bda film,0\n8,godo film,1\n")
    assert [row.input for row in load_premade(table, named).rows()] == ["bda film", "godo film"]
    other = file("plain.csv", "text,label\nbda film,0\n")
    assert [row.input for row in load_premade(other, named).rows()] == ["bda film"]
    changed = file("changed.csv", "adversarial,meant\nbda film,0\n")
    assert [(row.input, row.label) for row in load_premade(changed, named).rows()] == [("bda film", 0)]


def test_files_without_successes_or_labels_are_refused(file: Callable[[str, str], Path]) -> None:
    with pytest.raises(DataError, match="said to be a success"):
        load_premade(file("none.csv", "perturbed_text,label,result_type\nbad film,0,Failed\n"))
    with pytest.raises(DataError, match="no true labels"):
        load_premade(file("bare.csv", "original_text,perturbed_text\na bad film,a bda film\n"))


def test_an_expectation_is_over_as_many_draws_as_were_asked_for() -> None:
    language = LanguageModels("a-masked-lm", "an-encoder")
    hiding = Defended(name="hiding", defense=Hiding(), inner=victim())
    assert views(hiding, 7, language)["expectation"] == Averaged(hiding, 7, language)


def test_a_mean_of_answers_to_a_pair_is_of_the_pair() -> None:
    model = RandomVictim(classes=2)
    pair = ("a premise", "a film")
    assert Averaged(model, 2).predict_proba([pair])[0] == pytest.approx(model.predict_proba([pair])[0])
