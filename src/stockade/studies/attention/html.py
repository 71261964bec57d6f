"""The page of the study."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockade.studies.attention import tables
from stockade.studies.attention.headline import headline
from stockade.studies.attention.plan import Plan
from stockade.studies.attention.plots import example_map, mean_map, success_plot, theorem_plot
from stockade.studies.attention.published import OTHERS, published_table
from stockade.studies.html import fill_body, fill_page

_PACKAGE = "stockade.studies.attention"
_SHOWN_WORDS = 60
Numbers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a strip: its attention, and the depth of its colour between 0 and 1."""

    word: str
    score: float
    depth: float
    replaced: bool


@dataclass(frozen=True, slots=True)
class Strip:
    """One success: each word with its attention before and after, one above the other."""

    look: Numbers
    columns: tuple[tuple[Word, Word], ...]
    cut: bool


def render_page(plan: Plan, numbers: Numbers) -> str:
    """The whole page."""
    return fill_page(_PACKAGE, _content(plan, numbers))


def render_body(plan: Plan, numbers: Numbers) -> str:
    """The page without its frame, as a notebook shows it."""
    return fill_body(_PACKAGE, _content(plan, numbers))


def strip(look: Numbers) -> Strip | None:
    """The words of a success; None if there is no attention to show."""
    if look["attention"] is None:
        return None
    index, words = look["index"], look["words"]
    start = max(0, min(index - _SHOWN_WORDS // 2, len(words) - _SHOWN_WORDS))
    shown = range(start, min(len(words), start + _SHOWN_WORDS))
    changed = [*words[:index], look["replacement"], *words[index + 1 :]]
    before, after = look["attention"]["before"], look["attention"]["after"]
    top = max([*before, *after, 1e-9])

    def cell(texts: Sequence[str], scores: Sequence[float], at: int) -> Word:
        return Word(texts[at], scores[at], round(scores[at] / top, 3), at == index)

    columns = tuple((cell(words, before, at), cell(changed, after, at)) for at in shown)
    return Strip(look, columns, len(shown) < len(words))


def _content(plan: Plan, numbers: Numbers) -> dict[str, Any]:
    return {
        "study": numbers,
        "headline": headline(numbers),
        "models": tables.model_table(numbers),
        "success": tables.success_table(numbers),
        "missing": tables.missing_reasons(numbers),
        "published": published_table(),
        "published_others": OTHERS,
        "success_plot": success_plot(numbers),
        "attention": tables.attention_table(numbers),
        "embedding": tables.embedding_table(numbers),
        "sections": [_section(numbers, name) for name in numbers["models"]],
        "ratings": [
            (comparison, tables.rating_table(comparison))
            for comparison in (numbers["ratings"] or {"comparisons": ()})["comparisons"]
        ],
        "manifest": json.dumps(_options(plan), indent=2, ensure_ascii=False),
    }


def _section(numbers: Numbers, name: str) -> dict[str, Any]:
    """What the page shows of one model."""
    model = numbers["models"][name]
    looks = model["examples"]
    first = next((look for look in looks if look["layers"]), None)
    return {
        "name": name,
        "model": model,
        "strips": [found for found in map(strip, looks) if found is not None],
        "example": first,
        "example_map": "" if first is None else example_map(name, first),
        "mean_map": mean_map(name, model["embedding_change"]),
        "theorem": tables.theorem_table(numbers, name),
        "theorem_plot": theorem_plot(numbers, name),
    }


def _options(plan: Plan) -> dict[str, Any]:
    """The plan without the long list of ids."""
    content = json.loads(json.dumps(dataclasses.asdict(plan)))
    content["choice"]["ids"] = f"{len(plan.choice.ids)} ids, in plan.json"
    return dict(content)
