"""The search itself: trials in rounds, each kept as it ends, until their number or the time is used up."""

from __future__ import annotations

import dataclasses
import multiprocessing
import pickle
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from stockade.core.errors import OptionError, RunError
from stockade.defenses.registry import NamedDefense, make_defense
from stockade.jobs import DataOptions, ModelOptions
from stockade.models.language import LanguageModels
from stockade.tuning.config import Config, begin, describe, read_config
from stockade.tuning.judge import Judge, Limits
from stockade.tuning.ranges import default_ranges
from stockade.tuning.samplers import Sampler, make_sampler
from stockade.tuning.space import Range, read_ranges
from stockade.tuning.trials import Goal, Trial, TrialFile, best_of, missing_numbers, reference

Observer = Callable[[Trial], None]
_SECONDS_TO_END = 5.0


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found; `best_defense` is ready for `--defense`."""

    folder: Path
    trials: tuple[Trial, ...]
    best: Trial | None
    best_defense: str | None
    config: Config = field(default_factory=dict, repr=False)
    """What was searched, as `tune.json` holds it."""


def tune(
    model: object,
    data: object,
    defense: str,
    *,
    attack: str,
    out: str | Path,
    ranges: Sequence[str] = (),
    trials: int = 20,
    seconds: float | None = None,
    sampler: str = "random",
    clean_weight: float = 0.0,
    least_clean: float | None = None,
    limit: int | None = 100,
    seed: int = 0,
    budget: int | None = None,
    expectation: int = 3,
    workers: int = 1,
    max_words: int = 5_000,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    resume: bool = False,
    mlm: str | None = None,
    encoder: str | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> Tuned:
    """Search the options of a defense that acts when the model is asked, for those that keep most texts right under an
    attack.

    `defense` may fix options, as in `"ranmask:copies=50"`; `ranges` name the ones to search (`"rate=0.1..0.9"`,
    `"combine=logit|vote"`), without any all that are not fixed and have a natural range. A trial attacks the same
    `limit` texts in several ways, for a randomised defense also through the mean of `expectation` answers; a text is
    robust if it survives all of them. The objective is robust accuracy + `clean_weight` × clean accuracy. No trial is
    begun after `seconds`. With `resume` the finished trials of `out` count.
    """
    if trials < 1 or workers < 1:
        raise OptionError(f"There are {trials} trials and {workers} workers, expected at least 1 of each.")
    if seconds is not None and not seconds > 0:
        raise OptionError(f"--seconds is {seconds}, expected more than 0.")
    named = make_defense(defense)
    fixed = _fixed(named, defense)
    space = _space(named, ranges, fixed)
    tried = _tried(named, fixed, space)
    options = dataclasses.replace(data_options or DataOptions(), limit=limit)
    judge = Judge(
        model,
        data,
        attack,
        named.name,
        named.preset,
        fixed,
        seed,
        Goal(clean_weight, least_clean),
        Limits(budget, max_words, expectation, concurrency, batch_tokens),
        options,
        model_options or ModelOptions(),
        LanguageModels(mlm, encoder),
    )
    if workers > 1 and not (isinstance(model, str | Path) and isinstance(data, str | Path)):
        raise OptionError("Several workers load the model and the data themselves: name them, or use one worker.")
    chooser = make_sampler(sampler, space, seed)
    judge.check(tried)
    folder = Path(out)
    begin(folder, describe(judge, space, sampler, tried), resume)
    kept = TrialFile(folder)
    done = kept.begin()
    deadline = None if seconds is None else time.monotonic() + seconds
    for trial in _run(judge, chooser, done, trials, workers, deadline):
        kept.add(trial)
        if observer is not None:
            observer(trial)
    return read_tuned(folder)


def read_tuned(folder: Path) -> Tuned:
    """The trials of a search's folder and the best of them."""
    config = read_config(folder)
    found = TrialFile(folder).read()
    best = best_of(found)
    line = None if best is None else reference(config["defense"], config["preset"], config["fixed"], best.options)
    return Tuned(folder, tuple(found), best, line, config)


