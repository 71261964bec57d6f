"""One small victim for each adapter, made on the spot: all of them take "great" for good news and "bad" for bad."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.models.onnx_kit import make_folder
from tests.services.server import Server, chat_answer, running

TEXTS = ("a great film", "a bad film", "the film was great and not bad", "great great", "film")
LABELLED = [(text, int("great" in text)) for text in TEXTS]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model of one adapter, and what may be expected of it.

    Parameters
    ----------
    reference
        How a user names it.
    other
        Another model of the same adapter, which must have another fingerprint.
    absent
        A reference to a model that is not there.
    options
        What `st.load_model` needs besides.
    reads_pairs
        Whether it reads a premise and a hypothesis; otherwise it must refuse them in one sentence.
    tolerance
        How much a row may move with its batch.
    names_classes
        Whether `labels` may rename its classes; otherwise they are refused in one sentence.
    absent_options
        The options for the model that is not there, if they are others.
    """

    reference: object
    other: object
    absent: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reads_pairs: bool = False
    tolerance: float = 1e-12
    names_classes: bool = True
    absent_options: Mapping[str, Any] | None = None


def builtin(folder: Path) -> Case:
    return Case(
        reference="builtin:sentiment-cnn",
        other="builtin:sentiment-lstm",
        absent="builtin:sentiment-none",
        reads_pairs=True,
        tolerance=1e-5,
    )


def huggingface(folder: Path) -> Case:
    for name, hidden in (("first", 16), ("second", 8)):
        tiny_bert_of(hidden).save_pretrained(folder / name)
        tiny_tokenizer().save_pretrained(folder / name)
    return Case(
        reference=str(folder / "first"),
        other=str(folder / "second"),
        absent=str(folder / "third"),
        reads_pairs=True,
        tolerance=1e-5,
    )


def tiny_bert_of(hidden: int) -> Any:
    return tiny_bert() if hidden == 16 else tiny_bert(classifier_dropout=0.5)


def python(folder: Path) -> Case:
    return Case(
        reference="python:tests.models.contract.victims:predict",
        other="python:tests.models.contract.victims:predict_otherwise",
        absent="python:tests.models.contract.victims:predict_nothing",
        options={"labels": ["negative", "positive"]},
        reads_pairs=True,
    )


def python_labels(folder: Path) -> Case:
    return Case(
        reference="python:tests.models.contract.victims:name",
        other="python:tests.models.contract.victims:name_otherwise",
        absent="python:tests.models.contract.none:name",
        options={"labels": ["negative", "positive"], "outputs": "labels"},
        reads_pairs=True,
    )


def ensemble(folder: Path) -> Case:
    members = "python:tests.models.contract.victims:{},python:tests.models.contract.victims:predict_otherwise"
    return Case(
        reference="ensemble:" + members.format("predict"),
        other="ensemble:" + members.format("predict_otherwise"),
        absent="ensemble:" + members.format("predict_nothing"),
        options={"labels": ["negative", "positive"]},
        reads_pairs=True,
    )


