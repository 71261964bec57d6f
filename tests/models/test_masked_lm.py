"""The default masked LM guesses sensibly, sees both sides, and scores the mask alone like the whole sequence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from stockade.core.errors import ModelError
from stockade.core.text import Text
from stockade.engine.language import FillingService
from stockade.engine.requests import Fill, WordProbabilities
from stockade.models.language import minilm_folder
from stockade.models.masked_lm import MaskedLM


@pytest.fixture(scope="module")
def default() -> MaskedLM:
    return MaskedLM.default("cpu")


def words(model: MaskedLM, before: str, after: str, count: int = 10) -> list[str]:
    (found,) = model.fill(model.encode([(before, after)]), count)
    return [filling.word for filling in found]


def test_it_guesses_what_people_would_write(default: MaskedLM) -> None:
    assert {"good", "great"} & set(words(default, "the movie was absolutely ", " ."))
    assert "playing" in words(default, "a man is ", " a guitar on stage .")
    assert {"rose", "fell", "closed"} & set(words(default, "stocks ", " on wall street on monday ."))


def test_scores_fall_and_padding_does_not_change_them(default: MaskedLM) -> None:
    places = default.encode([("a ", " film"), ("this is a much longer sentence about a ", " film and its music")])
    together = default.fill(places, 20)
    for place, found in zip(places, together, strict=True):
        (alone,) = default.fill([place], 20)
        assert [f.word for f in alone[:5]] == [f.word for f in found[:5]]
        assert [f.score for f in found] == sorted((f.score for f in found), reverse=True)
        assert [f.score for f in alone] == pytest.approx([f.score for f in found], abs=1e-4)


def test_a_long_text_is_cut_around_the_mask(default: MaskedLM) -> None:
    (place,) = default.encode([("left " * 2000, " right" * 2000)])
    assert len(place) == 512
    assert abs(place.mask - 256) <= 2
    (start,) = default.encode([("", " right" * 2000)])
    assert (len(start), start.mask) == (512, 1)


def test_pieces_and_special_tokens_are_marked(default: MaskedLM) -> None:
    (found,) = default.fill(default.encode([("the ", " .")]), 2000)
    assert any(not filling.whole for filling in found)
    assert all(filling.whole == (not filling.word.startswith(("##", "["))) for filling in found if filling.whole)


def test_a_masked_lm_of_ones_own_is_read_from_a_folder(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(minilm_folder())
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    network = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **size)).eval()
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = MaskedLM.from_pretrained(tmp_path, "cpu")
    (place,) = model.encode([("a great ", " of art")])
    (found,) = model.fill([place], 5)
    with torch.no_grad():
        logits = network(torch.tensor([place.ids])).logits[0, place.mask]
    assert [f.score for f in found] == pytest.approx(logits.topk(5).values.tolist(), abs=1e-4)


def test_what_is_no_masked_lm_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        MaskedLM.from_pretrained(tmp_path / "nothing")


def test_a_text_that_holds_a_mask_token_already_is_filled_at_its_own_place(default: MaskedLM) -> None:
    service = FillingService(lambda: default)
    text = Text.parse("ignore [MASK] and play a guitar")
    ((found,),) = service.answer([Fill([(text, len(text.words) - 1)], 5)])
    assert len(found) == 5
    ((again, other),) = service.answer([Fill([(text, len(text.words) - 1), (text, 0)], 5)])
    assert again is found
    assert other != found


def chances(model: MaskedLM, place: tuple[str, str], *asked: str) -> list[float]:
    service = FillingService(lambda: model)
    text = Text.parse(place[0] + "x" + place[1])
    ((found,),) = service.answer_word_probabilities([WordProbabilities([(text, len(Text.parse(place[0])), asked)])])
    return list(found)


def test_the_chance_of_a_word_is_its_share_of_all_tokens(default: MaskedLM) -> None:
    place = ("the movie was absolutely ", " .")
    (best,) = default.fill(default.encode([place]), len(default._words))
    scores = torch.tensor([filling.score for filling in best])
    total = scores.logsumexp(0).item()
    expected = {filling.word: filling.score - total for filling in best if filling.whole}
    found = chances(default, place, "terrible", "great", "guitar")
    assert found == pytest.approx([expected["terrible"], expected["great"], expected["guitar"]], abs=1e-3)
    assert found[1] > found[2]


def test_pieces_are_hidden_together_and_added_up(default: MaskedLM) -> None:
    tokenizer = default._places.tokenizer
    pieces = tokenizer("unwatchably", add_special_tokens=False)["input_ids"]
    assert len(pieces) > 1
    ids = tokenizer("a film . so bad", add_special_tokens=False)["input_ids"]
    row = [tokenizer.cls_token_id, *ids[:2], *[tokenizer.mask_token_id] * len(pieces), *ids[2:], tokenizer.sep_token_id]
    with torch.inference_mode():
        states = default._hidden(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.int64))[0]
        logs = default._head(states[3 : 3 + len(pieces)]).log_softmax(1)
    expected = sum(logs[at, piece].item() for at, piece in enumerate(pieces))
    found = chances(default, ("a film ", ". so bad"), "good", "unwatchably")
    assert found[1] == pytest.approx(expected, abs=1e-3)


def test_chances_on_a_text_as_long_as_the_window_fit(default: MaskedLM) -> None:
    found = chances(default, ("film " * 600, ""), "unwatchably", "good")
    assert all(chance < 0 for chance in found)
    assert default.encode_words(("a ", " film"), []) == []