def _run(
    judge: Judge, chooser: Sampler, done: list[Trial], wanted: int, workers: int, deadline: float | None
) -> Iterator[Trial]:
    """New trials as they end; rounds of as many as there are workers."""
    missing = missing_numbers(done, wanted)
    packed = pickle.dumps(judge.unloaded()) if workers > 1 else b""
    with _workforce(workers) as pool:
        for start in range(0, len(missing), workers):
            if deadline is not None and time.monotonic() > deadline:
                return
            numbers = missing[start : start + workers]
            before = sorted((one for one in done if one.number < numbers[0]), key=lambda one: one.number)
            chosen = chooser.choose(numbers, before)
            if pool is None:
                finished = iter([judge.try_options(numbers[0], chosen[0])])
            else:
                tasks = [pool.submit(_try, packed, *one) for one in zip(numbers, chosen, strict=True)]
                finished = map(_result, as_completed(tasks))
            for trial in finished:
                done.append(trial)
                yield trial


def _result(task: Future[Trial]) -> Trial:
    try:
        return task.result()
    except BrokenProcessPool:
        raise RunError(
            "A worker process ended in the middle of a trial (is there memory for all of them?). The finished trials "
            "are kept: go on with --resume and fewer --workers."
        ) from None


@contextmanager
def _workforce(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    if workers == 1:
        yield None
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="stockade-tune-", ignore_cleanup_errors=True) as scratch:
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_work, initargs=(scratch,))
        try:
            yield pool
        except BaseException:  # nobody would keep what the workers still find
            pool.shutdown(wait=False, cancel_futures=True)
            ours = set(multiprocessing.active_children()) - others
            for process in ours:
                process.terminate()
            for process in ours:
                process.join(_SECONDS_TO_END)
            raise
        pool.shutdown()


def _begin_work(scratch: str) -> None:
    """In a worker process: Ctrl-C reaches the whole group, and one answer to it is enough; what an ended worker leaves
    behind is removed with the folder that all of them work in.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = scratch


@lru_cache(maxsize=1)
def _unpacked(judge: bytes) -> Judge:
    """In a worker process: the judge of its search, which keeps the model it has loaded."""
    unpacked: Judge = pickle.loads(judge)
    return unpacked


def _try(judge: bytes, number: int, options: dict[str, Any]) -> Trial:
    return _unpacked(judge).try_options(number, options)


def _fixed(named: NamedDefense, written: str) -> dict[str, Any]:
    """The options that stand in the reference."""
    from stockade.core.options import parse_options

    given = parse_options("--defense", named.name, written.partition(":")[2])
    return {name: named.options[name] for name in given}


def _space(named: NamedDefense, ranges: Sequence[str], fixed: Mapping[str, Any]) -> dict[str, Range]:
    if not hasattr(named.entry.implementation, "answer"):
        raise OptionError(f"{named.name} changes how a model is trained; only defenses that act when asked are tuned.")
    kind: Any = named.entry.implementation
    space = read_ranges(ranges, named.name, kind) or default_ranges(named.name, kind, fixed)
    both = sorted(set(space) & set(fixed))
    if both:
        raise OptionError(f"{', '.join(both)} of {named.name} is fixed and has a range: leave one of them out.")
    if not space:
        raise OptionError(f"{named.name} has no option with a natural range: name one, as in --range rate=0.1..0.9.")
    return space


def _tried(named: NamedDefense, fixed: Mapping[str, Any], space: Mapping[str, Range]) -> list[NamedDefense]:
    """The defense at the ends of each range: a value that cannot be is told before anything is written."""
    tried = [
        make_defense(reference(named.name, named.preset, dict(fixed), {name: value}))
        for name, one in space.items()
        for value in one.ends
    ]
    if not any(one.entry.answers for one in tried):
        raise OptionError(
            f"{named.name} with these options only changes how a model is trained; only defenses that act when asked "
            "are tuned."
        )
    return tried
