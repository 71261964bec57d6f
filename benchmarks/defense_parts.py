"""Figures about the parts of defenses, from the built-in models and reviews: no defense is attacked here.

    python benchmarks/defense_parts.py [firebert] [safer] [route] [--texts 100] [--draws 50]

firebert  how much of a token FIVE's noise leaves on the built-in BERT (signal-to-noise ratio, and the cosine of the
          token's vector behind the first normalisation with and without noise, mean of `--draws` draws at one word);
          which share of SWITCH's alternatives of `--texts` validation sentences the similarity filter refuses
safer     how many words of the package's table have a perturbation set, and how large the components are
route     a detector fitted on PWWS successes on the built-in CNN, and what it catches of new ones (three times
          `--texts` validation sentences to fit on, `--texts` test sentences to try it on)

Without a name all three are printed, as markdown.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

import stockade as st
from stockade.core.protocols import Classifier, NoisedCopies
from stockade.core.records import Record
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.datasets.builtin import REVIEW_LABELS, reviews
from stockade.defenses.defended import Defended
from stockade.defenses.detector import fit_detector
from stockade.defenses.five import Five
from stockade.defenses.registry import make_defense
from stockade.defenses.route import Route, Routed
from stockade.defenses.safer import Safer
from stockade.defenses.switch import Switch
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Importance
from stockade.engine.scheduler import Scheduler, Search
from stockade.lexicon.neighbours import load_neighbours
from stockade.lexicon.perturbation_sets import refined, similar_pairs
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.language import LanguageModels

SECTIONS = ("firebert", "safer", "route")
DEVIATIONS = (0.05, 0.5, 2.3, 8.14)
SENTENCE, WORD = "a gripping and truly wonderful film", "wonderful"
FALSE_POSITIVES, COPIES = 0.05, 30


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


def firebert(texts: int, draws: int) -> None:
    model = load_model("builtin:sentiment-bert", device="cpu")
    assert isinstance(model, HuggingFaceClassifier)
    text = Text.parse(SENTENCE)
    token = (text.words.index(WORD), 0)
    rows = []
    for deviation in DEVIATIONS:
        ratio = Five(deviation=deviation).signal_to_noise(model)
        rows.append((deviation, f"{ratio:.3f}", f"{cosine_left(model, text, token, deviation, draws):.2f}"))
    print(f'### FIVE on builtin:sentiment-bert: "{WORD}" in "{SENTENCE}", {draws} draws\n')
    table(("deviation", "signal-to-noise ratio", "cosine"), rows)
    print(f"### SWITCH's alternatives of {texts} sentences: how many the filter refuses\n")
    shares: list[Sequence[object]] = []
    for name in ("fuse", "fact"):
        switch: Switch = make_defense(name).defense
        drawn, passed = filtered(model, replace(switch, multiplier=1), texts)
        shares.append((name, switch.perturb_words, drawn, drawn - passed, f"{1 - passed / drawn:.0%}"))
    table(("defense", "words replaced", "alternatives", "refused", "share"), shares)


def cosine_left(
    model: HuggingFaceClassifier, text: Text, token: tuple[int, int], deviation: float, draws: int
) -> float:
    """The mean cosine of a token's vector behind the first normalisation with and without noise at that token."""
    with normalised(model.model) as seen:
        model.predict_proba([text.input])
        model.predict_noised([NoisedCopies(text, (token,), deviation, draws, 0)])
    clean, noised = seen[0][0], torch.cat(seen[1:])
    moved = (noised - clean).abs().sum(2).gt(1e-3).all(0).nonzero().flatten()
    (place,) = moved.tolist()  # noise is at one token, so one place has moved in every copy
    return float(torch.cosine_similarity(noised[:, place], clean[None, place], dim=1).mean())


@contextmanager
def normalised(network: torch.nn.Module) -> Iterator[list[torch.Tensor]]:
    """What the first normalisation of a network lets through, a tensor for each pass."""
    first = next(part for part in network.modules() if isinstance(part, torch.nn.LayerNorm))
    seen: list[torch.Tensor] = []
    handle = first.register_forward_hook(lambda module, given, answer: seen.append(answer.detach()))
    try:
        yield seen
    finally:
        handle.remove()


def filtered(model: Classifier, switch: Switch, texts: int) -> tuple[int, int]:
    """How many alternatives are drawn and how many of them pass the similarity filter."""

    async def count(text: Text, rng: Random) -> tuple[int, int]:
        scores = await Importance(text, switch.importance)
        drawn = list(switch.written(text, switch.chosen(text, scores, rng), rng))
        return len(drawn), len(await switch.similar(text, iter(drawn)))

    sentences = [Text.parse(review.text) for review in reviews("validation")[:texts]]
    searches = [Search(lambda text=text: count(text, derive_rng(0, str(text)))) for text in sentences]  # type: ignore[misc]
    found = [ended.result for ended in scheduler(model).run(searches)]
    return sum(drawn for drawn, _ in found), sum(passed for _, passed in found)  # type: ignore[misc]


