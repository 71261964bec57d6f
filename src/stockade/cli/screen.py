"""What commands say besides reports: every message and name goes through here, and nothing in it can act."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from stockade.core.errors import OptionError
from stockade.core.sanitize import one_line, terminal


def say(*lines: str, err: bool = False) -> None:
    """Print lines; what a terminal would act upon is made visible.

    Parameters
    ----------
    *lines
        Each may hold names, paths and texts of unknown origin, and stays one line.
    err
        Whether they go to standard error.
    """
    for line in lines:
        click.echo(one_line(line), err=err)


def for_screen(rows: Iterable[Mapping[str, Any]], format: str) -> Iterable[Mapping[str, Any]]:
    """The rows of an export to standard output: to the letter for a file or a pipe, harmless for a terminal.

    Parameters
    ----------
    rows
        What is exported.
    format
        As what; JSON lines are harmless as they are.
    """
    if not sys.stdout.isatty() or format == "jsonl":
        return rows
    if format != "csv":
        raise OptionError(f"{format} is not for a terminal: name a file with --out, or use a pipe.")
    return ({name: terminal(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows)
