"""`stockade train`: train a classifier of the zoo or a translator, or train a model further, on data."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from stockade.cli.inputs import (
    column_options,
    data_options,
    label_names,
    parallel_options,
    read_pairs,
    refuse_beside_resume,
)
from stockade.cli.screen import say
from stockade.core.errors import OptionError

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
@click.option("--task", help="classification or translation.  [default: what the architecture is for]")
@click.option(
    "--arch",
    metavar="NAME",
    help="An architecture, such as CNN-W-GloVe-2, BiLSTM-C-Random-1, MiniLM-L6, transformer-mt or bilstm-mt.",
)
@click.option("--model", metavar="FOLDER", help="A trained model to train further, instead of --arch.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder for the trained model.  [required]")
@click.option("--validation", metavar="DATA", help="Data to validate on.  [default: a tenth of each class, held out]")
@click.option(
    "--preset",
    help="Training options by name: zoo-word, minilm, ranmask …; translators: fast, study.  [default: by architecture]",
)
@click.option(
    "--defense",
    "defenses",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="A defense to train with, or to put around the model; repeat from the outside in.",
)
@click.option("--epochs", type=int, help="Times through the data.")
@click.option("--batch", type=int, help="Texts per step; target tokens for a translator.")
@click.option("--lr", type=float, help="The learning rate.")
@click.option("--patience", metavar="N", help="Stop after N epochs without a better validation score; none: never.")
@click.option("--schedule", help="How the learning rate falls: linear, cosine, inverse-sqrt, constant.")
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
@click.option("--trust-run", is_flag=True, help="With --resume: run code that the folder names. Only if you trust it.")
@column_options
@parallel_options
@click.pass_context
def command(context: click.Context, /, data: str | None, **options: Any) -> int:
    """Train a text classifier or a translator on DATA.

    DATA is a csv, tsv, jsonl or parquet file, hf:NAME[:SPLIT], or builtin:reviews:train; for a translator it has a
    column of sources and one of their translations. The folder that comes out is a Hugging Face model folder with a
    model card, the history of the training and a page with its curves.

    \b
    stockade train reviews.csv --arch CNN-W-GloVe-1 --out models/cnn
    stockade train builtin:reviews:train --arch MiniLM-L6 --epochs 3 --out models/minilm
    stockade train pairs.csv --task translation --arch transformer-mt --preset fast --out models/mt
    stockade resume models/minilm
    """
    from stockade.cli.finish import run_job
    from stockade.kinds import resume
    from stockade.workflows.train import is_classifier, train

    out = options["out"]
    if out is None:
        raise OptionError("The folder for the trained model is missing: name it with --out, such as --out models/m")
    if options["resume"] and data is None:
        refuse_beside_resume(context)
        return run_job(out, lambda observer: resume(out, trust=options["trust_run"], observer=observer))
    if data is None:
        raise OptionError("There is no data to train on: give some, as in: stockade train reviews.csv --arch …")
    training = {name: options[key] for key, name in _OPTIONS.items() if options[key] is not None}
    code = run_job(
        out,
        lambda observer: train(
            data,
            options["arch"],
            out=out,
            task=options["task"],
            model=options["model"],
            validation=options["validation"],
            preset=options["preset"],
            labels=label_names(options["labels"]),
            sources={name: options[name] for name in _SOURCES if options[name] is not None},
            sizes={name: _value(text) for name, text in read_pairs("--set", options["sizes"]).items()},
            defenses=list(options["defenses"]),
            resume=options["resume"],
            device=options["device"],
            data_options=replace(
                data_options(options),
                source_column=options["source_column"],
                target_column=options["target_column"],
            ),
            observer=observer,
            **{**training, **read_pairs("--option", options["more"])},
        ),
    )
    if code == 0 and os.environ.get("RANK", "0") == "0":
        if is_classifier(out):
            say(next_command(out, data, options))
        if options["model"] is not None and not options["defenses"]:
            _warn_of_lost_defenses(Path(options["model"]), out)
    return code


def next_command(out: Path, data: str, options: Mapping[str, Any]) -> str:
    """What to do with a trained classifier: attack it on texts that it was not trained on, with the same columns.

    Parameters
    ----------
    out
        The model's folder.
    data
        What it was trained on.
    options
        Those of the command.
    """
    unseen = f"{data.removesuffix(':train')}:test" if data.endswith(":train") else options["validation"]
    command = ["stockade", "attack", str(out), unseen or "TEST-DATA"]
    for name in ("text_column", "label_column", "premise_column", "encoding", "delimiter"):
        if options[name] is not None:
            command += [f"--{name.replace('_', '-')}", options[name]]
    for pair in options["label_map"]:
        command += ["--label-map", pair]
    command += ["--skip-bad-rows"] * options["skip_bad_rows"]
    remark = "" if unseen else f"   # TEST-DATA: texts like those of {data} that the model was not trained on"
    return f"Next: {shlex.join([*command, '--attack', 'pwws', '--limit', '100'])}{remark}"


def _warn_of_lost_defenses(before: Path, folder: Path) -> None:
    """A model that is trained further without its defenses is no longer trained for them."""
    from stockade.defenses.chain import load_defenses

    names = [defense.name for defense in load_defenses(before)]
    if names:
        flags = " ".join(f"--defense {name}" for name in names)
        say(f"{before} has a defense ({', '.join(names)}), {folder} has none: to keep it, train with {flags}")


def _value(text: str) -> Any:
    """A number, true or false, a list such as 3,4,5; anything else is the text itself."""
    for written in (text, f"[{text}]" if "," in text else text):
        try:
            return json.loads(written)
        except ValueError:
            continue
    return text
