"""The options that commands with MODEL and DATA share, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.core import ParameterSource

from stockade.core.errors import OptionError
from stockade.core.pairs import Sides

if TYPE_CHECKING:
    from stockade.experiment.inputs import DataOptions, ModelOptions

Command = TypeVar("Command", bound=Callable[..., Any])

_TAKEN_WITH_RESUME = ("resume", "out", "concurrency", "batch_tokens", "seconds", "workers", "ray", "trust_run")

_COLUMNS = (
    click.option("--text-column", help="The column of the text (of the hypothesis in pairs)."),
    click.option("--label-column", help="The column of the label."),
    click.option("--premise-column", help="The column of the premise: the data are pairs."),
    click.option(
        "--label-map", multiple=True, metavar="DATA=MODEL", help="The model's class for a label of the data; repeat."
    ),
    click.option("--encoding", help="The encoding of a text file, such as latin-1.  [default: utf-8]"),
    click.option("--delimiter", help="Between the cells of a csv file, such as ; or tab.  [default: by extension]"),
    click.option("--language", metavar="CODE", help="The language of the texts, such as de.  [default: en]"),
    click.option("--skip-bad-rows", is_flag=True, help="Leave out rows that cannot be read, and say how many."),
)
_OUTPUTS = (
    click.option("--labels", help="Class names in the order of the model's outputs, separated by commas."),
    click.option(
        "--outputs",
        type=click.Choice(["probabilities", "logits", "labels"]),
        help="What the model answers with.  [default: what its kind says, or probabilities]",
    ),
    click.option("--device", help="cpu, cuda, mps.  [default: the best there is]"),
    click.option(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="How long a call of a python: model, in a process of its own, or of a service may take.",
    ),
    click.option(
        "--setting",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of this kind of model (docs/models.md), or @FILE for a TOML or JSON file of them; repeat.",
    ),
    click.option("--max-cost", type=float, help="The most that the queries of a model with prices may cost."),
)
_TRUST = (
    click.option("--allow-pickle", is_flag=True, help="Load weights that can run code. Only for files you trust."),
    click.option(
        "--trust-remote-code", is_flag=True, help="Run the code that comes with a model. Only for models you trust."
    ),
    click.option("--allow-private", is_flag=True, help="Ask services at addresses of this machine or its network."),
)
_OPTIONS = (
    *_COLUMNS,
    *_OUTPUTS,
    click.option(
        "--concurrency", type=int, default=64, show_default=True, help="Searches in flight; changes speed, not results."
    ),
    click.option("--batch-tokens", type=int, help="Tokens per batch.  [default: tuned]"),
    click.option("--max-words", type=int, default=5000, show_default=True, help="Longer texts are recorded as errors."),
    click.option("--mlm", help="Another masked LM for the attacks that ask one: a folder or hub name."),
    click.option("--encoder", help="Another sentence encoder: a sentence-transformers folder or name."),
    *_TRUST,
)


def _share_of_words(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    from stockade.attacks.word_attack import check_max_changed

    check_max_changed(value)
    return value


max_changed_option = click.option(
    "--max-changed",
    type=float,
    callback=_share_of_words,
    help="The largest share of words that may change, such as 0.2.",
)
sides_option = click.option(
    "--sides",
    type=click.Choice(get_args(Sides)),
    default="hypothesis",
    show_default=True,
    help="Which sides of pairs are edited.",
)


_PARALLEL = (
    click.option("--source-column", help="The column of the source sentences, for a translator."),
    click.option("--target-column", help="The column of their translations, for a translator."),
)


def parallel_options(command: Command) -> Command:
    """Add the options that say how parallel sentences are read."""
    for option in reversed(_PARALLEL):
        command = option(command)
    return command


defense_option = click.option(
    "--defense",
    "defenses",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="A defense around the model; repeat from the outside in; none: the bare model.  [default: its folder's]",
)


unlabelled_option = click.option(
    "--unlabelled",
    "--no-labels",
    "unlabelled",
    is_flag=True,
    help="The data have no labels: the model's own predictions are attacked or certified.",
)
text_option = click.option("--text", metavar="SENTENCE", help="One sentence in place of DATA; it needs no label.")


limit_option = click.option("--limit", type=int, help="Take a seeded sample of this many rows.  [default: all]")
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Decides the sample and every random choice."
)
budget_option = click.option("--budget", type=int, help="The most queries per text.")
constraint_option = click.option(
    "--constraint",
    metavar="EXPRESSION",
    help="What candidates must keep, such as 'same-pos & similarity(cosine, 0.9) & edit-distance(30)'.",
)
attack_option = click.option(
    "--attack",
    "attacks",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="An attack; repeat for more.",
)
out_option = click.option(
    "--out", type=click.Path(path_type=Path), help="The job's folder.  [default: runs/COMMAND-DATE-TIME]"
)
resume_options = (
    click.option("--resume", is_flag=True, help="Go on with the job in --out; MODEL and DATA may be left out."),
    click.option(
        "--trust-run", is_flag=True, help="With --resume: run code that the folder names. Only if you trust it."
    ),
)


def job_options(command: Command) -> Command:
    """Add --out, --resume and --trust-run."""
    for option in reversed((out_option, *resume_options)):
        command = option(command)
    return command


def input_options(command: Command) -> Command:
    """Add the options, in the order they are listed here."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def column_options(command: Command) -> Command:
    """Add only the options that say how DATA is read."""
    for option in reversed(_COLUMNS):
        command = option(command)
    return command


