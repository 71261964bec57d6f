"""The model card: what a trained model is, what it was made from and how, how good it is, how to load it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from stockade.core.statistics import wilson
from stockade.training.state import Epoch, Evaluation

_PACKAGES = ("stockade", "torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str | None]:
    """What the training ran on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def render_card(
    folder: str, config: Mapping[str, Any], classes: Sequence[str], best: Epoch, warnings: Sequence[str]
) -> str:
    """The text of README.md."""
    data = config["data"]
    what = config["architecture"] or config["model"]
    held_out = "given apart" if data["validation_fingerprint"] else "held out of the training data"
    lines = [
        f"# {what}",
        "",
        f"A text classifier of {len(classes)} classes ({', '.join(classes)}), trained by Stockade."
        if classes
        else "A language model, trained by Stockade.",
        "",
        *_accuracy(best.validation, classes),
        "",
        "## Data",
        "",
        f"- {config['request'].get('data', 'the training data')}: {data['train_texts']} texts trained on, fingerprint "
        f"`{data['fingerprint']}`",
        f"- {data['validation_texts']} validation texts, {held_out}; the best epoch ({best.number}) was chosen on "
        "them, so the figures above flatter the model a little",
        *(f"- {warning}" for warning in warnings),
        *_defended(config.get("defenses", ())),
        "",
        "## Training",
        "",
        f"{best.number} of {config['options']['epochs']} epochs, seed {config['options']['seed']}, "
        f"{best.seconds:.0f} seconds until then.",
        "",
        "| option | value |",
        "|---|---|",
        *(f"| {name} | {json.dumps(value)} |" for name, value in config["options"].items()),
        "",
        "| package | version |",
        "|---|---|",
        *(f"| {name} | {found or '–'} |" for name, found in versions().items()),
        "",
        *_how_to_load(folder, bool(classes)),
    ]
    return "\n".join(lines) + "\n"


def _defended(defenses: Sequence[Mapping[str, Any]]) -> list[str]:
    if not defenses:
        return []
    names = " and ".join(one["name"] for one in defenses)
    return [f"- trained with {names}; where that hides, removes or replaces words, validation texts were read so too"]


def _accuracy(found: Evaluation, classes: Sequence[str]) -> list[str]:
    if not classes:
        return [f"Validation loss {found.loss:.4f}."]
    rows = [
        ("all classes", sum(found.right), sum(found.totals)),
        *((name, found.right[number], found.totals[number]) for number, name in enumerate(classes)),
    ]
    return [
        "| validation texts of | right | of | share (95 % interval) |",
        "|---|---|---|---|",
        *(f"| {_cell(name)} | {right} | {total} | {_share(right, total)} |" for name, right, total in rows),
    ]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _share(right: int, total: int) -> str:
    if not total:
        return "–"
    share = wilson(right, total)
    return f"{share['value']:.4f} ({share['low']:.3f} to {share['high']:.3f})"


def _how_to_load(folder: str, classifies: bool) -> list[str]:
    if not classifies:
        return []
    return [
        "## Use",
        "",
        f"    stockade attack {folder} DATA --attack pwws",
        "",
        "    import stockade as st",
        f'    st.load_model("{folder}").predict_proba(["a text"])',
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
