"""Stand-ins for the files that the README and the docs speak of, small enough for a test."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from stockade.datasets.builtin import reviews
from stockade.lexicon.rules import Rule, RuleSet, write_rules
from stockade.models.translation.build import build_translator
from tests.docs.documents import ROOT

ROWS = 12
MODELS = ("my-bert", "bert", "lstm", "models/m", "models/cnn-mr", "models/lstm-mr", "models/minilm-trec")


def lay_out(folder: Path) -> None:
    """Write data, a function, model folders, word vectors, rules, a matrix and a translator, and link to the docs."""
    labels = ("negative", "positive")
    texts = [[review.text for review in reviews("test") if review.label == label][: ROWS // 2] for label in (0, 1)]
    labelled = [(text, label) for pair in zip(*texts, strict=True) for text, label in zip(pair, labels, strict=True)]
    for name in ("reviews.csv", "more.csv", "texts.csv", "mr.csv", "trec.csv"):
        _write_csv(folder / name, ("text", "label"), labelled)
    _write_csv(
        folder / "stars.csv", ("review", "stars"), [(text, "15"[label == "positive"]) for text, label in labelled]
    )
    mails = [("send me your money now", "spam"), ("see you for lunch", "ham")] * 3
    lines = [json.dumps({"text": text, "label": label}) for text, label in mails]
    (folder / "mails.jsonl").write_text("\n".join(lines), encoding="utf-8")
    vectors = [
        f"{word} {' '.join(str(index % (place + 2)) for index in range(100))}"
        for place, word in enumerate(("a", "the", "film"))
    ]
    for name in ("glove.6B.100d.txt", "glove.txt"):
        (folder / name).write_text("\n".join(vectors), encoding="utf-8")
    (folder / "syn.txt").write_text("a the\n", encoding="utf-8")
    (folder / "ant.txt").write_text("a film\n", encoding="utf-8")
    (folder / "my_package").mkdir()
    (folder / "my_package" / "my_module.py").write_text(
        "def predict(texts):\n    return [[0.2, 0.8] if 'money' in text else [0.7, 0.3] for text in texts]\n",
        encoding="utf-8",
    )
    for model in MODELS:
        shutil.copytree(ROOT / "src/stockade/artifacts/sentiment-cnn", folder / model)
    swaps = (("film", "movie"), ("movie", "film"), ("the", "this"), ("and", "also"))
    rules = [Rule(label, word, other, 1.0) for label in labels for word, other in swaps]
    write_rules(folder / "rules.jsonl", RuleSet(tuple(rules)))
    matrix = "source,bert,lstm,m\nbert,0.6,0.4,0.3\nlstm,0.4,0.6,0.3\nm,0.3,0.3,0.5\n"
    (folder / "matrix.csv").write_text(matrix, encoding="utf-8")
    pairs = [("a dog", "ein Hund"), ("a cat", "eine Katze"), ("a red dog", "ein roter Hund")] * 4
    _write_csv(folder / "pairs.csv", ("en", "de"), pairs)
    network, tokenizer = build_translator("bilstm-mt", pairs, options={"vocabulary": 300, "width": 16})
    network.save_pretrained(folder / "models/mt")
    tokenizer.save_pretrained(folder / "models/mt")
    shutil.copytree(folder / "models/mt", folder / "models/recurrent")
    (folder / "docs").symlink_to(ROOT / "docs")


def _write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
