"""How unexpected words are to a masked LM, against the network asked directly."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from stockade.engine.language import FillingService
from stockade.engine.requests import Surprisal
from stockade.models.masked_lm import MaskedLM
from tests.models.conftest import WORDS, tiny_tokenizer


@pytest.fixture(scope="module")
def network() -> BertForMaskedLM:
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, initializer_range=0.5, **sizes)
    return BertForMaskedLM(config).eval()


def language_model(network: BertForMaskedLM, maximum: int) -> MaskedLM:
    def hidden(ids: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        return network.bert(input_ids=ids, attention_mask=attention).last_hidden_state

    return MaskedLM(tiny_tokenizer(), hidden, network.cls, "tiny", maximum)


def test_a_word_is_the_mean_over_its_pieces_and_nothing_is_hidden(network: BertForMaskedLM) -> None:
    service = FillingService(lambda: language_model(network, 20))
    ids = tiny_tokenizer()("the films greatly .")["input_ids"]
    with torch.no_grad():
        logs = network(torch.tensor([ids])).logits[0].log_softmax(1)
    losses = [-float(logs[at, piece]) for at, piece in enumerate(ids)]
    the, film, s, great, ly, dot = losses[1:-1]
    short, found = service.answer_surprisals([Surprisal(("a",)), Surprisal(("the", "films", "greatly", "."))])
    assert found == pytest.approx((the, (film + s) / 2, (great + ly) / 2, dot), abs=1e-5)
    assert len(short) == 1


def test_words_that_the_model_does_not_read_have_no_weight(network: BertForMaskedLM) -> None:
    service = FillingService(lambda: language_model(network, 5))  # [CLS] the film ##s [SEP]
    (found,) = service.answer_surprisals([Surprisal(("the", "films", "was", "bad"))])
    assert found[0] > 0
    assert found[1] > 0
    assert found[2:] == (0.0, 0.0)


def test_the_same_text_is_computed_once(network: BertForMaskedLM) -> None:
    asked: list[int] = []

    class Counted(MaskedLM):
        def surprisals(self, texts, spans):  # type: ignore[no-untyped-def]
            asked.append(len(texts))
            return super().surprisals(texts, spans)

    inner = language_model(network, 20)
    service = FillingService(lambda: Counted(tiny_tokenizer(), inner._hidden, inner._head, "tiny", 20))
    first = service.answer_surprisals([Surprisal(("the", "film")), Surprisal(("the", "film"))])
    assert service.answer_surprisals([Surprisal(("the", "film"))])[0] == first[0] == first[1]
    assert asked == [1, 0]
