"""Where an attack's time goes: victim, masked LM, sentence encoder, tagger, the rest; and what the engine adds to the
bare language models.

    python benchmarks/constraints.py [--texts 60] [--victim sentiment-cnn …] [--attack bae-r textfooler …] [--json FILE]

One run of each attack on built-in test sentences, one torch thread, CPU time by service. The unique strings that the
sentence encoder was given, and the unique texts (with a hidden word, or as they are) that the masked LM was asked
about, then go through the bare models: transformers' tokenizer and forward, sorted by length, at the best of several
batch sizes; the masked LM's vocabulary is scored at the mask alone where there is one, as a careful user would do. The
ratio of service to bare time is what deduplication, caching, batching and bookkeeping cost. Machines are noisy: read
the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from stockade.attacks.registry import make_attack
from stockade.attacks.trial import Trial, attack_example
from stockade.core.example import Example
from stockade.core.seeds import derive_rng
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.lexicon.pos import Tagger, load_tagger
from stockade.models.adapters import load_model
from stockade.models.language import LanguageModels
from stockade.models.masked_lm import MaskedLM

ATTACKS = ("bae-r", "bae-r:score_first=true", "bae-i", "textfooler", "textfooler@textattack", "bert-attack", "genetic")
BATCH_SIZES = (8, 16, 32, 64)
COLUMNS = ("total s", "victim", "masked LM", "encoder", "POS", "rest", "encoder / bare", "masked LM / bare")


class Clock:
    """CPU seconds by name; what runs inside another clock is taken out of it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = time.process_time()

    def _charge(self) -> None:
        now = time.process_time()
        name = self._open[-1] if self._open else "rest"
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **options: Any) -> Any:
            self._charge()
            self._open.append(name)
            try:
                return function(*given, **options)
            finally:
                self._charge()
                self._open.pop()

        return timed

    def stop(self) -> dict[str, float]:
        self._charge()
        return self.seconds


