"""The page of the study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stockade.runs.run import Run
from stockade.studies.bae import tables
from stockade.studies.bae.examples import compared_texts, telling_texts
from stockade.studies.bae.headline import headline
from stockade.studies.bae.plots import curve_plot, split_plot, trade_plot
from stockade.studies.bae.splits import split_texts
from stockade.studies.html import fill_body, fill_page
from stockade.studies.results import read_results

EXAMPLES = 8
EXAMPLES_OF_BOTH = 4


def render_page(run: Run, numbers: Mapping[str, Any]) -> str:
    """The whole page."""
    return fill_page("stockade.studies.bae", _content(run, numbers))


def render_body(run: Run, numbers: Mapping[str, Any]) -> str:
    """The page without its frame, as a notebook shows it."""
    return fill_body("stockade.studies.bae", _content(run, numbers))


def _content(run: Run, numbers: Mapping[str, Any]) -> dict[str, Any]:
    results = read_results(run, list(numbers["attacks"]))
    both = split_texts(results)["C"][:EXAMPLES_OF_BOTH]
    shown = [text for text in telling_texts(results, EXAMPLES + len(both)) if text not in both][:EXAMPLES]
    return {
        "study": numbers,
        "headline": headline(numbers),
        "main": tables.main_table(numbers),
        "splits": tables.split_table(numbers),
        "curve": tables.curve_table(numbers),
        "antonyms": tables.antonym_table(numbers),
        "fluency": tables.fluency_table(numbers),
        "trade_plot": trade_plot(numbers),
        "split_plot": split_plot(numbers),
        "curve_plot": curve_plot(numbers),
        "compared": compared_texts(results, shown),
        "compared_both": compared_texts(results, both),
        "manifest": json.dumps(_options(run), indent=2, ensure_ascii=False),
    }


def _options(run: Run) -> dict[str, Any]:
    """What the study was made with, without the long list of ids."""
    chosen = ("command", "created", "versions", "config", "model")
    return {name: run.manifest[name] for name in chosen}