def loading_options(command: Command) -> Command:
    """Add only the options that say how MODEL is loaded."""
    for option in reversed((*_OUTPUTS, *_TRUST)):
        command = option(command)
    return command


def data_options(options: Mapping[str, Any]) -> DataOptions:
    """How to read DATA."""
    from stockade.experiment.inputs import DataOptions

    return DataOptions(
        text_column=options["text_column"],
        label_column=options["label_column"],
        premise_column=options["premise_column"],
        label_map=dict(_pair(item) for item in options["label_map"]),
        source_column=options.get("source_column"),
        target_column=options.get("target_column"),
        encoding=options["encoding"],
        delimiter=options["delimiter"],
        skip_bad_rows=options["skip_bad_rows"],
        language=options["language"],
    )


def _pair(item: str) -> tuple[str, str]:
    data_label, equals, model_label = item.partition("=")
    if not equals:
        raise OptionError(f"--label-map {item} is not of the form DATA=MODEL, such as --label-map spam=1.")
    return data_label.strip(), model_label.strip()


def read_pairs(option: str, items: Collection[str]) -> dict[str, str]:
    """Options that were written as KEY=VALUE.

    Parameters
    ----------
    option
        What the command line calls them, for errors.
    items
        As they were written.
    """
    values = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise OptionError(f"{option} {item} is not of the form KEY=VALUE, such as {option} dropout=0.3.")
        values[key.strip().replace("-", "_")] = value.strip()
    return values


def model_options(options: Mapping[str, Any]) -> ModelOptions:
    """How to load MODEL."""
    from stockade.experiment.inputs import ModelOptions
    from stockade.models.settings import read_settings

    return ModelOptions(
        labels=label_names(options["labels"]),
        outputs=options["outputs"],
        device=options["device"],
        allow_pickle=options["allow_pickle"],
        trust_remote_code=options["trust_remote_code"],
        timeout=options["timeout"],
        settings=read_settings(options["settings"]),
        allow_private=options["allow_private"],
        max_cost=options["max_cost"],
    )


def label_names(labels: str | None) -> list[str] | None:
    """Class names that are separated by commas."""
    return [name.strip() for name in labels.split(",")] if labels else None


def speed_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """What changes how fast a job is, never its results."""
    return {name: options[name] for name in ("concurrency", "batch_tokens")}


def model_and_data(model: str | None, data: str | None, example: str) -> tuple[str, str]:
    """Both, where neither may be left out; the example shows how."""
    if model is None or data is None:
        missing = "MODEL and DATA are" if model is None else "DATA is"
        raise OptionError(f"{missing} missing, as in: {example}")
    return model, data


def with_text(data: str | None, options: dict[str, Any]) -> str | None:
    """DATA, or the sentence of --text in its place, which has no label."""
    if options["text"] is None:
        return data
    if data is not None:
        raise OptionError(f"Both --text and DATA ({data}) say what to read: leave out one of the two.")
    from stockade.datasets.load import ONE_TEXT

    options["unlabelled"] = True
    return f"{ONE_TEXT}{options['text']}"


def refuse_beside_resume(context: click.Context, accepted: Collection[str] = ()) -> None:
    """A job that is resumed by its folder alone takes everything from there: options that would have no effect are
    refused; those that only change its speed, and those in `accepted`, are not.
    """
    for name, value in context.params.items():
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and value and name not in (*_TAKEN_WITH_RESUME, *accepted):
            option = next(parameter.opts[0] for parameter in context.command.params if parameter.name == name)
            raise OptionError(
                f"{option} has no effect on a job that is resumed without MODEL and DATA: everything is taken from "
                "its folder. Leave it out, or start anew with another folder."
            )