class RecordingEncoder:
    """A sentence encoder that notes what it was given."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.name, self.strings = inner, inner.name, dict[str, None]()

    def embed(self, texts: Sequence[str]) -> Any:
        self.strings.update(dict.fromkeys(texts))
        return self._inner.embed(texts)


class RecordingMaskedLM:
    """A masked LM that notes which places it was asked about."""

    def __init__(self, inner: MaskedLM) -> None:
        self._inner = inner
        self.places, self.texts = dict[tuple[str, str], None](), dict[str, None]()
        self.rows = dict[tuple[int, ...], None]()

    def predict(self, texts: Sequence[str], spans: Any, count: int) -> Any:
        self.texts.update(dict.fromkeys(texts))
        return self._inner.predict(texts, spans, count)

    def perplexities(self, rows: Sequence[tuple[int, ...]]) -> Any:
        self.rows.update(dict.fromkeys(rows))
        return self._inner.perplexities(rows)

    def encode(self, places: Sequence[tuple[str, str]]) -> Any:
        self.places.update(dict.fromkeys(places))
        return self._inner.encode(places)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def best_of(work: Callable[[int], None]) -> float:
    """The least CPU time over the batch sizes."""
    seconds = []
    for size in BATCH_SIZES:
        started = time.process_time()
        work(size)
        seconds.append(time.process_time() - started)
    return min(seconds)


def bare_encoder_seconds(encoder: Any, strings: Sequence[str]) -> float:
    tools, model = encoder._packaged

    def work(size: int) -> None:
        ordered = sorted(strings, key=len)
        with torch.inference_mode():
            for start in range(0, len(ordered), size):
                cut = {"padding": True, "truncation": True, "max_length": tools.maximum, "return_tensors": "pt"}
                batch = tools.tokenizer(ordered[start : start + size], **cut)
                states = model(**batch).last_hidden_state
                mask = batch["attention_mask"].unsqueeze(-1)
                torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1)).numpy()

    return best_of(work)


def bare_masked_lm_seconds(model: MaskedLM, asked: RecordingMaskedLM) -> float:
    """The places scored at their mask, the texts at every token, the rows of pieces at every piece."""
    tokenizer = model._places.tokenizer
    cut = {"truncation": True, "max_length": model._places.maximum}
    hidden = [f"{before}{tokenizer.mask_token}{after}" for before, after in asked.places]

    def work(size: int) -> None:
        with torch.inference_mode():
            for texts in (hidden, list(asked.texts), [{"input_ids": list(row)} for row in asked.rows]):
                ordered = sorted(texts, key=lambda text: len(text if isinstance(text, str) else text["input_ids"]))
                for start in range(0, len(ordered), size):
                    given = ordered[start : start + size]
                    rows = given if texts and isinstance(given[0], dict) else tokenizer(given, **cut)
                    batch = tokenizer.pad(rows, return_tensors="pt")
                    ids, attention = batch["input_ids"], batch["attention_mask"]
                    wanted = ids == tokenizer.mask_token_id if texts is hidden else attention.bool()
                    model._head(model._hidden(ids, attention)[wanted]).topk(50)

    return best_of(work)


def measure(victim: str, attack: str, texts: int) -> dict[str, Any]:
    classifier = load_model(f"builtin:{victim}", device="cpu")
    examples = prepare_examples(load_data("builtin:reviews"), classifier.labels, limit=texts)
    language, named = LanguageModels(), make_attack(attack)
    encoder, masked_lm = RecordingEncoder(language.make_encoder()), RecordingMaskedLM(MaskedLM.default("cpu"))
    masked_lm.fill(masked_lm.encode([("a ", " film")]), 50)
    encoder.embed(["a film"])
    load_tagger()

    def search(example: Example) -> Search[Trial]:
        return Search(lambda: attack_example(named.attack, example, derive_rng(0, example.id, named.name)))

    clock = Clock()
    scoring = ScoringService(classifier)
    filling, embedding = FillingService(lambda: masked_lm), EmbeddingService(lambda: encoder)
    for service, methods, name in (
        (scoring, ("answer_scores", "answer_confirmations"), "victim"),
        (filling, ("answer", "answer_predictions", "answer_word_probabilities", "answer_perplexities"), "masked LM"),
        (embedding, ("answer",), "encoder"),
    ):
        for method in methods:
            setattr(service, method, clock.around(name, getattr(service, method)))
    untimed = {method: getattr(Tagger, method) for method in ("tag_word", "tag_candidates", "tag", "universal")}
    for method, function in untimed.items():
        setattr(Tagger, method, clock.around("POS", function))
    try:
        scheduler = Scheduler.for_classifier(scoring, filling=filling, embedding=embedding)
        for _ in scheduler.run(search(example) for example in examples):
            pass
        seconds = clock.stop()
    finally:
        for method, function in untimed.items():
            setattr(Tagger, method, function)
    return _row(victim, attack, texts, seconds, encoder, masked_lm, language)


def _row(
    victim: str, attack: str, texts: int, seconds: dict[str, float], encoder: Any, masked_lm: Any, language: Any
) -> dict[str, Any]:
    total = sum(seconds.values())
    row: dict[str, Any] = {"victim": victim, "attack": attack, "texts": texts, "total s": round(total, 2)}
    row |= {
        name: round(seconds.get(name, 0.0) / total, 3) for name in ("victim", "masked LM", "encoder", "POS", "rest")
    }
    row["encoder / bare"] = row["masked LM / bare"] = None
    if len(encoder.strings) > 1:
        bare = bare_encoder_seconds(language.make_encoder(), list(encoder.strings))
        row["encoder / bare"] = round(seconds.get("encoder", 0.0) / bare, 2)
    if len(masked_lm.places) > 1 or masked_lm.texts:
        bare = bare_masked_lm_seconds(MaskedLM.default("cpu"), masked_lm)
        row["masked LM / bare"] = round(seconds.get("masked LM", 0.0) / bare, 2)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--victim", nargs="*", default=("sentiment-cnn",))
    parser.add_argument("--attack", nargs="*", default=ATTACKS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["STOCKADE_CACHE"] = cache
        print("| victim | attack | " + " | ".join(COLUMNS) + " |\n" + "|---" * (2 + len(COLUMNS)) + "|")
        for victim in options.victim:
            for attack in options.attack:
                row = measure(victim, attack, options.texts)
                rows.append(row)
                cells = ["–" if row[name] is None else str(row[name]) for name in COLUMNS]
                print(f"| {victim} | {attack} | " + " | ".join(cells) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
