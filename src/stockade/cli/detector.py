"""`stockade detector`: fit a detector of attacked texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.inputs import loading_options, model_options
from stockade.cli.screen import say
from stockade.core.errors import OptionError

if TYPE_CHECKING:
    from stockade.defenses.detector import Fitted

_PASSED_ON = ("false_positives", "features", "rate", "kept", "copies", "rare", "seed", "mlm")


@click.command("detector")
@click.argument("model")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN…")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write (JSON).")
@click.option(
    "--false-positives",
    type=float,
    default=0.05,
    show_default=True,
    help="The share of clean texts that may be taken to be attacked.",
)
@click.option(
    "--feature", "features", multiple=True, metavar="NAME", help="A number to look at; repeat.  [default: all seven]"
)
@click.option("--rate", type=float, default=0.3, show_default=True, help="The share of words hidden in a copy.")
@click.option("--kept", type=int, default=1, show_default=True, help="The fewest words that stay in a copy.")
@click.option("--copies", type=int, default=100, show_default=True, help="Masked copies per text.")
@click.option("--rare", type=int, default=1, show_default=True, help="How often a rare word comes at most.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides every masked copy.")
@click.option("--mlm", help="Another masked LM to be surprised: a folder or hub name.")
@loading_options
def command(model: str, runs: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Fit a detector of attacked texts, for the defense route, on RUNs: attacks on development texts.

    What the runs attacked are the clean texts, what fooled their model the attacked ones. MODEL is looked at without
    its defenses.

    \b
    stockade attack models/m dev.csv --attack textfooler --defense none --out runs/dev
    stockade detector models/m runs/dev --out detector.json
    stockade attack models/m test.csv --attack textfooler --defense route:detector=detector.json --out runs/r
    """
    from stockade.cli.progress import watch
    from stockade.workflows.detector import fit_detector

    _refuse_unwritable(out)
    with watch() as observer:
        detector = fit_detector(
            model,
            runs,
            model_options=model_options(options),
            observer=observer,
            **{name: options[name] for name in _PASSED_ON},
        )
    detector.save(out)
    assert detector.fitted is not None
    _print(detector.fitted, out)


def _refuse_unwritable(out: Path) -> None:
    if out.is_dir():
        raise OptionError(f"{out} is a folder; name a file with --out, such as {out / 'detector.json'}.")
    if not out.resolve().parent.is_dir():
        raise OptionError(f"There is no folder {out.resolve().parent} to write {out.name} to; make it first.")


def _print(fitted: Fitted, out: Path) -> None:
    say(
        f"{out}: fitted on {fitted.clean} clean and {fitted.attacked} attacked texts. Of these it takes "
        f"{fitted.false_alarms} clean and {fitted.caught} attacked ones to be attacked; on new texts it is less exact."
    )
    if fitted.caught < fitted.attacked / 2:
        say("Most attacked texts pass it: try all features, more copies, or runs with more texts.")
    say(f"--defense route:detector={out}")
