"""Certified accuracy at each radius, and forward passes per text, of every way to certify, side by side.

    python benchmarks/certify.py TRAIN TEST --arch CNN-W-GloVe-1 --rate 0.7 [--texts 200] [--alpha 0.05] \\
        [--groups 8] [--overlap 4] [--mean-kept 5] [--methods ranmask position-partition deletion …] \\
        [--glove FILE] [--out FOLDER] [--json FILE]

One model is trained for each kind of defense. For random masking the votes of 1,000 + 5,000 independent masked copies
of each test text, and of as many antithetic groups as are asked for, are drawn once and kept in --out; every sampled
method is then replayed from that log, so that schemes are compared on the same votes: *fixed* looks once at all of
them, *sequential* stops when its radius is certain. Rows *real* are `stockade certify` itself, which also draws few
copies without replacement. A cell is the share of test texts whose true class is certified for changes of that many
words, in percent; *passes* are forward passes per text.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import stockade as st
from stockade.certificates.betting_sampler import sample_by_betting
from stockade.certificates.bounds import legacy_claim
from stockade.certificates.medians import certified_curve, median_bound, median_rate
from stockade.certificates.method import CertificationInput, MethodResult
from stockade.certificates.methods.ranmask import MaskedCopies, MaskingDistribution
from stockade.certificates.registry import make_method
from stockade.certificates.sampled_method import SampledMethod
from stockade.certificates.sampling import Rows, Stream, sample, votes_of
from stockade.core.example import Example
from stockade.core.seeds import derive_seed
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService

SELECTION, ESTIMATION = 1000, 5000
LOGGED: tuple[tuple[Stream, int], ...] = (("selection", SELECTION), ("estimation", ESTIMATION))
STEP, RADII = 500, 7
BETTING = ("ranmask-gap", "ranmask-lf", "ranmask-gap:choose=label")
"""What may ask for antithetic groups: as many are logged as any of these needs."""
DEFENSES = {
    "ranmask": "ranmask:rate={rate}",
    "position-partition": "partition:groups={groups}",
    "overlapping-partition": "partition:groups={groups},overlap={overlap}",
    "hash-partition": "partition:by=hash,groups={groups}",
    "overlapping-hash": "partition:by=hash,groups={groups},overlap={overlap}",
    "deletion": "deletion:kept_chance={kept}",
    "adaptive-deletion": "deletion:kept_chance=0.5,mean_kept={mean}",
    "safer": "safer",
}
METHODS = {
    "overlapping-partition": "position-partition",
    "overlapping-hash": "hash-partition",
    "adaptive-deletion": "deletion",
}
"""The method of a defense whose name is not that of its method."""


@dataclass(frozen=True)
class Log:
    """The votes for the masked copies of one text, in the order they were drawn: independent ones, and groups."""

    example: Example
    kept: int
    votes: Mapping[str, NDArray[np.int64]]

    @property
    def words(self) -> int:
        return len(str(self.example.text).split())


@dataclass(frozen=True)
class Replayed:
    """Copies that were asked before."""

    log: Log
    classes: int
    population: int | None = None

    @property
    def distribution(self) -> MaskingDistribution:
        return MaskingDistribution(self.log.words, self.log.kept)

    def independent(self) -> Replayed:
        return self

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        return self._rows(self.log.votes[stream][start:stop])

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        size = self.distribution.group_size
        return self._rows(self.log.votes[f"groups {stream}"][start * size : stop * size])

    def _rows(self, votes: NDArray[np.int64]) -> Rows:
        return np.eye(self.classes)[votes]


def defense_of(options: argparse.Namespace, name: str) -> str:
    return DEFENSES[name].format(
        rate=options.rate,
        groups=options.groups,
        overlap=options.overlap,
        kept=round(1 - options.rate, 3),
        mean=options.mean_kept,
    )


def trained(options: argparse.Namespace, name: str) -> Path:
    """The folder of a model, trained now unless it is there."""
    folder: Path = options.out / "models" / name
    st.train(
        options.train,
        options.arch,
        out=folder,
        defenses=[defense_of(options, name)],
        sources={"glove": str(options.glove)} if options.glove else {},
        seed=options.seed,
        resume=folder.exists(),
        device="cpu",
        **({"epochs": options.epochs} if options.epochs else {}),
    )
    return folder


def vote_log(options: argparse.Namespace, model: Any) -> list[Log]:
    """The votes of the masked copies of every test text, read from --out or asked now."""
    source = load_data(options.test)
    examples = list(prepare_examples(source, model.labels, limit=options.texts, seed=options.seed))
    folder = options.out / "votes"
    folder.mkdir(parents=True, exist_ok=True)
    scheduler = Scheduler.for_classifier(ScoringService(model.inner), 4)
    missing = [example for example in examples if not (folder / f"{example.id}.npz").exists()]
    searches = (Search(partial(draw, model, example, options.seed, options.alpha)) for example in missing)
    for ended in scheduler.run(searches):
        example, votes = ended.result  # type: ignore[misc]
        np.savez_compressed(folder / f"{example.id}.npz", **votes)
    logs = []
    for example in examples:
        kept = model.defense.kept_of(len(str(example.text).split()))
        with np.load(folder / f"{example.id}.npz") as read:
            logs.append(Log(example, kept, {name: read[name].astype(np.int64) for name in read.files}))
    return logs


async def draw(model: Any, example: Example, seed: int, alpha: float) -> tuple[Example, dict[str, NDArray[np.uint8]]]:
    words = tuple(str(example.text).split())
    copies = MaskedCopies(
        words=words,
        premise=example.text.premise,
        kept=model.defense.kept_of(len(words)),
        mask=model.defense.mask,
        seed=derive_seed(seed, "votes", example.id),
        finite=False,
    )
    single: dict[str, NDArray[np.uint8]] = {}
    for stream, number in LOGGED:
        parts = [await copies.score(stream, start, start + STEP) for start in range(0, number, STEP)]
        single[stream] = votes_of(np.concatenate(parts)).astype(np.uint8)
    recorded = Recorded(copies, single, len(model.labels))
    for method in BETTING:
        inputs = CertificationInput(example.text, example.label, replay_seed(example))
        await sample_by_betting(replace(make_method(method).method, alpha=alpha), recorded, inputs, len(model.labels))
    return example, {**single, **recorded.votes()}


@dataclass
class Recorded:
    """Antithetic groups of a text, asked for when they are needed first; independent copies as they were logged."""

    copies: MaskedCopies
    single: Mapping[str, NDArray[np.uint8]]
    classes: int
    groups: dict[str, Rows] = field(default_factory=dict)

    @property
    def distribution(self) -> MaskingDistribution:
        return self.copies.distribution

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        return np.eye(self.classes)[self.single[stream][start:stop]]

    async def score_groups(self, stream: Stream, start: int, stop: int) -> Rows:
        size = self.distribution.group_size
        step = -(-STEP // size)
        rows = self.groups.get(stream, np.zeros((0, self.classes)))
        while len(rows) < stop * size:
            drawn = len(rows) // size
            rows = np.concatenate([rows, await self.copies.score_groups(stream, drawn, drawn + step)])
        self.groups[stream] = rows
        return rows[start * size : stop * size]

    def votes(self) -> dict[str, NDArray[np.uint8]]:
        return {f"groups {stream}": votes_of(rows).astype(np.uint8) for stream, rows in self.groups.items()}


def replayed(method: SampledMethod, logs: Sequence[Log], classes: int) -> dict[str, Any]:
    radii, passes = [], []
    for log in logs:
        inputs = CertificationInput(log.example.text, None, replay_seed(log.example))
        result = finished(sampled(method, Replayed(log, classes), inputs, classes))
        assert result.evidence is not None
        radius = result.evidence.radius()
        radii.append(radius if result.evidence.chosen == log.example.label else None)
        passes.append(result.evidence.copies + result.drawn)
    return row(radii, [log.words for log in logs], passes)


def replay_seed(example: Example) -> int:
    return derive_seed("replayed", example.id)


def sampled(
    method: SampledMethod, copies: Replayed, inputs: CertificationInput, classes: int
) -> Coroutine[Any, Any, MethodResult]:
    if method.scheme == "betting":
        return sample_by_betting(method, copies, inputs, classes)
    return sample(method, copies, inputs, classes)


def finished(coroutine: Any) -> MethodResult:
    """What a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("the log was asked for something it does not have")


