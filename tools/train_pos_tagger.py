"""Make `artifacts/pos_tagger.npz`: a small linear tagger taught by spaCy's small English pipeline.

    label REVIEWS.csv TEACHER clean.txt.gz                                 # needs spaCy; about 6 minutes
    label REVIEWS.csv TEACHER swapped.txt.gz --limit 4500 --swap 0.15      # the same reviews with words replaced
    train clean.txt.gz swapped.txt.gz src/stockade/artifacts/pos_tagger.npz         # needs torch; about 6 minutes
    measure clean.txt.gz [--textblob]                                      # needs neither

train_pos_tagger.md beside this file names the packages and the figures that `measure` printed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import random
import re
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stockade.lexicon.pos import PENN_TO_UNIVERSAL, Tagger, letter_ids, load_tagger, universal_tag, window_ids
from stockade.lexicon.wordnet import load_wordnet

LETTER_BUCKETS, WINDOW_BUCKETS = 1 << 15, 1 << 17
LETTER_EPOCHS, WINDOW_EPOCHS = 30, 3
STEP = 0.15  # of a weight, in nats
DOUBT = 3.0  # nats by which the best tag of a word alone must lead to be its only class
SHRINK = 1e-7  # pull of window weights to zero, for a small file
HELD_OUT = 500  # reviews; they come in the order of a hash of their text
LOWER_CASED = 0.6
CONTENT = ("NOUN", "VERB", "ADJ", "ADV")
Sentence = tuple[list[str], list[str]]

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
CLITIC = re.compile(r"^(?:['’]\w+|n['’]t)$", re.IGNORECASE)


def read_reviews(path: Path) -> list[str]:
    """The distinct IMDB reviews of the csv file, without their line-break markup."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row["text"] for row in csv.DictReader(file) if row["source"] == "imdb"]
    return list(dict.fromkeys(re.sub(r"<br\s*/?>", " ", text).strip() for text in rows))


def word_tag(word: str, tokens: list[tuple[str, str]]) -> str:
    """One tag for a word of several tokens: the first one's ("don't", "film's"), or the last part's of "well-made"."""
    spoken = [(text, tag) for text, tag in tokens if any(map(str.isalnum, text))]
    if not spoken:
        return tokens[0][1]
    if "-" not in word:
        return spoken[0][1]
    return [tag for text, tag in spoken if not CLITIC.match(text)][-1]


def swap_words(text: str, share: float, vocabulary: list[str], rng: random.Random) -> tuple[str, set[int]]:
    """The text with a share of its words replaced, and the places (character offsets) where that was done.

    Half of the replacements are WordNet synonyms, as attacks put them in; half are any word of the vocabulary, so that
    the student learns what its teacher says of a word that does not fit ("a slowly film").
    """
    parts: list[str] = []
    swapped: set[int] = set()
    size = at = 0
    for match in WORD.finditer(text):
        word = match.group()
        if rng.random() >= share:
            continue
        names = load_wordnet().synonyms(word) if rng.random() < 0.5 else (rng.choice(vocabulary),)
        if not names or not all(part.isalpha() for name in names for part in name.split("-")):
            continue
        new = rng.choice(names)
        new = new.capitalize() if word[0].isupper() else new
        parts += [text[at : match.start()], new]
        size += match.start() - at
        swapped.add(size)
        size, at = size + len(new), match.end()
    return "".join([*parts, text[at:]]), swapped


def label(reviews: Path, teacher: Path, target: Path, limit: int, swap: float) -> None:
    """Write a sentence per line as `word/TAG word/TAG …` (`word/TAG*`: swapped in), an empty line after a review."""
    import spacy  # type: ignore[import-not-found,unused-ignore]

    pipeline = spacy.load(teacher, exclude=["parser", "ner", "lemmatizer", "attribute_ruler"])
    pipeline.enable_pipe("senter")
    texts = read_reviews(reviews)
    texts.sort(key=lambda text: zlib.crc32(text.encode()))
    found = Counter(word.lower() for text in texts for word in WORD.findall(text) if word.isalpha())
    vocabulary = sorted(word for word, count in found.items() if count >= 50)
    rng = random.Random(3)
    changed = (swap_words(text, swap, vocabulary, rng) for text in texts[:limit])
    count = 0
    with gzip.open(target, "wt", encoding="utf-8") as out:
        for document, swapped in pipeline.pipe(changed, as_tuples=True, batch_size=64):
            for sentence in document.sents:
                words = []
                for match in WORD.finditer(sentence.text):
                    first, last = sentence.start_char + match.start(), sentence.start_char + match.end()
                    tokens = [(t.text, t.tag_) for t in sentence if t.idx < last and t.idx + len(t) > first]
                    tag = word_tag(match.group(), tokens)
                    words.append(f"{match.group()}/{tag}{'*' if first in swapped else ''}")
                if words:
                    out.write(" ".join(words) + "\n")
                    count += len(words)
            out.write("\n")
    print(f"{count} words")


