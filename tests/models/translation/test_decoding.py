"""Greedy and beam search: against plain loops, exhaustive search, and `generate` of transformers."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from stockade.core.errors import ModelError
from stockade.models.translation.common import DecoderCache
from stockade.models.translation.decoding import DecodingRules, beam_search, greedy_search, rules_of
from tests.models.translation.kit import ARCHITECTURES, number_pairs, tiny_translator

SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "max_position_embeddings": 128,
    "init_std": 1.0,
}


def tiny_network(kind: str) -> Any:
    """A randomly initialised model of transformers."""
    torch.manual_seed(1)
    model: Any
    special: dict[str, Any]
    if kind == "marian":
        special = {"pad_token_id": 39, "eos_token_id": 0, "decoder_start_token_id": 39, "forced_eos_token_id": 0}
        model = MarianMTModel(MarianConfig(**SIZES, **special))
        model.generation_config = GenerationConfig(**special, bad_words_ids=[[39]])
    elif kind == "bart":
        special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
        model = BartForConditionalGeneration(BartConfig(**SIZES, **special))
        model.generation_config = GenerationConfig(
            **special, forced_bos_token_id=0, forced_eos_token_id=2, no_repeat_ngram_size=3, min_length=4
        )
    else:
        special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
        sizes: dict[str, Any] = {
            "vocab_size": 40,
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 16,
            "num_layers": 1,
            "num_heads": 2,
        }
        model = T5ForConditionalGeneration(T5Config(**sizes, **special, initializer_factor=8.0))
    return model.eval()


def random_sources(rows: int, pad: int, vocabulary: int = 40) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 9, (rows, 1), generator=generator)
    ids = torch.randint(3, vocabulary - 1, (rows, 9), generator=generator)
    mask = (torch.arange(9) < lengths).long()
    return {"input_ids": ids.masked_fill(mask == 0, pad), "attention_mask": mask}


@pytest.mark.parametrize("kind", ["marian", "bart", "t5"])
def test_greedy_search_gives_what_generate_gives_for_100_sentences(kind: str) -> None:
    model = tiny_network(kind)
    rules = rules_of(model)
    sources = random_sources(100, model.config.pad_token_id)
    ours = greedy_search(model, model.get_encoder()(**sources), sources["attention_mask"], rules)
    for row, limit in enumerate(rules.limits(sources["attention_mask"]).tolist()):
        length = int(sources["attention_mask"][row].sum())
        alone = {name: tensor[row : row + 1, :length] for name, tensor in sources.items()}
        theirs = model.generate(**alone, num_beams=1, do_sample=False, max_new_tokens=limit)[0, 1:].tolist()
        assert ours[row] == theirs
    assert len(set(map(len, ours))) > 3  # sentences that end at different steps leave the batch at different times


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_search_gives_what_a_plain_loop_without_cache_gives(architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    rules, sources = rules_of(model), [source for source, _ in number_pairs(20, seed=5)]
    batch = tokenizer(sources, padding=True, return_tensors="pt")
    ours = greedy_search(model, model.get_encoder()(**batch), batch["attention_mask"], rules)
    for source, tokens in zip(sources, ours, strict=True):
        alone = tokenizer(source, return_tensors="pt")
        written, limit = [rules.start], int(rules.limits(alone["attention_mask"]))
        while len(written) <= limit and written[-1] not in rules.ends:
            logits = model(**alone, decoder_input_ids=torch.tensor([written])).logits
            written.append(int(logits[0, -1].argmax()))
        assert tokens == written[1:]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_beam_of_one_is_greedy(architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    rules = rules_of(model)
    batch = tokenizer([source for source, _ in number_pairs(10, seed=2)], padding=True, return_tensors="pt")
    encoded, mask = model.get_encoder()(**batch), batch["attention_mask"]
    greedy = greedy_search(model, encoded, mask, rules)
    narrow = beam_search(model, encoded, mask, rules, 1, length_penalty=0.0)
    # A beam search ends every sentence, also at its limit; greedy search is cut off there.
    assert [list(hypothesis.tokens[:-1]) for hypothesis in narrow] == [tokens[:-1] for tokens in greedy]


def plain_beam_search(model: Any, alone: Any, rules: DecodingRules, beam: int, limit: int) -> tuple[int, ...]:
    """The same search for one sentence with lists and without a cache: slow, and easy to believe."""
    going: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for step in range(1, limit + 1):
        rows = torch.tensor([[rules.start, *tokens] for _, tokens in going])
        inputs = {name: value.expand(len(going), -1) for name, value in alone.items()}
        steps = model(**inputs, decoder_input_ids=rows).logits[:, -1].log_softmax(1)
        longer = [
            (total + value, (*tokens, token))
            for (total, tokens), row in zip(going, steps.tolist(), strict=True)
            for token, value in enumerate(row)
            if step < limit or token in rules.ends
        ]
        best = sorted(longer, reverse=True)[: 2 * beam]
        ending = [hypothesis for hypothesis in best[:beam] if hypothesis[1][-1] in rules.ends]
        finished += ending[: beam - len(finished)]
        going = [hypothesis for hypothesis in best if hypothesis[1][-1] not in rules.ends][:beam]
        if len(finished) == beam or not going:
            break
    return max(finished)[1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.inference_mode()
def test_wide_beams_give_what_a_plain_search_without_cache_gives(architecture: str) -> None:
    model, tokenizer = tiny_translator(architecture)
    rules, sources = rules_of(model), [source for source, _ in number_pairs(6, seed=2)]
    batch = tokenizer(sources, padding=True, return_tensors="pt")
    wide = beam_search(model, model.get_encoder()(**batch), batch["attention_mask"], rules, 4, length_penalty=0.0)
    for source, hypothesis in zip(sources, wide, strict=True):
        alone = tokenizer(source, return_tensors="pt")
        limit = int(rules.limits(alone["attention_mask"]))
        assert hypothesis.tokens == plain_beam_search(model, alone, rules, 4, limit)


class Chain:
    """A decoder whose next token depends on the last one alone: a table of probabilities."""

    def __init__(self, table: list[list[float]]) -> None:
        self.table = torch.tensor(table).log()

    def __call__(self, decoder_input_ids: Tensor, **_: Any) -> Seq2SeqLMOutput:
        output: Any = Seq2SeqLMOutput(logits=self.table[decoder_input_ids])  # type: ignore[arg-type]
        output.past_key_values = DecoderCache()
        return output


# Tokens: 0 ends, 1 starts, 2 and 3 are words. Greedy takes 2 (0.5), then ends with 0.4; 3 (0.4) ends with 0.9.
TABLE = [[0.25, 0.25, 0.25, 0.25], [0.1, 1e-9, 0.5, 0.4], [0.4, 1e-9, 0.3, 0.3], [0.9, 1e-9, 0.05, 0.05]]


def one_source() -> tuple[BaseModelOutput, Tensor]:
    return BaseModelOutput(last_hidden_state=torch.zeros(1, 1, 1)), torch.ones(1, 1, dtype=torch.long)  # type: ignore[arg-type]


def test_beam_search_finds_what_greedy_search_misses() -> None:
    rules = DecodingRules(start=1, ends=(0,), longest=4)
    encoded, mask = one_source()
    assert greedy_search(Chain(TABLE), encoded, mask, rules) == [[2, 0]]
    (best,) = beam_search(Chain(TABLE), encoded, mask, rules, 3, length_penalty=0.0)
    assert best.tokens == (3, 0)
    assert best.log_probability == pytest.approx(torch.tensor(0.4 * 0.9).log().item(), abs=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_beam_search_of_a_large_beam_is_exhaustive(penalty: float) -> None:
    rules = DecodingRules(start=1, ends=(0,), longest=4)
    encoded, mask = one_source()
    (best,) = beam_search(Chain(TABLE), encoded, mask, rules, 200, penalty)

    def score(tokens: tuple[int, ...]) -> float:
        pairs = zip((1, *tokens[:-1]), tokens, strict=True)
        return sum(float(torch.tensor(TABLE[a][b]).log()) for a, b in pairs) / len(tokens) ** penalty

    every = [(*words, 0) for length in range(4) for words in product((1, 2, 3), repeat=length)]
    assert best.tokens == max(every, key=score)
    assert best.score == pytest.approx(score(best.tokens), abs=1e-5)


def test_translations_end_at_the_limit_of_their_own_source() -> None:
    rules = DecodingRules(start=1, ends=(0,), longest=1000)
    endless = [[0.25] * 4, [0.1, 0.1, 0.4, 0.4], [0.01, 0.01, 0.9, 0.08], [0.01, 0.01, 0.9, 0.08]]
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    encoded: Any = BaseModelOutput(last_hidden_state=torch.zeros(2, 3, 1))  # type: ignore[arg-type]
    assert list(map(len, greedy_search(Chain(endless), encoded, mask, rules))) == [26, 22]
    ended = beam_search(Chain(endless), encoded, mask, rules, 2, length_penalty=9.0)
    assert all(hypothesis.tokens[-1] == 0 for hypothesis in ended)


def test_network_that_does_not_say_how_it_begins_is_refused() -> None:
    model = tiny_network("t5")
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    model.config.bos_token_id = model.generation_config.bos_token_id = None
    with pytest.raises(ModelError, match="decoder_start_token_id"):
        rules_of(model)
