"""Options from a TOML file: defaults for what does not stand on the command line.

A file may come from somebody else, so it decides numbers and names, never whose code is run: that stands on the command
line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from stockade.core.errors import OptionError

_TABLES = "attack_options"
_ONLY_WRITTEN = ("allow-pickle", "trust-remote-code", "trust-run")
_KINDS = {
    click.types.IntParamType: (int, "a whole number"),
    click.types.FloatParamType: (int | float, "a number"),
    click.types.BoolParamType: (bool, "true or false"),
    click.Path: (str, "a path"),
}
"""What TOML must hold for an option; a text for all others."""


def read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Make the options in a TOML file the defaults of a command; its tables of attacks go into `ctx.meta`."""
    if path is None:
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OptionError(f"{path} does not exist.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"{path} is not a TOML file that can be read ({error}).") from None
    tables = content.pop(_TABLES, {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise OptionError(f"{path} has {_TABLES} that are no tables, expected [{_TABLES}.NAME] with option = value.")
    parameters = {parameter.opts[0].lstrip("-"): parameter for parameter in ctx.command.params if parameter.opts}
    parameters |= {str(parameter.name).replace("_", "-"): parameter for parameter in ctx.command.params}
    written = {name.replace("_", "-"): value for name, value in content.items()}
    unknown = sorted(name for name in written if name not in parameters or name == "config")
    if unknown:
        raise OptionError(f"{path} sets {', '.join(unknown)}, which `stockade {ctx.info_name}` does not know.")
    _refuse_code(path, written, tables)
    for name, value in written.items():
        _check_kind(path, name, value, parameters[name])
    defaults = {str(parameters[name].name): value for name, value in written.items()}
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    ctx.meta[_TABLES] = tables
    return path


def _refuse_code(path: Path, written: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    from stockade.models.code import code_in

    flags = [name for name in _ONLY_WRITTEN if name in written]
    if flags:
        raise OptionError(f"{path} sets {', '.join(flags)}, which may run code: write --{flags[0]} yourself.")
    for text in _texts([written, tables]):
        code = code_in(text)
        if code is not None:
            raise OptionError(f"{path} names {code}, which is code: write it on the command line yourself.")


def _check_kind(path: Path, name: str, value: object, parameter: click.Parameter) -> None:
    kind, expected = _KINDS.get(type(parameter.type), (str | int | float, "a text"))
    several = parameter.multiple if isinstance(parameter, click.Option) else False
    values = value if several and isinstance(value, list) else [value]
    if several and not isinstance(value, list):
        raise OptionError(f"{path} sets {name} to {value!r:.60}, expected a list, as in {name} = [{value!r:.30}].")
    for item in values:
        if not isinstance(item, kind) or (isinstance(item, bool) and kind is not bool):
            raise OptionError(f"{path} sets {name} to {item!r:.60}, expected {expected}.")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for item in value.values() for text in _texts(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in _texts(item))