def read_labelled(path: Path) -> list[list[Sentence]]:
    """Reviews as lists of sentences, a sentence as (words, tags), the tag of a swapped word still with its star."""
    reviews: list[list[Sentence]] = [[]]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            pairs = [pair.rpartition("/") for pair in line.split()]
            if pairs:
                reviews[-1].append(([word for word, _, _ in pairs], [tag for _, _, tag in pairs]))
            else:
                reviews.append([])
    return [review for review in reviews if review]


def cut_pieces(reviews: list[list[Sentence]], rng: random.Random) -> Iterator[Sentence]:
    """Runs of one or more sentences, because users tag single sentences and whole reviews; 60 % of runs lower-cased."""
    for review in reviews:
        rest = list(review)
        while rest:
            size = 1
            while rng.random() < 0.4:
                size += 1
            words = [word for sentence in rest[:size] for word in sentence[0]]
            tags = [tag.rstrip("*") for sentence in rest[:size] for tag in sentence[1]]
            rest = rest[size:]
            yield ([word.lower() for word in words] if rng.random() < LOWER_CASED else words), tags


def train_letters(pieces: list[Sentence], tags: list[str]) -> NDArray[np.float32]:
    """First layer: soft-max regression of a word's tag counts on its letters, one row per spelling.

    Now and then a rare spelling hides its whole-word features, so that endings learn to speak for unknown words.
    """
    import torch

    number = {tag: i for i, tag in enumerate(tags)}
    seen: dict[str, Counter[int]] = defaultdict(Counter)
    for words, labels in pieces:
        for word, tag in zip(words, labels, strict=True):
            if tag in number:
                seen[word][number[tag]] += 1
    counts = torch.zeros(len(seen), len(tags))
    ids = torch.full((len(seen), 20), LETTER_BUCKETS)
    for row, (word, found) in enumerate(seen.items()):
        features = torch.from_numpy(letter_ids(word, LETTER_BUCKETS))
        ids[row, : len(features)] = features
        for tag_number, count in found.items():
            counts[row, tag_number] = count
    total = counts.sum(1)
    importance, target = total**0.75, counts / total[:, None]
    table = torch.nn.EmbeddingBag(LETTER_BUCKETS + 1, len(tags), mode="sum", padding_idx=LETTER_BUCKETS)
    torch.nn.init.zeros_(table.weight)
    optimizer = torch.optim.Adagrad(table.parameters(), lr=0.3)
    generator = torch.Generator().manual_seed(1)
    for epoch in range(LETTER_EPOCHS):
        order, losses = torch.randperm(len(ids), generator=generator), []
        for batch in order.split(4096):
            rows = ids[batch].clone()
            hide = torch.rand(len(batch), generator=generator) < 1 / (1 + total[batch].sqrt())
            rows[:, [0, 2]] = torch.where(hide[:, None], LETTER_BUCKETS, rows[:, [0, 2]])
            logs = torch.log_softmax(table(rows), dim=1)
            loss = -(importance[batch] * (target[batch] * logs).sum(1)).sum() / importance[batch].sum()
            loss = loss + 1e-6 * table.weight.square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        if epoch % 5 == 4:
            print(f"letters, epoch {epoch + 1}: loss {np.mean(losses):.4f}", flush=True)
    weights: NDArray[np.float32] = table.weight.detach().numpy()[:LETTER_BUCKETS]
    return weights


