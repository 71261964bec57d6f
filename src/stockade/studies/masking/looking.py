"""Asks a model about masked copies of every text, for the check of β; what was seen is kept in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stockade.certificates.methods.ranmask import MaskedCopies
from stockade.certificates.sampling import votes_of
from stockade.certificates.sequential import choose_class
from stockade.core.errors import RunError, SearchStopped
from stockade.core.example import Example
from stockade.core.files import make_folder, write_json
from stockade.core.masks import Keep, kept_words, masks_by_number
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_seed
from stockade.datasets.examples import ExampleSet
from stockade.defenses.ranmask import RanMask
from stockade.engine.batching import TokenBudget
from stockade.engine.requests import Masked
from stockade.engine.scheduler import Scheduler, Search, innermost
from stockade.engine.scoring import ScoringService
from stockade.runs.attack import Observer, Progress, tuning_memory
from stockade.studies.masking.changed_sets import look
from stockade.studies.masking.plan import Settings

FILE_NAME = "copies.json"
SCHEMA = 1
TITLE = "the check of β"
Seen = dict[str, Any]


def read_looks(folder: Path) -> list[Seen] | None:
    """What was seen of each text, if that is known already."""
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"format {content['schema']}")
        return list(content["texts"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({error}). Remove it and resume: it is made again.") from None


def look_at_copies(
    folder: Path,
    classifier: Classifier,
    masking: RanMask,
    examples: ExampleSet,
    settings: Settings,
    concurrency: int,
    batch_tokens: int | None,
    observer: Observer | None,
) -> list[Seen]:
    """Ask about `copies` masked copies of each text, or about all if it has no more; in the order of the data."""
    base = innermost(classifier)
    scoring = ScoringService(base, TokenBudget(batch_tokens, tuning_memory(base)))
    scheduler = Scheduler.for_classifier(scoring, concurrency)
    found: dict[int, Seen] = {}
    for ended in scheduler.run(_searches(examples, masking, settings, len(classifier.labels))):
        if isinstance(ended.result, SearchStopped):
            raise ended.result
        position, seen = ended.result
        found[position] = seen
        if observer is not None:
            observer(Progress(TITLE, "error" if "reason" in seen else "seen", len(found), examples.size))
    texts = [found[position] for position in sorted(found)]
    make_folder(folder)
    write_json(folder / FILE_NAME, {"schema": SCHEMA, "texts": texts})
    return texts


def _searches(
    examples: ExampleSet, masking: RanMask, settings: Settings, classes: int
) -> Iterator[Search[tuple[int, Seen]]]:
    for position, example in enumerate(examples):
        yield _search(position, example, masking, settings, classes)


def _search(
    position: int, example: Example, masking: RanMask, settings: Settings, classes: int
) -> Search[tuple[int, Seen]]:
    async def found() -> tuple[int, Seen]:
        words = tuple(str(example.text).split())
        if not 0 < len(words) <= settings.max_words:
            return position, {"id": example.id, "reason": f"the text has {len(words)} words"}
        seed = derive_seed(settings.seed, "masking", example.id)
        kept = kept_words(len(words), masking.rate, masking.kept)
        copies = MaskedCopies(words=words, premise=None, kept=kept, mask=masking.mask, seed=seed)
        keep, complete = chosen_masks(copies, settings.copies)
        try:
            votes = votes_of(await Masked(words, example.text.premise, keep, masking.mask))
        except SearchStopped as reason:
            return position, {"id": example.id, "reason": str(reason)}
        chosen = choose_class(np.bincount(votes[votes >= 0], minlength=classes).tolist())
        rng = np.random.default_rng(derive_seed(seed, "sets"))
        seen = look(keep, votes == chosen, complete, rng)
        told = {"id": example.id, "words": len(words), "copies": len(keep), "complete": complete}
        return position, {**told, "written": words[seen.word], **seen.described()}

    return Search(found, weight=len(str(example.text)) * 1000)


def chosen_masks(copies: MaskedCopies, most: int) -> tuple[Keep, bool]:
    """Every mask there is if these are not more than `most`, else so many at random; and whether it is every one."""
    number = copies.distribution.distinct_copies
    if number <= most:
        return masks_by_number(np.arange(number), len(copies.words), copies.kept), True
    return copies.masks("estimation", 0, most), False
