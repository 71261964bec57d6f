from __future__ import annotations

import pytest

from stockade.attacks.bae import BAE
from stockade.attacks.word_attack import article_for, repaired
from stockade.core.text import Text
from tests.attacks.driving import attack
from tests.toys import BagEncoder, ListMaskedLM, WeightVictim


@pytest.mark.parametrize(
    ("article", "words"),
    [
        (
            "an",
            "apple hour honest heirloom NFL umbrella urgent uninformed unimpressive unidentified usher 8 18th onerous",
        ),
        ("a", "film house union university unique useful European one one-off once ewe utility 9 BBC UFO uranium FUN"),
    ],
)
def test_the_article_goes_by_the_sound(article: str, words: str) -> None:
    wrong = [word for word in words.split() if article_for(word) != article]
    assert not wrong


@pytest.mark.parametrize(
    ("before", "index", "word", "after"),
    [
        ("a good film", 1, "awful", "an awful film"),
        ("An odd film", 1, "good", "A good film"),
        ("A good film", 1, "odd", "An odd film"),
        ("a apple pie", 1, "orange", "a orange pie"),
        ("the good film", 1, "awful", "the awful film"),
        ("a, good film", 1, "awful", "a, awful film"),
        ("plan a odd", 0, "scheme", "scheme a odd"),
    ],
)
def test_an_article_is_repaired_where_the_new_word_made_it_wrong(
    before: str, index: int, word: str, after: str
) -> None:
    text = Text.parse(before)
    assert str(repaired(text.replace(index, word), text, index)) == after


def test_insertions_on_both_sides_are_repaired() -> None:
    text = Text.parse("it was a film")
    assert str(repaired(text.insert_before(3, "awful"), text, 3)) == "it was an awful film"
    assert str(repaired(text.insert_after(2, "awful"), text, 2)) == "it was an awful film"
    assert str(repaired(text.insert_before(2, "quite"), text, 2)) == "it was quite a film"


def test_an_attack_repairs_articles_when_asked_and_counts_them() -> None:
    victim = WeightVictim({"good": 1.0}, bias=-0.5)
    mlm = ListMaskedLM({"a": ["awful"]})

    def run(**options: object) -> object:
        method = BAE(mode="R", threshold=0.0, same_pos=False, **options)  # type: ignore[arg-type]
        return attack(victim, "a good film we saw", method, masked_lm=mlm, encoder=BagEncoder())

    assert str(run().trial.text) == "a awful film we saw"  # type: ignore[attr-defined]
    mended = run(repair_articles=True).trial.text  # type: ignore[attr-defined]
    assert str(mended) == "an awful film we saw"
    assert len(mended.edits) == 2
    assert run(repair_articles=True, max_changed=0.2).trial.status == "failed"  # type: ignore[attr-defined]
