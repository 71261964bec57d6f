"""The options that every command with MODEL and DATA takes, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from stockade.core.errors import InputError, OptionError

if TYPE_CHECKING:
    from stockade.jobs import DataOptions, ModelOptions
    from stockade.runs.run import Run

Command = TypeVar("Command", bound=Callable[..., Any])

_TAKEN_WITH_RESUME = ("resume", "out", "concurrency", "batch_tokens")

_COLUMNS = (
    click.option("--text-column", help="The column of the text (of the hypothesis in pairs)."),
    click.option("--label-column", help="The column of the label."),
    click.option("--premise-column", help="The column of the premise: the data are pairs."),
    click.option(
        "--label-map", multiple=True, metavar="DATA=MODEL", help="The model's class for a label of the data; repeat."
    ),
)
_OUTPUTS = (
    click.option("--labels", help="Class names in the order of the model's outputs, separated by commas."),
    click.option(
        "--outputs",
        type=click.Choice(["probabilities", "logits"]),
        default="probabilities",
        help="What a callable returns.",
    ),
    click.option("--device", help="cpu, cuda, mps.  [default: the best there is]"),
)
_TRUST = (
    click.option("--allow-pickle", is_flag=True, help="Load weights that can run code. Only for files you trust."),
    click.option(
        "--trust-remote-code", is_flag=True, help="Run the code that comes with a model. Only for models you trust."
    ),
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


defense_option = click.option(
    "--defense",
    multiple=True,
    metavar="NAME[@PRESET][:OPTION=VALUE,…]",
    help="A defense around the model; repeat from the outside in; none: the bare model.  [default: its folder's]",
)


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


def data_options(options: Mapping[str, Any], limit: int | None = None) -> DataOptions:
    """How to read DATA."""
    from stockade.jobs import DataOptions

    pairs = dict(_pair(item) for item in options["label_map"])
    return DataOptions(options["text_column"], options["label_column"], options["premise_column"], pairs, limit)


def _pair(item: str) -> tuple[str, str]:
    data_label, equals, model_label = item.partition("=")
    if not equals:
        raise OptionError(f"--label-map {item} is not of the form DATA=MODEL, such as --label-map spam=1.")
    return data_label.strip(), model_label.strip()


def model_options(options: Mapping[str, Any]) -> ModelOptions:
    """How to load MODEL."""
    from stockade.jobs import ModelOptions

    labels = [name.strip() for name in options["labels"].split(",")] if options["labels"] else None
    return ModelOptions(
        labels,
        options["outputs"],
        options["device"],
        options["allow_pickle"],
        options["trust_remote_code"],
        options["defense"],
    )


def model_and_data(model: str | None, data: str | None, example: str) -> tuple[str, str]:
    """Both, where neither may be left out; the example shows how."""
    if model is None or data is None:
        missing = "MODEL and DATA are" if model is None else "DATA is"
        raise OptionError(f"{missing} missing, as in: {example}")
    return model, data


def refuse_beside_resume(context: click.Context, taken: Collection[str] = ()) -> None:
    """A run that is resumed by its folder alone takes everything from there: options that would have no effect are
    refused, those that only change its speed and those in `taken` are not.
    """
    for name, value in context.params.items():
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and value and name not in (*_TAKEN_WITH_RESUME, *taken):
            option = next(one.opts[0] for one in context.command.params if one.name == name)
            raise OptionError(
                f"{option} has no effect on what is resumed without MODEL and DATA: everything is as it was begun. "
                "Leave it out, or start anew with another --out."
            )


def refuse_if_all_failed(run: Run) -> None:
    """A run without a single result is an error, and its first reason says which."""
    for name, numbers in run.summary["attacks"].items():
        if numbers["errors"] and not numbers["n"]:
            reason = next(run.records(name, "error")).reason
            raise InputError(f"{name}: all {numbers['errors']} examples ended in an error; the first: {reason}")