def fitted(model: Any) -> Any:
    """A pipeline of word counts and a model, fitted to the texts."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    names = ["negative", "positive"]
    return make_pipeline(CountVectorizer(), model).fit(list(TEXTS), [names[label] for _, label in LABELLED])


def sklearn(folder: Path) -> Case:
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    from sklearn.linear_model import LogisticRegression

    for name, strength in (("first", 1.0), ("second", 2.0)):
        io.dump(fitted(LogisticRegression(C=strength)), folder / f"{name}.skops")
    return _of_files(folder, "skops")


def sklearn_margins(folder: Path) -> Case:
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    from sklearn.svm import LinearSVC

    for name, strength in (("first", 1.0), ("second", 2.0)):
        io.dump(fitted(LinearSVC(C=strength)), folder / f"{name}.skops")
    return _of_files(folder, "skops")


def sklearn_pickle(folder: Path) -> Case:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    from sklearn.naive_bayes import MultinomialNB

    for name, smoothing in (("first", 1.0), ("second", 2.0)):
        joblib.dump(fitted(MultinomialNB(alpha=smoothing)), folder / f"{name}.joblib")
    return _of_files(folder, "joblib", allow_pickle=True)


def _of_files(folder: Path, ending: str, **options: Any) -> Case:
    paths = [f"sklearn:{folder / name}.{ending}" for name in ("first", "second", "third")]
    return Case(reference=paths[0], other=paths[1], absent=paths[2], options=options)


def onnx(folder: Path) -> Case:
    return _of_networks(folder)


def onnx_quantised(folder: Path) -> Case:
    return _of_networks(folder, quantised=True)


def _of_networks(folder: Path, **network: Any) -> Case:
    first, second = (make_folder(folder / name, scale=scale, **network) for name, scale in (("a", 1.0), ("b", 2.0)))
    return Case(
        reference=f"onnx:{first}",
        other=f"onnx:{second}",
        absent=f"onnx:{folder / 'c'}",
        reads_pairs=True,
        tolerance=1e-6,
    )


def http(folder: Path) -> Case:
    server = running(Server())
    return Case(
        reference=server.url,
        other=server.url.replace("/predict", "/other"),
        absent="http://127.0.0.1:9/predict",
        options={"labels": ["negative", "positive"], "allow_private": True},
        reads_pairs=True,
        absent_options={
            "labels": ["negative", "positive"],
            "allow_private": True,
            "settings": {"retries": 1, "backoff": 0.01},
        },
    )


def https(folder: Path) -> Case:
    """Without a certificate of its own the test has no server to ask with encryption: the adapter is the same."""
    return http(folder)


def chat(folder: Path) -> Case:
    server = running(Server(chat_answer(logprobs=True)))
    return _of_chat(server, {})


def chat_labels(folder: Path) -> Case:
    server = running(Server(chat_answer(logprobs=False)))
    return _of_chat(server, {"logprobs": "off"})


def _of_chat(server: Server, settings: Mapping[str, Any]) -> Case:
    options = {"labels": ["negative", "positive"], "allow_private": True}
    base = server.url.removesuffix("/predict")
    return Case(
        reference=f"chat:{base}/v1#small",
        other=f"chat:{base}/v1#large",
        absent="chat:http://127.0.0.1:9/v1#small",
        options={**options, "settings": dict(settings)},
        names_classes=False,
        absent_options={**options, "settings": {**settings, "retries": 1, "backoff": 0.01}},
    )


def zero_shot(folder: Path) -> Case:
    names = {0: "contradiction", 1: "neutral", 2: "entailment"}
    for name, seed in (("a", 0), ("b", 0.1)):
        tiny_bert(num_labels=3, id2label=names, classifier_dropout=seed).save_pretrained(folder / name)
        tiny_tokenizer().save_pretrained(folder / name)
    return Case(
        reference=f"zero-shot:{folder / 'a'}",
        other=f"zero-shot:{folder / 'b'}",
        absent=f"zero-shot:{folder / 'c'}",
        options={"labels": ["bad", "great"], "settings": {"hypothesis": "the film was {label}"}},
        tolerance=1e-5,
        names_classes=False,
    )


def spacy(folder: Path) -> Case:
    library = pytest.importorskip("spacy", reason="spacy is not installed")
    from spacy.training import Example

    for name, rounds in (("a", 8), ("b", 9)):
        library.util.fix_random_seed(0)
        pipeline = library.blank("en")
        words = {"@architectures": "spacy.TextCatBOW.v3", "exclusive_classes": True, "ngram_size": 1}
        part = pipeline.add_pipe("textcat", config={"model": {**words, "no_output_layer": False, "length": 1024}})
        for label in ("negative", "positive"):
            part.add_label(label)
        cats = [{"negative": float(not good), "positive": float(good)} for _, good in LABELLED]
        examples = [
            Example.from_dict(pipeline.make_doc(text), {"cats": row}) for text, row in zip(TEXTS, cats, strict=True)
        ]
        optimizer = pipeline.initialize(lambda: examples)  # noqa: B023
        for _ in range(rounds):
            pipeline.update(examples, sgd=optimizer)
        pipeline.to_disk(folder / name)
    return Case(
        reference=f"spacy:{folder / 'a'}", other=f"spacy:{folder / 'b'}", absent=f"spacy:{folder / 'c'}", tolerance=1e-5
    )


def fasttext(folder: Path) -> Case:
    library = pytest.importorskip("fasttext", reason="fasttext is not installed")
    rows = [f"__label__{'positive' if good else 'negative'} {text}" for text, good in LABELLED]
    (folder / "train.txt").write_text("\n".join(rows * 5))
    for name, rounds in (("a", 10), ("b", 11)):
        model = library.train_supervised(str(folder / "train.txt"), epoch=rounds, dim=4, thread=1, verbose=0, lr=0.5)
        model.save_model(str(folder / f"{name}.bin"))
    return Case(
        reference=f"fasttext:{folder / 'a.bin'}",
        other=f"fasttext:{folder / 'b.bin'}",
        absent=f"fasttext:{folder / 'c.bin'}",
    )


CASES: Mapping[str, Callable[[Path], Case]] = {
    "builtin": builtin,
    "huggingface": huggingface,
    "python": python,
    "python-labels": python_labels,
    "ensemble": ensemble,
    "sklearn": sklearn,
    "sklearn-margins": sklearn_margins,
    "sklearn-pickle": sklearn_pickle,
    "chat": chat,
    "chat-labels": chat_labels,
    "http": http,
    "https": https,
    "onnx": onnx,
    "onnx-quantised": onnx_quantised,
    "zero-shot": zero_shot,
    "spacy": spacy,
    "fasttext": fasttext,
}
"""The cases by name; what a name begins with is the scheme of its adapter."""
