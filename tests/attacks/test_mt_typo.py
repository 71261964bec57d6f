"""Misspelled sources: which word, which misspelling, and the list they come from."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.attacks.constraints import MaxEditDistance
from stockade.attacks.mt_typo import MtTypo, Noise, key_typo, natural_typo, shuffled_middle, shuffled_whole, swapped
from stockade.attacks.registry import make_attack
from stockade.core.errors import DataError, OptionError
from stockade.core.text import is_single_word
from stockade.lexicon.typos import key_neighbours, load_typos, read_typos
from tests.attacks.translating import attack
from tests.toy_translators import TableTranslator

TABLE = {"the": "der", "dog": "Hund", "is": "ist", "wearing": "trägt", "a": "einen", "hat": "Hut"}
SOURCE, REFERENCE = "the dog is wearing a hat", "der Hund ist trägt einen Hut"


def test_one_listed_word_is_misspelled_and_the_translation_is_worse() -> None:
    result = attack(TableTranslator(TABLE), SOURCE, MtTypo(), reference=REFERENCE)
    assert result.trial.status == "success"
    assert result.trial.text is not None
    (edit,) = result.trial.text.edits
    assert edit.after in load_typos("en")[edit.before]
    assert result.queries == 0  # nothing is searched for


def test_every_word_that_has_an_entry_is_chosen_as_often(tmp_path: Path) -> None:
    typos = tmp_path / "typos.txt"
    typos.write_text("dog dgo\nhat hta\nwearing waering\n", encoding="utf-8")
    counts: Counter[str] = Counter()
    for seed in range(300):
        trial = attack(TableTranslator(TABLE), SOURCE, MtTypo(typos=str(typos)), reference=REFERENCE, seed=seed).trial
        assert trial.text is not None
        counts[trial.text.edits[0].after] += 1
    assert set(counts) == {"dgo", "hta", "waering"}
    assert min(counts.values()) > 70


def test_a_sentence_without_such_a_word_stays_as_it_is() -> None:
    trial = attack(TableTranslator({}), "qqqq zzzz", MtTypo(), reference="qqqq zzzz").trial
    assert (trial.status, trial.reason) == ("failed", "no word can be misspelled that way")
    assert trial.text is None


def test_a_typo_that_does_no_harm_is_recorded_too() -> None:
    """The translator copies what it does not know: "hta" is translated as "hta" either way."""
    trial = attack(TableTranslator({}), "hat", MtTypo(), reference="nothing in common").trial
    assert trial.status == "failed"
    assert trial.text is not None
    assert trial.adversarial_translation == str(trial.text)


def test_several_words_within_what_may_change() -> None:
    both = attack(TableTranslator(TABLE), SOURCE, MtTypo(words=2, noise="full"), reference=REFERENCE).trial
    assert both.text is not None
    assert len(both.text.edits) == 2
    bound = attack(TableTranslator(TABLE), SOURCE, MtTypo(words=2, max_changed=0.2), reference=REFERENCE).trial
    assert bound.text is not None
    assert len(bound.text.edits) == 1
    none = attack(TableTranslator(TABLE), SOURCE, MtTypo(max_changed=0.1), reference=REFERENCE).trial
    assert none.reason == "the share of changed words does not allow even one"


def test_constraints_hold_and_articles_are_put_right(tmp_path: Path) -> None:
    assert attack(TableTranslator(TABLE), SOURCE, MtTypo(constraint=MaxEditDistance(0))).trial.text is None
    typos = tmp_path / "typos.txt"
    typos.write_text("hat ahat\n", encoding="utf-8")
    mended = attack(TableTranslator(TABLE), "a hat", MtTypo(typos=str(typos), repair_articles=True))
    assert mended.source == "an ahat"


@pytest.mark.parametrize("noise", ["swap", "middle", "full", "key"])
@given(st.text("abcdeXYZäß'", min_size=1, max_size=9), st.integers(0, 99))
def test_noise_keeps_what_it_says(noise: Noise, word: str, seed: int) -> None:
    if not is_single_word(word):
        return
    makers = {"swap": swapped, "middle": shuffled_middle, "full": shuffled_whole}
    rng = Random(seed)
    changed = key_typo(word, key_neighbours("qwerty"), rng) if noise == "key" else makers[noise](word, rng)
    if changed is None:
        assert noise != "full" or len(set(word)) == 1 or "'" in word
        return
    assert changed != word
    assert len(changed) == len(word)
    if noise == "key":
        assert [a.isupper() for a in changed] == [a.isupper() for a in word]
        assert sum(a != b for a, b in zip(word, changed, strict=True)) == 1
    else:
        assert sorted(changed) == sorted(word)
    if noise in ("swap", "middle"):
        assert (changed[0], changed[-1]) == (word[0], word[-1])
    if noise == "swap":
        assert sum(a != b for a, b in zip(word, changed, strict=True)) == 2


def test_short_words_have_no_middle() -> None:
    assert shuffled_middle("dog", Random(0)) is None
    assert swapped("dog", Random(0)) is None
    assert shuffled_middle("dood", Random(0)) is None


def test_keys_around_a_key() -> None:
    assert set(key_neighbours("qwerty")["g"]) == set("fhtyvb")
    assert "z" in key_neighbours("qwertz")["t"]
    assert "z" in key_neighbours("azerty")["a"]
    typed = {attack(TableTranslator({}), "A", MtTypo(noise="key"), seed=seed).source for seed in range(40)}
    assert typed == set("QWSZ")
    french = MtTypo(noise="key", keyboard="azerty")
    assert {attack(TableTranslator({}), "a", french, seed=seed).source for seed in range(40)} == set("zq")


def test_natural_typos_take_the_case_of_the_word() -> None:
    typos = {"the": ("teh",), "Anna": ("Ana",)}
    assert natural_typo("The", typos, Random(0)) == "Teh"
    assert natural_typo("THE", typos, Random(0)) == "TEH"
    assert natural_typo("Anna", typos, Random(0)) == "Ana"
    assert natural_typo("dog", typos, Random(0)) is None


def test_the_list_that_comes_with_the_package_is_sound() -> None:
    typos = load_typos("English")
    assert len(typos) > 500
    for word, misspellings in typos.items():
        assert word == word.lower()
        assert word not in misspellings
        assert all(is_single_word(typo) for typo in misspellings)


def test_a_list_is_read_as_it_is_published(tmp_path: Path) -> None:
    packed = tmp_path / "de.natural.gz"
    packed.write_bytes(gzip.compress(b"nichts nichst nihcts\n\nallein\nzwei zwo drei\n"))
    assert read_typos(str(packed)) == {"nichts": ("nichst", "nihcts"), "zwei": ("zwo", "drei")}


@pytest.mark.parametrize("content", [b"", b"alone\n", b"\xff\xfe\x00"])
def test_a_list_without_typos_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "typos.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"typos\.txt"):
        attack(TableTranslator({}), "a dog", MtTypo(typos=str(path)))


def test_a_missing_list_is_refused_before_anything_is_attacked() -> None:
    with pytest.raises(DataError, match="cannot be read as a list of typos"):
        make_attack("mt-typo:typos=nowhere.txt").described()


@pytest.mark.parametrize(("option", "column"), [("de", None), (None, "de"), ("Klingon", "en")])
def test_a_language_without_a_list_is_refused(option: str | None, column: str | None) -> None:
    with pytest.raises(OptionError, match=r"no list of natural typos for the language (de|Klingon) .*typos=FILE"):
        attack(TableTranslator({}), "ein Hund", MtTypo(language=option), language=column)
    assert attack(TableTranslator({}), "ein Hund", MtTypo(noise="full"), language="de").trial.text is not None


@pytest.mark.parametrize("options", ["words=0", "noise=loud", "noise=swap,typos=x", "keyboard=dvorak"])
def test_options_that_cannot_be_are_refused(options: str) -> None:
    with pytest.raises(OptionError):
        make_attack(f"mt-typo:{options}")
