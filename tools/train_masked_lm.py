"""Trains the default masked LM: LoRA and a new head on the packaged MiniLM, from public text.

    python tools/train_masked_lm.py train OUT --minutes 60 --text FILE… [--start ADAPTER] [--threads 2]
    python tools/train_masked_lm.py measure ADAPTER --text FILE… [--pieces]
    python tools/train_masked_lm.py fills ADAPTER

FILE is text, one line each, or JSON lines (also gzipped) of which every string field is read. Give train splits only;
the measurement wants held-out text. Training may be repeated: `--start` goes on from an earlier adapter. An adapter
is written every few minutes, whole or not at all.

What is trained: rank-16 changes of all 36 linear layers, the layer norms, one input vector for the mask token, and a
head (dense, layer norm, vocabulary bias, one output scale) tied to the frozen word embeddings. Two things differ from
BERT's recipe, because there is little time and attacks ask for content words: a position is masked with probability
0.30 if its word is a content word and 0.12 if it is a function word or punctuation, and a word of several pieces is
masked as one token and not predicted, as attacks do it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoTokenizer, BertForMaskedLM

from stockade.lexicon.stopwords import is_stop_word
from stockade.models.language import minilm_folder
from stockade.models.lora import Adapter, LoraLinear, add_lora, load_adapter, save_adapter, trained_adapter

RANK, SCALE = 16, 2.0
LAYERS = r"(query|key|value|dense)$"
LENGTH, ROWS = 64, 32
CONTENT_RATE, OTHER_RATE = 0.30, 0.12
PEAK, WARM_UP = 1.5e-3, 60
SAVE_EVERY = 300.0
REPLACED = ("cls.predictions.transform", "cls.predictions.bias")
SENTENCES = (
    "the movie was absolutely _ .",
    "a man is _ a guitar on stage .",
    "stocks _ on wall street on monday .",
    "the service was slow and the food was _ .",
    "she gave a _ performance in the lead role .",
    "we waited an hour for our _ .",
    "the company said profits _ in the third quarter .",
    "two children are _ in the park .",
    "i would not _ this film to anyone .",
    "what is the _ of france ?",
)
MARKUP = re.compile(r"<[^>]{1,40}>")


class MaskedMiniLM(nn.Module):
    """MiniLM with adapters and a head; logits are computed at the chosen positions only."""

    def __init__(self, start: Path | None) -> None:
        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        self.bert = BertForMaskedLM.from_pretrained(minilm_folder()).eval()  # no dropout: too little time to overfit
        encoder_layers = rf"^bert\.encoder.*{LAYERS}"
        add_lora(self.bert, encoder_layers, RANK, SCALE)
        words = self.bert.bert.embeddings.word_embeddings.weight
        self.mask_vector = nn.Parameter(words[self.tokenizer.mask_token_id].detach().clone())
        self.output_scale = nn.Parameter(torch.tensor(1.0))
        head = self.bert.cls.predictions
        with torch.no_grad():
            head.transform.dense.weight.copy_(torch.eye(len(head.transform.dense.weight)))
            head.transform.dense.bias.zero_()
            head.bias.zero_()
        for name, parameter in self.bert.named_parameters():
            if "LayerNorm" in name or name.startswith(REPLACED):
                parameter.requires_grad_(True)
        if start is not None:
            self._load(start)

    def _load(self, path: Path) -> None:
        adapter = load_adapter(path)
        layers = {name: layer for name, layer in self.bert.named_modules() if isinstance(layer, LoraLinear)}
        ratio = adapter.scale / SCALE
        with torch.no_grad():
            for name, (a, b) in adapter.deltas.items():
                layers[name].a.copy_(a.float())
                layers[name].b.copy_(b.float() * ratio)
            own = dict(self.bert.named_parameters())
            own |= {"mask_vector": self.mask_vector, "output_scale": self.output_scale}
            for name, tensor in adapter.replaced.items():
                own[name].copy_(tensor.float())

    def adapter(self) -> Adapter:
        norms = [name for name, p in self.bert.named_parameters() if "LayerNorm" in name and p.requires_grad]
        found = trained_adapter(self.bert, (*REPLACED, *norms))
        replaced = {name: tensor for name, tensor in found.replaced.items() if "decoder" not in name}
        replaced |= {"mask_vector": self.mask_vector.detach(), "output_scale": self.output_scale.detach()}
        return Adapter(found.deltas, replaced, found.scale)

    def forward(self, ids: Tensor, attention: Tensor, chosen: Tensor) -> Tensor:
        words = self.bert.bert.embeddings.word_embeddings.weight
        masked = (ids == self.tokenizer.mask_token_id).unsqueeze(-1)
        embedded = torch.where(masked, self.mask_vector, functional.embedding(ids, words))
        hidden = self.bert.bert(inputs_embeds=embedded, attention_mask=attention).last_hidden_state[chosen]
        head = self.bert.cls.predictions
        logits: Tensor = head.transform(hidden) @ words.t() * self.output_scale + head.bias
        return logits


@dataclass(frozen=True)
class Vocabulary:
    """Which token ids are content words, and which continue a word."""

    content: Tensor
    continues: Tensor

    @classmethod
    def of(cls, tokenizer: object) -> Vocabulary:
        tokens: list[str] = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))  # type: ignore[attr-defined, arg-type]
        content = [token.isalpha() and len(token) > 2 and not is_stop_word(token) for token in tokens]
        return cls(torch.tensor(content), torch.tensor([token.startswith("##") for token in tokens]))


def read_lines(path: Path) -> Iterator[str]:
    """The texts of a file, without markup."""
    opened = gzip.open if path.suffix == ".gz" else open
    json_lines = ".json" in path.name
    with opened(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            texts = [value for value in json.loads(line).values() if isinstance(value, str)] if json_lines else [line]
            yield from (MARKUP.sub(" ", text).strip() for text in texts)


def batches(texts: list[str], tokenizer: object, rng: random.Random) -> Iterator[list[list[int]]]:
    """Endless batches of like lengths, texts cut into stretches of up to LENGTH tokens."""
    pool: list[list[int]] = []
    while True:
        rng.shuffle(texts)
        for at in range(0, len(texts), 512):
            encoded = tokenizer(texts[at : at + 512], add_special_tokens=False)  # type: ignore[operator]
            for ids in encoded["input_ids"]:
                start = 0
                while len(ids) - start >= 6:
                    length = rng.choice((LENGTH - 2, LENGTH - 2, 40, 24))
                    pool.append(ids[start : start + length])
                    start += length
            rng.shuffle(pool)
            while len(pool) >= 8 * ROWS:
                window, pool = sorted(pool[: 8 * ROWS], key=len), pool[8 * ROWS :]
                for k in rng.sample(range(8), 8):
                    yield window[k * ROWS : (k + 1) * ROWS]


def mask_batch(
    rows: Sequence[list[int]],
    tokenizer: object,
    vocabulary: Vocabulary,
    rates: tuple[float, float],
    any_piece: bool = False,
) -> tuple[Tensor, ...]:
    """Padded ids with masks, attention, the predicted positions and their true ids; words of several pieces are not
    hidden unless any piece may be.
    """
    width = max(map(len, rows)) + 2
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for row, tokens in enumerate(rows):
        line = [tokenizer.cls_token_id, *tokens, tokenizer.sep_token_id]  # type: ignore[attr-defined]
        ids[row, : len(line)] = torch.tensor(line)
    attention = (ids != 0).long()
    special = (ids == tokenizer.cls_token_id) | (ids == tokenizer.sep_token_id) | (ids == 0)  # type: ignore[attr-defined]
    pieces = vocabulary.continues[ids]
    begins_long_word = torch.zeros_like(pieces)
    begins_long_word[:, :-1] = pieces[:, 1:] & ~pieces[:, :-1]
    rate = torch.where(vocabulary.content[ids], rates[0], rates[1])
    chosen = (torch.rand(ids.shape) < rate) & ~special
    if not any_piece:
        chosen &= ~pieces & ~begins_long_word
    return ids.masked_fill(chosen, tokenizer.mask_token_id), attention, chosen, ids[chosen]  # type: ignore[attr-defined]


@torch.no_grad()
def measure(model: MaskedMiniLM, texts: Sequence[str], *, any_piece: bool = False, seed: int = 0) -> dict[str, float]:
    """Top-1 and top-5 over all and over content words; 15 % of the whole words are hidden, or of all pieces."""
    torch.manual_seed(seed)
    vocabulary = Vocabulary.of(model.tokenizer)
    cut = {"truncation": True, "max_length": LENGTH - 2}
    encoded = model.tokenizer(list(texts), add_special_tokens=False, **cut)["input_ids"]
    hits: dict[str, list[Tensor]] = {"all_top1": [], "all_top5": [], "content_top1": [], "content_top5": []}
    for at in range(0, len(encoded), ROWS):
        ids, attention, chosen, gold = mask_batch(
            encoded[at : at + ROWS], model.tokenizer, vocabulary, (0.15, 0.15), any_piece
        )
        right = model(ids, attention, chosen).topk(5).indices == gold[:, None]
        content = vocabulary.content[gold]
        for name, rows in (("all", right), ("content", right[content])):
            hits[f"{name}_top1"].append(rows[:, 0])
            hits[f"{name}_top5"].append(rows.any(1))
    return {name: round(torch.cat(parts).float().mean().item(), 4) for name, parts in hits.items()}


@torch.no_grad()
def fills(model: MaskedMiniLM) -> str:
    """A table of the first guesses for sentences of our own."""
    lines = ["| sentence | guesses |", "|---|---|"]
    for sentence in SENTENCES:
        encoded = model.tokenizer(sentence.replace("_", model.tokenizer.mask_token), return_tensors="pt")
        masked = encoded["input_ids"] == model.tokenizer.mask_token_id
        best = model(encoded["input_ids"], encoded["attention_mask"], masked).topk(8).indices[0]
        lines.append(f"| {sentence} | {', '.join(model.tokenizer.convert_ids_to_tokens(best.tolist()))} |")
    return "\n".join(lines)


def train(
    model: MaskedMiniLM, texts: list[str], held_out: list[str], minutes: float, peak: float, out: Path, seed: int
) -> None:
    torch.manual_seed(seed)
    rng = random.Random(seed)
    vocabulary = Vocabulary.of(model.tokenizer)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=peak, weight_decay=0.0, betas=(0.9, 0.98))
    started = saved = time.monotonic()
    tokens = 0
    for step, rows in enumerate(batches(texts, model.tokenizer, rng)):
        done = (time.monotonic() - started) / (60 * minutes)
        if done >= 1:
            break
        rate = peak * min(1.0, (step + 1) / WARM_UP) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        ids, attention, chosen, gold = mask_batch(rows, model.tokenizer, vocabulary, (CONTENT_RATE, OTHER_RATE))
        loss = functional.cross_entropy(model(ids, attention, chosen), gold)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        tokens += int(attention.sum())
        if time.monotonic() - saved > SAVE_EVERY:
            saved = time.monotonic()
            write(model, out)
            figures = measure(model, held_out)
            print(f"{done:.0%} step {step} tokens {tokens:,} loss {loss.item():.3f} {figures}", flush=True)
    write(model, out)
    print(f"end: tokens {tokens:,} {measure(model, held_out)}", flush=True)


def write(model: MaskedMiniLM, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_suffix(".part")
    save_adapter(model.adapter(), temporary)
    temporary.replace(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("train", "measure", "fills"))
    parser.add_argument("adapter", type=Path, help="train: where to write; measure: what to measure")
    parser.add_argument("--text", type=Path, nargs="+", default=[])
    parser.add_argument("--pieces", action="store_true", help="measure on any piece, not on whole words alone")
    parser.add_argument("--start", type=Path, help="go on from this adapter")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--peak", type=float, default=PEAK, help="highest learning rate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lines", type=int, default=400, help="held-out lines to measure on")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.task == "fills":
        print(fills(MaskedMiniLM(options.adapter)))
        return
    if not options.text:
        parser.error("--text is missing")
    texts = [text for path in options.text for text in read_lines(path) if text]
    random.Random(options.seed).shuffle(texts)
    if options.task == "measure":
        print(json.dumps(measure(MaskedMiniLM(options.adapter), texts[: options.lines], any_piece=options.pieces)))
        return
    model = MaskedMiniLM(options.start)
    held_out, rest = texts[: options.lines], texts[options.lines :]
    train(model, rest, held_out, options.minutes, options.peak, options.adapter, options.seed)


if __name__ == "__main__":
    main()