def legacy(logs: Sequence[Log], alpha: float) -> dict[str, Any]:
    radii = []
    for log in logs:
        chosen = int(np.bincount(log.votes["selection"]).argmax())
        votes = int((log.votes["estimation"] == chosen).sum())
        claim = legacy_claim(votes, ESTIMATION, log.words, log.kept, alpha)
        radii.append(claim.radius if chosen == log.example.label else None)
    return row(radii, [log.words for log in logs], [SELECTION + ESTIMATION] * len(logs))


def row(radii: Sequence[int | None], words: Sequence[int], passes: Sequence[int]) -> dict[str, Any]:
    rate = median_rate(radii, words)
    return {
        "curve": certified_curve(radii),
        "mcb": median_bound(radii),
        "mcr": None if rate is None else 100 * rate,
        "passes": sum(passes) / len(passes),
    }


def real(options: argparse.Namespace, model: Path, method: str) -> dict[str, Any]:
    """`stockade certify` itself."""
    run = st.certify(str(model), options.test, method, alpha=options.alpha, limit=options.texts, seed=options.seed)
    numbers = next(iter(run.summary["methods"].values()))
    rate = numbers["median_rate"]
    return {
        "curve": [point["share"] for point in numbers["curve"]],
        "mcb": numbers["median_radius"],
        "mcr": None if rate is None else 100 * rate,
        "passes": numbers["mean_copies"],
    }


