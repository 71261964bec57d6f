"""`stockade study NAME`: a command for each study, whose options are the fields of its spec."""

from __future__ import annotations

import types
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import click
from click.core import ParameterSource

from stockade.cli.inputs import (
    budget_option,
    data_options,
    input_options,
    job_options,
    limit_option,
    model_options,
    parallel_options,
    refuse_beside_resume,
    seed_option,
    speed_options,
)

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from stockade.studies.frame import StudySpec

_PASSED_ON = ("limit", "seed", "budget", "max_words", "mlm", "encoder")
_TYPES: Mapping[Any, Any] = {int: int, float: float, Path: click.Path(path_type=Path)}


_workers_option = click.option(
    "--workers", type=int, default=1, show_default=True, help="Models at once, each in a process of its own."
)


class Studies(click.Group):
    """The studies as commands, each made from its spec when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from stockade.studies import study_names

        return study_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        from stockade.studies import find_study

        return _command(find_study(cmd_name).spec)


@click.group("study", cls=Studies)
def command() -> None:
    """Run a study: the attacks of a paper on the same texts, and what they say together.

    `stockade study NAME --help` shows what each takes. MODEL and DATA are as for `stockade attack`.

    \b
    stockade study bae builtin:sentiment-cnn builtin:reviews --limit 100 --score-first --out runs/bae
    stockade study bae --resume --out runs/bae --no-fluency
    stockade study bae --cell cnn/mr=models/cnn-mr@mr.csv --cell cnn/trec=models/cnn-trec@trec.csv --out runs/grid
    stockade study attention builtin:sentiment-bert builtin:sentiment-lstm builtin:reviews --limit 100 --out runs/one
    stockade study masking models/m03 models/m08 builtin:reviews --attack pwws --limit 100 --out runs/rates
    stockade study transfer test.csv --pool default --train-data train.csv --attacked 200 --out runs/transfer
    stockade study translation models/mt-lstm models/mt pairs.csv --searched 200 --out runs/translators
    """


def _command(spec: type[StudySpec]) -> click.Command:
    """The command of one study."""

    @click.pass_context
    def run(context: click.Context, /, inputs: tuple[str, ...], **options: Any) -> int:
        return _run(context, spec, inputs, options)

    models = "MODEL…" if spec.several_models else "MODEL"
    function: Any = run
    for add in (input_options, job_options, *([parallel_options] if spec.parallel else [])):
        function = add(function)
    for name in reversed(spec.options()):
        function = _option(name, spec.model_fields[name])(function)
    for option in (*([_workers_option] if spec.uses_workers else []), budget_option, seed_option, limit_option):
        function = option(function)
    function = click.argument("inputs", metavar=f"[{models} DATA]", nargs=-1)(function)
    what = f"{spec.summary}\n\nMODEL and DATA are as for `stockade attack`."
    return click.command(spec.study(), help=what, short_help=spec.summary)(function)


def _run(context: click.Context, spec: type[StudySpec], inputs: tuple[str, ...], options: dict[str, Any]) -> int:
    from stockade.cli.finish import output_folder, run_job
    from stockade.studies import study

    out = output_folder(options["out"], spec.kind, options["resume"])
    chosen = {name: _value(options[name]) for name in spec.options() if _is_given(context, name)}
    common = {"out": out, "resume": options["resume"], "trust": options["trust_run"], **speed_options(options)}
    common |= {name: options[name] for name in ("workers",) if name in options}
    models, data = (list(inputs[:-1]), inputs[-1]) if len(inputs) > 1 else (list(inputs) or None, None)
    if options["resume"] and not inputs:
        refuse_beside_resume(context, accepted=spec.options())
    else:
        common |= {name: options[name] for name in _PASSED_ON}
        common |= {"data_options": data_options(options), "model_options": model_options(options)}
    return run_job(out, lambda observer: study(spec.study(), models, data, observer=observer, **common, **chosen))


def _option(name: str, field: FieldInfo) -> Any:
    """The option of a field: a flag for a truth value, repeatable for a list, else of the field's type."""
    from stockade.studies.frame import Option

    written = next((item for item in field.metadata if isinstance(item, Option)), Option())
    flag, kind = written.flag or f"--{name.replace('_', '-')}", _plain_type(field.annotation)
    settings: dict[str, Any] = {"help": field.description}
    if kind is bool:
        flag = f"{flag}/--no-{flag[2:]}" if field.default else flag
        return click.option(flag, name, is_flag=True, default=bool(field.default), **settings)
    if get_origin(kind) in (tuple, Mapping):
        settings |= {"multiple": True, "type": _TYPES.get(_plain_type(get_args(kind)[0]))}
    else:
        takes = click.Choice(get_args(kind)) if get_origin(kind) is Literal else _TYPES.get(kind)
        settings |= {"default": field.default, "type": takes, "show_default": field.default is not None}
    return click.option(flag, name, metavar=written.metavar or None, **settings)


def _plain_type(annotation: Any) -> Any:
    """What an option takes besides None: `int` of `Count | None`."""
    if hasattr(annotation, "__metadata__"):
        return _plain_type(annotation.__origin__)
    if get_origin(annotation) in (Union, types.UnionType):
        return _plain_type(next(kind for kind in get_args(annotation) if kind is not type(None)))
    return annotation


def _value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _is_given(context: click.Context, option: str) -> bool:
    return context.get_parameter_source(option) is ParameterSource.COMMANDLINE
