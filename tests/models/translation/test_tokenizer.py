"""The shared sub-word tokenizer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stockade.models.translation.tokenizer import SPECIAL, train_tokenizer
from tests.models.translation.kit import number_pairs

TEXTS = [side for pair in number_pairs(200) for side in pair]
TOKENIZER = train_tokenizer(TEXTS, 320, 512)


@given(st.text(max_size=30).map(str.lstrip))
def test_every_text_comes_back_from_its_tokens(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER(text)["input_ids"], skip_special_tokens=True) == _without_special(text)


def _without_special(text: str) -> str:
    for token in SPECIAL:
        text = text.replace(token, "")
    return text


def test_words_of_both_languages_are_pieces_and_every_text_ends() -> None:
    assert TOKENIZER.tokenize("one eins") == ["Ġone", "Ġeins"]
    assert TOKENIZER("one")["input_ids"][-1] == TOKENIZER.eos_token_id == 2
    assert TOKENIZER("")["input_ids"] == [2]
    assert TOKENIZER.pad_token_id == 0


def test_characters_never_seen_are_bytes_not_unknown() -> None:
    assert TOKENIZER.unk_token_id not in TOKENIZER("žluťoučký 😀")["input_ids"]


def test_the_same_texts_give_the_same_tokenizer_every_time() -> None:
    vocabularies = [train_tokenizer(TEXTS, 320, 512).backend_tokenizer.to_str() for _ in range(5)]
    assert len(set(vocabularies)) == 1
