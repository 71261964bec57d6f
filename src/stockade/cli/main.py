"""The `stockade` command: finds commands lazily and turns errors into one sentence and an exit code."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import sys
from types import FrameType
from typing import Any

import click

from stockade import __version__
from stockade.cli.screen import say
from stockade.core.errors import StockadeError, Terminated

COMMANDS = (
    "attack",
    "certify",
    "demo",
    "detector",
    "doctor",
    "evaluate",
    "export",
    "lexicon",
    "ls",
    "report",
    "resume",
    "rules",
    "show",
    "study",
    "train",
    "tune",
    "verify",
)
EXIT_ERROR, EXIT_INTERRUPTED, EXIT_TERMINATED = 2, 130, 143


class LazyGroup(click.Group):
    """A group whose commands are the modules of this package, imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"stockade.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f' Did you mean "{near[0]}"?' if near else ""
            raise click.UsageError(f'There is no command "{args[0]}" (found: {", ".join(COMMANDS)}).{hint}')
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="stockade")
def cli() -> None:
    """Red-team, harden and certify text classifiers.

    Start with `stockade demo`; then point `stockade attack MODEL DATA --attack pwws` at a model and data of your own.
    """


def main() -> None:
    """Run the command line. Errors meant for users end with exit code 2 and one sentence; anything else is a bug."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning threads slow small models tenfold on a busy machine
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = cli.main(prog_name="stockade", standalone_mode=False)
    except StockadeError as error:
        _leave(f"stockade: {error}", EXIT_ERROR)
    except click.ClickException as error:
        _leave(f"stockade: {error.format_message()}", EXIT_ERROR)
    except (click.Abort, KeyboardInterrupt) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # click takes the end of a file for Ctrl-D
            _leave("stockade: a file ends before it should. Copy or download it again.", EXIT_ERROR)
        if isinstance(stopped.__cause__ or stopped, Terminated):
            _leave("stockade: terminated.", EXIT_TERMINATED)
        _leave("stockade: interrupted.", EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone, as in `stockade export … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _terminate(signum: int, frame: FrameType | None) -> None:
    """End like Ctrl-C, so that a job can say how to go on; a second signal ends the process at once."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise Terminated


def _leave(message: str, code: int) -> None:
    say(message, err=True)
    sys.exit(code)