def scheduler(model: Classifier) -> Scheduler:
    language = LanguageModels()
    filling, embedding = FillingService(language.make_masked_lm), EmbeddingService(language.make_encoder)
    scoring = make_scoring(model, filling=filling, embedding=embedding)
    return Scheduler.for_classifier(scoring, filling=filling, embedding=embedding)


def safer() -> None:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    options, known = Safer(), load_neighbours()
    pairs = similar_pairs(refined(known.matrix, options.directions), options.min_cosine)
    graph = coo_matrix((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(len(known), len(known)))
    sizes = np.bincount(connected_components(graph, directed=False)[1])
    sizes = np.sort(sizes[sizes > 1])[::-1]
    print("### SAFER: perturbation sets of the package's table\n")
    head = ("words", "with a set", "components", "of more than 100 words", "largest", "second", '"not" for "good"')
    beside = "yes" if "not" in options.sets().of("good") else "no"
    cut = int((sizes > options.maximum).sum())
    table(head, [(len(known), int(sizes.sum()), len(sizes), cut, int(sizes[0]), int(sizes[1]), beside)])


def route(texts: int) -> None:
    model = load_model("builtin:sentiment-cnn", device="cpu")
    clean, fooling = attacked(model, "validation", 3 * texts)
    detector = fit_detector(
        model,
        [one.original for one in clean],
        [one.adversarial or "" for one in fooling],
        false_positives=FALSE_POSITIVES,
        copies=COPIES,
    )
    new_clean, new_fooling = attacked(model, "test", texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "detector.json"
        detector.save(path)
        defended = Defended(name="route", defense=Route(detector=str(path)), inner=model)
        before = routed(defended, [one.original for one in new_clean])
        after = routed(defended, [one.adversarial or "" for one in new_fooling])
    labels = [model.labels.index(one.label) for one in new_fooling]
    pairs = list(zip(after, labels, strict=True))
    print(
        f"### route on builtin:sentiment-cnn: fitted on {len(clean)} clean sentences and {len(fooling)} PWWS successes "
        f"({FALSE_POSITIVES:.0%} false positives, {COPIES} copies)\n"
    )
    head = ("new texts", "number", "caught", "masked branch right", "routed model right")
    right = [model.labels.index(one.label) for one in new_clean]
    rows = [
        ("clean", len(before), *counted(list(zip(before, right, strict=True)))),
        ("PWWS", len(after), *counted(pairs)),
    ]
    table(head, rows)


def attacked(model: Classifier, split: str, texts: int) -> tuple[list[Record], list[Record]]:
    """The sentences that the model gets right, and those that PWWS then makes it get wrong."""
    data = [(review.text, REVIEW_LABELS[review.label]) for review in reviews(split)[:texts]]
    run = st.attack(model, data, "pwws", similarity=False)
    right = [one for one in run.examples if one.status in ("success", "failed")]
    return right, [one for one in right if one.status == "success"]


def routed(defended: Defended, strings: Sequence[str]) -> list[Routed]:
    """Both branches' answers to each text, and which branch was taken."""
    defense: Any = defended.defense

    async def ask(string: str) -> Routed:
        found: Routed = await defense.routed(Text.parse(string), np.random.default_rng(0))
        return found

    searches = [Search(lambda string=string: ask(string)) for string in strings]  # type: ignore[misc]
    places = {id(search): place for place, search in enumerate(searches)}
    ended = sorted(scheduler(defended.inner).run(searches), key=lambda one: places[id(one.search)])
    return [one.result for one in ended if isinstance(one.result, Routed)]


def counted(answers: Sequence[tuple[Routed, int]]) -> tuple[int, int, int]:
    return (
        sum(one.caught for one, _ in answers),
        sum(one.robust.label == label for one, label in answers),
        sum(one.scores.label == label for one, label in answers),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("section", nargs="*", help=f"any of {', '.join(SECTIONS)}; all without one")
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--draws", type=int, default=50)
    options = parser.parse_args()
    unknown = sorted(set(options.section) - set(SECTIONS))
    if unknown:
        parser.error(f"there is no section {unknown[0]} (found: {', '.join(SECTIONS)})")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    wanted = options.section or SECTIONS
    if "firebert" in wanted:
        firebert(options.texts, options.draws)
    if "safer" in wanted:
        safer()
    if "route" in wanted:
        route(options.texts)


if __name__ == "__main__":
    main()
