"""`stockade train`: train a classifier of the zoo, or train a model further, on data."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.inputs import column_options, data_options
from stockade.core.errors import OptionError

if TYPE_CHECKING:
    from stockade.training.job import Trained

_SOURCES = ("glove", "word2vec", "fasttext", "elmo", "checkpoint")
_OPTIONS = {
    "epochs": "epochs",
    "batch": "batch",
    "lr": "learning_rate",
    "patience": "patience",
    "schedule": "schedule",
    "seed": "seed",
    "max_length": "max_length",
    "class_weights": "class_weights",
    "checkpoint_minutes": "checkpoint_minutes",
    "precision": "precision",
}


@click.command("train")
@click.argument("data", required=False)
@click.option("--arch", metavar="NAME", help="An architecture, such as CNN-W-GloVe-2, BiLSTM-C-Random-1 or MiniLM-L6.")
@click.option("--model", metavar="FOLDER", help="A trained model to train further, instead of --arch.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder for the trained model.  [required]")
@click.option("--validation", metavar="DATA", help="Data to validate on.  [default: a tenth of each class, held out]")
@click.option("--preset", help="Training options by name: zoo-word, minilm, ranmask …  [default: by architecture]")
@click.option(
    "--defense",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="A defense to train with, or to put around the model; repeat from the outside in.",
)
@click.option("--epochs", type=int, help="Times through the data.")
@click.option("--batch", type=int, help="Texts per step.")
@click.option("--lr", type=float, help="The learning rate.")
@click.option("--patience", metavar="N", help="Stop after N epochs without a better validation score; none: never.")
@click.option("--schedule", help="How the learning rate falls: linear, cosine, constant.")
@click.option("--max-length", metavar="N", help="Cut texts to N tokens; none: to what the model can read.")
@click.option("--class-weights", metavar="WEIGHTS", help="none, balanced, or a number per class such as 1,2.5.")
@click.option("--precision", help="auto, float32, bfloat16, float16.")
@click.option("--seed", type=int, help="Decides the first weights, the batches and the texts held out.  [default: 0]")
@click.option("--device", help="cpu, cuda, mps.  [default: the best there is]")
@click.option("--checkpoint-minutes", type=float, help="Save at least so often, beside every end of an epoch.")
@click.option("--labels", help="Class names in the order of the data's labels, separated by commas.")
@click.option("--glove", metavar="FILE", help="GloVe vectors of yours.")
@click.option("--word2vec", metavar="FILE", help="word2vec vectors of yours.")
@click.option("--fasttext", metavar="FILE", help="fastText vectors of yours.")
@click.option("--elmo", metavar="FOLDER", help="A language model trained with --arch biLM, or published ELMo weights.")
@click.option("--checkpoint", metavar="NAME", help="The pre-trained transformer to begin at: a folder or hub name.")
@click.option("--set", "sizes", multiple=True, metavar="KEY=VALUE", help="A size of the architecture; repeat for more.")
@click.option("--option", "more", multiple=True, metavar="KEY=VALUE", help="Any other training option; repeat.")
@click.option("--resume", is_flag=True, help="Go on with the training in --out; the rest may be left out.")
@column_options
def command(data: str | None, **given: Any) -> int:
    """Train a text classifier on DATA.

    DATA is a csv, tsv, jsonl or parquet file, hf:NAME[:SPLIT], or builtin:reviews:train. The folder that comes out is a
    Hugging Face model folder with a model card, the history of the training and a page with its curves.

    \b
    stockade train reviews.csv --arch CNN-W-GloVe-1 --out models/cnn
    stockade train builtin:reviews:train --arch MiniLM-L6 --epochs 3 --out models/minilm
    stockade train --resume --out models/minilm
    """
    from stockade import api
    from stockade.cli.progress import watch_training

    out = given["out"]
    if out is None:
        raise OptionError("The folder for the trained model is missing: name it with --out, such as --out models/m")
    labels = [name.strip() for name in given["labels"].split(",")] if given["labels"] else None
    options = {name: given[key] for key, name in _OPTIONS.items() if given[key] is not None}
    try:
        with watch_training() as observer:
            trained = api.train(
                data,
                given["arch"],
                out=out,
                model=given["model"],
                validation=given["validation"],
                preset=given["preset"],
                labels=labels,
                sources={name: given[name] for name in _SOURCES if given[name] is not None},
                sizes={name: _value(text) for name, text in _pairs("--set", given["sizes"]).items()},
                defenses=given["defense"],
                resume=given["resume"],
                device=given["device"],
                data_options=data_options(given),
                observer=observer,
                **{**options, **_pairs("--option", given["more"])},
            )
    except KeyboardInterrupt:
        begun = (out / "training.json").exists()
        advice = f"; go on with: stockade train --resume --out {out}" if begun else " before the training began."
        click.echo(f"stockade: interrupted{advice}", err=True)
        return 130
    if os.environ.get("RANK", "0") == "0":
        _print(trained, data or "DATA")
        if given["model"] is not None and not given["defense"]:
            _tell_what_is_left_out(Path(given["model"]), trained.folder)
    return 0


def _tell_what_is_left_out(before: Path, folder: Path) -> None:
    """A model that is trained further without its defenses is no longer trained for them."""
    from stockade.defenses.folders import kept_defenses

    kept = [one.name for one in kept_defenses(before)]
    if kept:
        options = " ".join(f"--defense {name}" for name in kept)
        click.echo(f"{before} has a defense ({', '.join(kept)}), {folder} has none: to keep it, train with {options}")


def _pairs(option: str, items: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise OptionError(f"{option} {item} is not of the form KEY=VALUE, such as {option} dropout=0.3.")
        found[key.strip().replace("-", "_")] = value.strip()
    return found


def _value(text: str) -> Any:
    """A number, true or false, a list such as 3,4,5; anything else is the text itself."""
    for written in (text, f"[{text}]" if "," in text else text):
        try:
            return json.loads(written)
        except ValueError:
            continue
    return text


def _print(trained: Trained, data: str) -> None:
    for warning in trained.warnings:
        click.echo(f"Warning: {warning}", err=True)
    best = trained.best
    if trained.interval is None:
        score = f"validation loss {best.validation.loss:.4f}"
    else:
        low, high = trained.interval
        texts = f"{sum(best.validation.totals)} texts{_read_as(trained.folder)}"
        score = f"accuracy {trained.accuracy:.4f} ({low:.4f} to {high:.4f}) on {texts}"
    click.echo(f"{score}, epoch {best.number} of {len(trained.history)}, {trained.seconds:.1f} seconds")
    click.echo(f"{trained.folder}: the model, README.md, training.html")
    if trained.classes:
        click.echo(f"Next: stockade attack {trained.folder} {data} --attack pwws --limit 100")


def _read_as(folder: Path) -> str:
    """Models that are asked about altered texts were judged on such."""
    from stockade.defenses.folders import kept_defenses

    names = [one.name for one in kept_defenses(folder) if one.entry.alters_training_texts]
    return f" as {' and '.join(names)} shows them" if names else ""