def train_window(pieces: list[Sentence], draft: Tagger) -> NDArray[np.float32]:
    """Second layer: soft-max regression on the window's features, on top of the fixed scores of the first."""
    import torch

    number = {tag: i for i, tag in enumerate(draft.tags)}
    labels = torch.tensor([number.get(tag, -100) for _, tags in pieces for tag in tags])
    ids = np.concatenate([window_ids(draft.windows(words), WINDOW_BUCKETS).astype(np.int32) for words, _ in pieces])
    spellings: dict[str, int] = {}
    rows = torch.tensor([spellings.setdefault(word, len(spellings)) for words, _ in pieces for word in words])
    alone = torch.from_numpy(np.array([draft.alone(word) for word in spellings])).float() * STEP
    table = torch.nn.EmbeddingBag(WINDOW_BUCKETS, len(draft.tags), mode="sum")
    torch.nn.init.zeros_(table.weight)
    optimizer = torch.optim.Adagrad(table.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(2)
    for epoch in range(WINDOW_EPOCHS):
        losses, started = [], time.time()
        for batch in torch.randperm(len(labels), generator=generator).split(8192):
            scores = table(torch.from_numpy(ids[batch.numpy()])) + alone[rows[batch]]
            loss = torch.nn.functional.cross_entropy(scores, labels[batch])
            optimizer.zero_grad()
            (loss + SHRINK * table.weight.abs().sum()).backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        print(f"window, epoch {epoch + 1}: loss {np.mean(losses):.4f} ({time.time() - started:.0f} s)", flush=True)
    weights: NDArray[np.float32] = table.weight.detach().numpy()
    return weights


def quantise(weights: NDArray[np.float32]) -> NDArray[np.int8]:
    """Weights in steps of STEP, so that both tables add up as integers."""
    return np.clip(np.round(weights / STEP), -127, 127).astype(np.int8)


def train(labelled: list[Path], target: Path) -> None:
    """Train both layers on all but the held-out reviews and write the artifact."""
    import torch

    torch.set_num_threads(1)
    reviews = [review for path in labelled for review in read_labelled(path)[HELD_OUT:]]
    pieces = list(cut_pieces(reviews, random.Random(0)))
    found = Counter(tag for _, tags in pieces for tag in tags)
    tags = sorted(tag for tag, count in found.items() if count >= 50 and PENN_TO_UNIVERSAL.get(tag, ".") != ".")
    print(f"{len(reviews)} reviews, {sum(found.values())} words, {len(tags)} tags: {' '.join(tags)}", flush=True)
    letters = quantise(train_letters(pieces, tags))
    empty = np.zeros((WINDOW_BUCKETS, len(tags)), dtype=np.int8)
    doubt = round(DOUBT / STEP)
    window = quantise(train_window(pieces, Tagger(tags, letters, empty, doubt)))
    np.savez_compressed(target, tags=np.array(tags), letters=letters, window=window, doubt=np.int32(doubt))
    content = target.read_bytes()
    print(f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


def agreement(pairs: Iterable[tuple[str, str]]) -> str:
    """Shares of (our tag, teacher's tag) that agree: Penn, universal, universal on the teacher's content words."""
    clean = [(ours, theirs.rstrip("*")) for ours, theirs in pairs]
    both = [(ours, theirs, universal_tag(ours), universal_tag(theirs)) for ours, theirs in clean]
    content = [a == b for _, _, a, b in both if b in CONTENT]
    penn, universal = (np.mean([row[i] == row[i + 1] for row in both]) for i in (0, 2))
    return f"{len(both)} words, Penn {penn:.4f}, universal {universal:.4f}, content words {np.mean(content):.4f}"


def measure(labelled: Path, textblob: bool) -> None:
    """Print the agreement with the teacher on the held-out reviews."""
    taggers = {"ours": load_tagger().tag}
    if textblob:
        from textblob.en import tag as pattern_tag  # type: ignore[import-not-found,unused-ignore]

        taggers["textblob"] = lambda words: [tag for _, tag in pattern_tag(" ".join(words), tokenize=False)]
    reviews = read_labelled(labelled)[:HELD_OUT]
    sentences = [sentence for review in reviews for sentence in review]
    whole = [([w for s in review for w in s[0]], [t for s in review for t in s[1]]) for review in reviews]
    for name, tagger in taggers.items():
        for unit, pieces in (("sentence", sentences), ("review", whole)):
            for case, change in (("lower", str.lower), ("as written", str)):
                rows: list[tuple[str, str, str]] = []
                for words, tags in pieces:
                    rows += zip(words, tagger([change(word) for word in words]), tags, strict=True)
                plain = [(ours, tag) for word, ours, tag in rows if word.isalnum()]  # textblob cuts other words
                swapped = [(ours, tag) for _, ours, tag in rows if tag.endswith("*")]
                every = [(ours, tag) for _, ours, tag in rows]
                for kind, pairs in (("all words", every), ("plain words", plain), ("swapped words", swapped)):
                    if pairs:
                        print(f"{name}, by {unit}, {case}, {kind}: {agreement(pairs)}")


def main() -> None:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description="Make Stockade's part-of-speech tagger.")
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("label", help="tag reviews with the teacher")
    step.set_defaults(run=label)
    step.add_argument("reviews", type=Path)
    step.add_argument("teacher", type=Path)
    step.add_argument("target", type=Path)
    step.add_argument("--limit", type=int, default=10_000)
    step.add_argument("--swap", type=float, default=0.0, help="share of words to replace")
    step = steps.add_parser("train", help="train on labelled reviews")
    step.set_defaults(run=train)
    step.add_argument("labelled", type=Path, nargs="+")
    step.add_argument("target", type=Path)
    step = steps.add_parser("measure", help="agreement with the teacher on held-out reviews")
    step.set_defaults(run=measure)
    step.add_argument("labelled", type=Path)
    step.add_argument("--textblob", action="store_true")
    options = vars(parser.parse_args())
    options.pop("run")(**options)


if __name__ == "__main__":
    main()
