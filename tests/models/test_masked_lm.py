"""The default masked LM guesses sensibly, sees both sides, and scores the mask alone like the whole sequence; how
unexpected words are, against the network asked directly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from stockade.core.errors import ModelError
from stockade.core.text import Text
from stockade.engine.language import FillingService
from stockade.engine.requests import Fill, Surprisal, WordProbabilities
from stockade.models.language import minilm_folder
from stockade.models.masked_lm import MaskedLM
from tests.models.conftest import WORDS, tiny_tokenizer


def words(model: MaskedLM, before: str, after: str, count: int = 10) -> list[str]:
    (fillings,) = model.fill(model.encode([(before, after)]), count)
    return [filling.word for filling in fillings]


def test_it_guesses_what_people_would_write(default_masked_lm: MaskedLM) -> None:
    assert {"good", "great"} & set(words(default_masked_lm, "the movie was absolutely ", " ."))
    assert "playing" in words(default_masked_lm, "a man is ", " a guitar on stage .")
    assert {"rose", "fell", "closed"} & set(words(default_masked_lm, "stocks ", " on wall street on monday ."))


def test_scores_fall_and_padding_does_not_change_them(default_masked_lm: MaskedLM) -> None:
    places = default_masked_lm.encode(
        [("a ", " film"), ("this is a much longer sentence about a ", " film and its music")]
    )
    together = default_masked_lm.fill(places, 20)
    for place, fillings in zip(places, together, strict=True):
        (alone,) = default_masked_lm.fill([place], 20)
        assert [f.word for f in alone[:5]] == [f.word for f in fillings[:5]]
        assert [f.score for f in fillings] == sorted((f.score for f in fillings), reverse=True)
        assert [f.score for f in alone] == pytest.approx([f.score for f in fillings], abs=1e-4)


def test_a_long_text_is_cut_around_the_mask(default_masked_lm: MaskedLM) -> None:
    (place,) = default_masked_lm.encode([("left " * 2000, " right" * 2000)])
    assert len(place) == 512
    assert abs(place.mask - 256) <= 2
    (start,) = default_masked_lm.encode([("", " right" * 2000)])
    assert (len(start), start.mask) == (512, 1)


def test_pieces_and_special_tokens_are_marked(default_masked_lm: MaskedLM) -> None:
    (fillings,) = default_masked_lm.fill(default_masked_lm.encode([("the ", " .")]), 2000)
    assert any(not filling.whole for filling in fillings)
    assert not any(filling.word.startswith(("##", "[")) for filling in fillings if filling.whole)


def test_another_masked_lm_is_read_from_a_folder(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(minilm_folder())
    size: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    network = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **size)).eval()
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = MaskedLM.from_pretrained(tmp_path, "cpu")
    (place,) = model.encode([("a great ", " of art")])
    (fillings,) = model.fill([place], 5)
    with torch.no_grad():
        logits = network(torch.tensor([place.ids])).logits[0, place.mask]
    assert [f.score for f in fillings] == pytest.approx(logits.topk(5).values.tolist(), abs=1e-4)


def test_what_is_no_masked_lm_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        MaskedLM.from_pretrained(tmp_path / "nothing")


def test_a_text_that_holds_a_mask_token_already_is_filled_at_its_own_place(default_masked_lm: MaskedLM) -> None:
    service = FillingService(lambda: default_masked_lm)
    text = Text.parse("ignore [MASK] and play a guitar")
    ((fillings,),) = service.answer([Fill([(text, len(text.words) - 1)], 5)])
    assert len(fillings) == 5
    ((again, other),) = service.answer([Fill([(text, len(text.words) - 1), (text, 0)], 5)])
    assert again is fillings
    assert other != fillings


def log_probabilities(model: MaskedLM, place: tuple[str, str], *candidates: str) -> list[float]:
    service = FillingService(lambda: model)
    text = Text.parse(place[0] + "x" + place[1])
    request = WordProbabilities([(text, len(Text.parse(place[0])), candidates)])
    ((logs,),) = service.answer_word_probabilities([request])
    return list(logs)


def test_the_probability_of_a_word_is_its_share_of_all_tokens(default_masked_lm: MaskedLM) -> None:
    place = ("the movie was absolutely ", " .")
    (best,) = default_masked_lm.fill(default_masked_lm.encode([place]), len(default_masked_lm._words))
    scores = torch.tensor([filling.score for filling in best])
    total = scores.logsumexp(0).item()
    expected = {filling.word: filling.score - total for filling in best if filling.whole}
    logs = log_probabilities(default_masked_lm, place, "terrible", "great", "guitar")
    assert logs == pytest.approx([expected["terrible"], expected["great"], expected["guitar"]], abs=1e-3)
    assert logs[1] > logs[2]


def test_pieces_are_hidden_together_and_added_up(default_masked_lm: MaskedLM) -> None:
    tokenizer = default_masked_lm._places.tokenizer
    pieces = tokenizer("unwatchably", add_special_tokens=False)["input_ids"]
    assert len(pieces) > 1
    ids = tokenizer("a film . so bad", add_special_tokens=False)["input_ids"]
    row = [tokenizer.cls_token_id, *ids[:2], *[tokenizer.mask_token_id] * len(pieces), *ids[2:], tokenizer.sep_token_id]
    with torch.inference_mode():
        states = default_masked_lm._hidden(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.int64))[0]
        at_masks = default_masked_lm._head(states[3 : 3 + len(pieces)]).log_softmax(1)
    expected = sum(at_masks[at, piece].item() for at, piece in enumerate(pieces))
    logs = log_probabilities(default_masked_lm, ("a film ", ". so bad"), "good", "unwatchably")
    assert logs[1] == pytest.approx(expected, abs=1e-3)


def test_words_fit_into_a_text_as_long_as_the_window(default_masked_lm: MaskedLM) -> None:
    logs = log_probabilities(default_masked_lm, ("film " * 600, ""), "unwatchably", "good")
    assert all(log < 0 for log in logs)
    assert default_masked_lm.encode_words(("a ", " film"), []) == []


@pytest.fixture(scope="module")
def network() -> BertForMaskedLM:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, initializer_range=0.5, **sizes)
    return BertForMaskedLM(config).eval()


def language_model(network: BertForMaskedLM, maximum: int) -> MaskedLM:
    def hidden(ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        return network.bert(input_ids=ids, attention_mask=attention).last_hidden_state

    return MaskedLM(tiny_tokenizer(), hidden, network.cls, name="tiny", maximum=maximum)


def test_a_word_is_the_mean_over_its_pieces_and_nothing_is_hidden(network: BertForMaskedLM) -> None:
    service = FillingService(lambda: language_model(network, 20))
    ids = tiny_tokenizer()("the films greatly .")["input_ids"]
    with torch.no_grad():
        logs = network(torch.tensor([ids])).logits[0].log_softmax(1)
    losses = [-float(logs[at, piece]) for at, piece in enumerate(ids)]
    the, film, s, great, ly, dot = losses[1:-1]
    short, surprisals = service.answer_surprisals([Surprisal(("a",)), Surprisal(("the", "films", "greatly", "."))])
    assert surprisals == pytest.approx((the, (film + s) / 2, (great + ly) / 2, dot), abs=1e-5)
    assert len(short) == 1


def test_words_that_the_model_does_not_read_have_no_weight(network: BertForMaskedLM) -> None:
    service = FillingService(lambda: language_model(network, 5))  # [CLS] the film ##s [SEP]
    (surprisals,) = service.answer_surprisals([Surprisal(("the", "films", "was", "bad"))])
    assert surprisals[0] > 0
    assert surprisals[1] > 0
    assert surprisals[2:] == (0.0, 0.0)


def test_the_same_text_is_computed_once(network: BertForMaskedLM) -> None:
    computed: list[int] = []

    class Counted(MaskedLM):
        def surprisals(self, texts, spans):  # type: ignore[no-untyped-def]
            computed.append(len(texts))
            return super().surprisals(texts, spans)

    inner = language_model(network, 20)
    service = FillingService(lambda: Counted(tiny_tokenizer(), inner._hidden, inner._head, name="tiny", maximum=20))
    first = service.answer_surprisals([Surprisal(("the", "film")), Surprisal(("the", "film"))])
    assert service.answer_surprisals([Surprisal(("the", "film"))])[0] == first[0] == first[1]
    assert computed == [1]
