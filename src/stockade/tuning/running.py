"""The search itself: trials in rounds, each kept as it ends, until their number or the time is used up."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from stockade.core.differences import differences
from stockade.core.errors import OptionError, RunError
from stockade.core.files import make_folder, refuse_existing, write_json
from stockade.defenses.registry import NamedDefense, make_defense
from stockade.jobs import DataOptions, ModelOptions, reference_of
from stockade.models.language import LanguageModels
from stockade.tuning.judge import Judge
from stockade.tuning.samplers import Sampler, make_sampler
from stockade.tuning.space import Range, default_ranges, read_ranges
from stockade.tuning.trials import Goal, Trial, TrialFile, best_of, missing_numbers, reference

CONFIG_NAME = "tune.json"
Observer = Callable[[Trial], None]


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found; `best_defense` is ready for `--defense`."""

    folder: Path
    trials: tuple[Trial, ...]
    best: Trial | None
    best_defense: str | None


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
    workers: int = 1,
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
    `limit` texts; its objective is robust accuracy + `clean_weight` × clean accuracy. No trial is begun after
    `seconds`. With `resume` the finished trials of `out` count.
    """
    if trials < 1 or workers < 1:
        raise OptionError(f"There are {trials} trials and {workers} workers, expected at least 1 of each.")
    named = make_defense(defense)
    if not named.entry.answers:
        raise OptionError(f"{named.name} changes how a model is trained; only defenses that act when asked are tuned.")
    fixed = _fixed(named, defense)
    space = _space(named, ranges, fixed)
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
        budget,
        options,
        model_options or ModelOptions(),
        LanguageModels(mlm, encoder),
    )
    if workers > 1 and not (isinstance(model, str | Path) and isinstance(data, str | Path)):
        raise OptionError("Several workers load the model and the data themselves: name them, or use one worker.")
    chooser = make_sampler(sampler, space, seed)
    for name, one in space.items():
        for value in one.ends:  # a value that cannot be is told before anything is written
            make_defense(reference(named.name, named.preset, fixed, {name: value}))
    judge.language.check()
    folder = Path(out)
    _begin(folder, _described(judge, space, sampler), resume)
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
    try:
        config = json.loads((folder / CONFIG_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder} is no search: {CONFIG_NAME} cannot be read ({error}).") from None
    found = TrialFile(folder).read()
    best = best_of(found)
    line = None if best is None else reference(config["defense"], config["preset"], config["fixed"], best.options)
    return Tuned(folder, tuple(found), best, line)


def _run(
    judge: Judge, chooser: Sampler, done: list[Trial], wanted: int, workers: int, deadline: float | None
) -> Iterator[Trial]:
    """New trials as they end; rounds of as many as there are workers."""
    missing = missing_numbers(done, wanted)
    packed = pickle.dumps(judge) if workers > 1 else b""
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
                finished = (task.result() for task in as_completed(tasks))
            for trial in finished:
                done.append(trial)
                yield trial


@contextmanager
def _workforce(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    if workers == 1:
        yield None
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@lru_cache(maxsize=1)
def _unpacked(judge: bytes) -> Judge:
    """In a worker process: the judge of its search, which keeps the model it has loaded."""
    unpacked: Judge = pickle.loads(judge)
    return unpacked


def _try(judge: bytes, number: int, options: dict[str, Any]) -> Trial:
    return _unpacked(judge).try_options(number, options)


def _fixed(named: NamedDefense, written: str) -> dict[str, Any]:
    """The options that stand in the reference."""
    from stockade.attacks.options import parse_options

    given = parse_options("--defense", named.name, written.partition(":")[2])
    return {name: named.options[name] for name in given}


def _space(named: NamedDefense, ranges: Sequence[str], fixed: Mapping[str, Any]) -> dict[str, Range]:
    space = read_ranges(ranges, named.name, named.entry.make) or default_ranges(named.entry.make, fixed)  # type: ignore[arg-type]
    both = sorted(set(space) & set(fixed))
    if both:
        raise OptionError(f"{', '.join(both)} of {named.name} is fixed and has a range: leave one of them out.")
    if not space:
        raise OptionError(f"{named.name} has no option with a natural range: name one, as in --range rate=0.1..0.9.")
    return space


def _described(judge: Judge, space: Mapping[str, Range], sampler: str) -> dict[str, Any]:
    return {
        "schema": 1,
        "model": reference_of(judge.model),
        "data": reference_of(judge.data),
        "attack": judge.attack,
        "defense": judge.defense,
        "preset": judge.preset,
        "fixed": dict(judge.fixed),
        "ranges": {name: str(one) for name, one in sorted(space.items())},
        "sampler": sampler,
        "seed": judge.seed,
        "limit": judge.data_options.limit,
        "budget": judge.budget,
        "goal": dataclasses.asdict(judge.goal),
    }


def _begin(folder: Path, config: Mapping[str, Any], resume: bool) -> None:
    if not resume or not (folder / CONFIG_NAME).exists():
        refuse_existing(folder, CONFIG_NAME)
        make_folder(folder)
        write_json(folder / CONFIG_NAME, config)
        return
    before = json.loads((folder / CONFIG_NAME).read_text(encoding="utf-8"))
    found = differences(before, config)
    if found is not None:
        raise RunError(f"{folder} is another search: {found}. Use the same options, or choose another --out.")