def rows(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    if "ranmask" in options.methods:
        folder = trained(options, "ranmask")
        model = st.defend(str(folder), defense_of(options, "ranmask"), model_options=st.ModelOptions(device="cpu"))
        logs = vote_log(options, model)
        classes = len(model.labels)
        for name in ("ranmask-gap", "ranmask-lf"):
            fixed = make_method(f"{name}@fixed", alpha=options.alpha).method
            yield f"{name}, fixed 1,000 + 5,000", replayed(fixed, logs, classes)
            for scheme in ("betting", "curtailed", "spending", "anytime"):
                method = make_method(name, alpha=options.alpha, scheme=scheme).method
                yield f"{name}, sequential ({scheme})", replayed(method, logs, classes)
        with_label = replace(make_method("ranmask-gap", alpha=options.alpha).method, choose="label")
        yield "ranmask-gap, sequential, true class given", with_labels(with_label, logs, classes)
        yield "ranmask-legacy: NOT a certificate", legacy(logs, options.alpha)
        yield "ranmask-gap, real", real(options, folder, "ranmask-gap")
        yield "ranmask-exact, real", real(options, folder, "ranmask-exact")
    for name in DEFENSES:
        if name != "ranmask" and name in options.methods:
            yield f"{name}, real", real(options, trained(options, name), METHODS.get(name, name))


def with_labels(method: SampledMethod, logs: Sequence[Log], classes: int) -> dict[str, Any]:
    radii, passes = [], []
    for log in logs:
        inputs = CertificationInput(log.example.text, log.example.label, replay_seed(log.example))
        result = finished(sampled(method, Replayed(log, classes), inputs, classes))
        assert result.evidence is not None
        radii.append(result.evidence.radius())
        passes.append(result.evidence.copies)
    return row(radii, [log.words for log in logs], passes)


def show(name: str, numbers: dict[str, Any]) -> None:
    curve = [*numbers["curve"], *[0.0] * RADII][:RADII]
    medians = "–" if numbers["mcb"] is None else f"{numbers['mcb']} ({numbers['mcr']:.1f} %)"
    print(
        f"| {name} | "
        + " | ".join(f"{100 * share:.1f}" for share in curve)
        + f" | {medians} | {numbers['passes']:,.0f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--arch", default="CNN-W-Random-1")
    parser.add_argument("--rate", type=float, default=0.7)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--overlap", type=int, default=4)
    parser.add_argument("--mean-kept", type=float, default=5.0)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--methods", nargs="*", default=list(DEFENSES), choices=list(DEFENSES))
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "stockade-certify")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    header = ["", *(f"d ≥ {radius}" for radius in range(RADII)), "MCB (MCR)", "passes"]
    print(f"| {' | '.join(header)} |\n| {' | '.join(['---'] * len(header))} |", flush=True)
    for name, numbers in rows(options):
        results[name] = numbers
        show(name, numbers)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
