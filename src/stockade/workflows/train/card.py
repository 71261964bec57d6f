"""The model card: what a trained model is, what it was made from and how, how good it is, how to load it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stockade.core.sanitize import markdown, one_line
from stockade.core.statistics import wilson
from stockade.training.state import Evaluation
from stockade.workflows.train.result import TrainResult


def render_card(result: TrainResult) -> str:
    """The text of README.md."""
    spec, inputs, best, classes = result.manifest.spec, result.manifest.inputs, result.best, result.classes
    data, options = inputs["data"], spec["options"]
    texts = "pairs of sentences" if result.translates else "texts"
    held_out = "given apart" if data["validation_fingerprint"] else "held out of the training data"
    kind = "translator" if result.translates else "language model"
    about = f"text classifier of {len(classes)} classes ({', '.join(map(markdown, classes))})" if classes else kind
    lines = [
        f"# {markdown(str(spec['architecture'] or inputs['model']))}",
        "",
        f"A {about}, trained by Stockade.",
        "",
        *_accuracy(best.validation, classes),
        "",
        "## Data",
        "",
        f"- {markdown(str(spec['data']))}: {data['train_texts']} {texts} trained on, fingerprint "
        f"`{data['fingerprint']}`",
        f"- {data['validation_texts']} validation {texts}, {held_out}; the best epoch ({best.number}) was chosen on "
        "them, so the figures above flatter the model a little",
        *(f"- {markdown(warning)}" for warning in result.warnings),
        *_defenses(spec["defenses"] or ()),
        *(f"- {markdown(remark)}" for remark in result.remarks),
        "",
        "## Training",
        "",
        f"{best.number} of {options['epochs']} epochs, seed {options['seed']}, {best.seconds:.0f} seconds until then.",
        "",
        "| option | value |",
        "|---|---|",
        *(f"| {name} | {markdown(json.dumps(value))} |" for name, value in options.items()),
        "",
        "| package | version |",
        "|---|---|",
        *(f"| {name} | {version or '–'} |" for name, version in result.manifest.versions.items()),
        "",
        *_how_to_load(one_line(str(result.folder)), bool(classes), result.translates),
    ]
    return "\n".join(lines) + "\n"


def _defenses(defenses: Sequence[Mapping[str, Any]]) -> list[str]:
    if not defenses:
        return []
    names = " and ".join(markdown(defense["name"]) for defense in defenses)
    return [f"- trained with {names}; where that hides, removes or replaces words, validation texts were read so too"]


def _accuracy(validation: Evaluation, classes: Sequence[str]) -> list[str]:
    if validation.bleu is not None:
        return [
            f"BLEU {validation.bleu:.2f} on the validation sentences (sacrebleu, cased, greedy decoding); loss "
            f"{validation.loss:.4f}."
        ]
    if not classes:
        return [f"Validation loss {validation.loss:.4f}."]
    rows = [
        ("all classes", sum(validation.right), sum(validation.totals)),
        *((name, validation.right[number], validation.totals[number]) for number, name in enumerate(classes)),
    ]
    return [
        "| validation texts of | right | of | share (95 % interval) |",
        "|---|---|---|---|",
        *(f"| {markdown(name)} | {right} | {total} | {_share(right, total)} |" for name, right, total in rows),
    ]


def _share(right: int, total: int) -> str:
    if not total:
        return "–"
    share = wilson(right, total)
    return f"{share['value']:.4f} ({share['low']:.3f} to {share['high']:.3f})"


def _how_to_load(folder: str, classifies: bool, translates: bool) -> list[str]:
    if translates:
        return [
            "## Use",
            "",
            "    import stockade as st",
            f'    st.load_translator("{folder}").translate(["a sentence"])',
        ]
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
