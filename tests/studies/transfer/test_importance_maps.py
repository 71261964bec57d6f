"""Maps of the importance of words, and families of models that look at few words or at many."""

from __future__ import annotations

import pytest

from stockade.report.document import Document
from stockade.studies.transfer.importance_maps import analyse_spread, make_map
from stockade.studies.transfer.importance_page import word_blocks
from stockade.studies.transfer.word_importance import Importances, SubstituteDrops

FOCUSED, EVEN = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0)


def importances(drops: tuple[float, ...], count: int = 30, *, right: bool = True) -> list[Importances]:
    return [Importances(str(number), right, drops) for number in range(count)]


def family(name: str) -> str:
    return name[0]


def test_families_are_compared_text_by_text() -> None:
    measured = {"b1": importances(EVEN), "b2": importances(EVEN), "w1": importances(FOCUSED), "w2": importances(EVEN)}
    spread = analyse_spread(measured, family, ("b", "c"))
    assert spread is not None
    assert (spread.texts, {name: value["value"] for name, value in spread.models.items()}) == (
        30,
        {"b1": 1.0, "b2": 1.0, "w1": 0.0, "w2": 1.0},
    )
    assert list(spread.families) == ["b"]  # there is no model of the other family
    entry = spread.families["b"]
    assert (entry.models, entry.others, entry.texts) == (2, 2, 30)
    assert (entry.spread, entry.others_spread, entry.difference["value"]) == (1.0, 0.5, 0.5)
    assert entry.p is not None
    assert entry.p < 0.01


def test_a_difference_that_goes_both_ways_is_chance() -> None:
    turns = [Importances(str(number), True, EVEN if number % 2 else FOCUSED) for number in range(30)]
    spread = analyse_spread({"b": turns, "w": importances((1.0, 1.0, 0.0, 0.0))}, family, ("b",))
    assert spread is not None
    assert spread.families["b"].difference["value"] == 0.0
    assert spread.families["b"].p == 1.0


def test_texts_that_a_model_gets_wrong_do_not_count() -> None:
    assert analyse_spread({"b": importances(EVEN, right=False), "w": []}, family, ("b",)) is None
    spread = analyse_spread({"b": importances(EVEN, 1), "w": importances(EVEN, right=False)}, family, ("b",))
    assert spread is not None
    entry = spread.families["b"]
    assert (entry.texts, entry.spread, entry.p) == (0, None, None)


def test_the_word_that_matters_most_to_the_mean_and_has_several_substitutes() -> None:
    drops = {"a": (0.1, 3.0, 0.5, None), "b": (0.3, 1.0, 0.9, 0.2)}
    rows = {name: Importances("7", True, row) for name, row in drops.items()}
    known = {
        "a": SubstituteDrops(
            "7", {1: {"x": 0.5}, 0: {"p": 0.1, "q": 0.2, "r": 0.3}, 2: {"p": 1.0, "q": None, "r": 2.0}}
        ),
    }
    entry = make_map("7", "positive", ("one", "two", "three", "four"), rows, known)
    assert (entry.replaced, entry.substitutes) == (2, ("p", "q", "r"))
    assert entry.drops == ((1.0, None, 2.0), (None, None, None))
    few = make_map(
        "7",
        "positive",
        ("one", "two"),
        {"a": Importances("7", True, (0.1, 3.0))},
        {"a": SubstituteDrops("7", {1: {"x": 0.5}})},
    )
    assert (few.replaced, few.substitutes, few.drops) == (1, ("x",), ((0.5,),))
    none = make_map("7", "positive", ("one", "two"), {"a": Importances("7", True, (0.1, 3.0))}, {})
    assert (none.replaced, none.substitutes, none.drops) == (None, (), ((),))


def test_maps_and_spreads_on_a_page() -> None:
    measured = {"BERT": importances(EVEN), "CNN-W-GloVe-1": importances(FOCUSED)}
    spread = analyse_spread(measured, lambda name: "BERT" if name == "BERT" else "", ("BERT",))
    rows = {name: texts[0] for name, texts in measured.items()}
    known = {name: SubstituteDrops("0", {0: {"sad": 0.25}}) for name in measured}
    entry = make_map("0", "positive", ("glad", "b", "c", "d"), rows, known)
    document = Document(title="t", blocks=tuple(word_blocks(spread, [entry], "chosen by hand")))
    page, markdown = document.to_html(), document.to_markdown()
    assert "BERT (1 model) against the other 1" in markdown
    assert "chosen by hand" in markdown
    assert "| BERT | 1.00 | 1.00 | 1.00 | 1.00 |" in markdown
    assert "Substitutes for “glad”" in markdown
    assert 'title="BERT → sad: 0.25"' in page
    assert page.count("<svg") == 1
    assert tuple(word_blocks(None, (), "")) == ()


@pytest.mark.parametrize("count", [0, 1])
def test_one_text_has_no_test(count: int) -> None:
    spread = analyse_spread({"b": importances(EVEN, 1), "w": importances(FOCUSED, count)}, family, ("b",))
    assert spread is not None
    assert spread.families["b"].p is None
