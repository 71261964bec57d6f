"""What commands print of certificates."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from stockade.certificates.run import CertificateRun
from stockade.cli.tables import console
from stockade.report.numbers import number

MOST_RADII = 6


def print_certificates(run: CertificateRun) -> None:
    """The run's numbers, what they mean, and where everything is."""
    screen = console()
    screen.print(certificate_table([run]))
    print_threats(screen, run)
    if not run.summary["complete"]:
        screen.print(f"Not complete; go on with: stockade certify --resume --out {run.folder}", soft_wrap=True)
    page = run.folder / "report.html"
    screen.print(f"Certificates: {run.folder}  ·  page: {page}  ·  check: stockade verify {run.folder}", soft_wrap=True)


def certificate_table(runs: Sequence[CertificateRun]) -> Table:
    """One line per method: the share of texts whose true class is certified at each radius, in percent; of any class
    where the data have no labels.
    """
    found = [(run, key, numbers) for run in runs for key, numbers in run.summary["methods"].items()]
    longest = min(MOST_RADII, max((len(numbers["curve"]) for _, _, numbers in found), default=1))
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    table.add_column("method", overflow="fold")
    radii = [f"d≥{radius}" for radius in range(longest)]
    for name in ("n", "abstained", "wrong", *radii, "median d", "copies", "sec."):
        table.add_column(name, justify="right", no_wrap=True)
    for _, key, numbers in found:
        shares = [f"{100 * point['share']:.1f}%" for point in numbers["curve"][:longest]]
        table.add_row(
            key if numbers["sound"] else f"{key} (NOT a certificate)",
            str(numbers["n"]) + (f" +{numbers['errors']} errors" if numbers["errors"] else ""),
            str(numbers["abstained"]),
            "–" if numbers["wrong"] is None else str(numbers["wrong"]),
            *shares,
            *["0.0%"] * (longest - len(shares)),
            "–" if numbers["median_radius"] is None else str(numbers["median_radius"]),
            number(numbers["mean_copies"], 0),
            number(numbers["seconds"]),
        )
    return table


def print_threats(screen: Console, run: CertificateRun) -> None:
    """What a radius of d says, for each method."""
    together = "all texts together" if run.summary["whole_set"] else "each text"
    for key, numbers in run.summary["methods"].items():
        alpha = numbers["alpha"] if numbers["sound"] else None
        chance = "" if alpha is None else f"; wrong with a chance of at most {alpha:g} for {together}"
        screen.print(Line.assemble((key, "bold"), f": {numbers['threat']}{chance}"), soft_wrap=True)
        if numbers["truncated"]:
            screen.print(
                f"{numbers['truncated']} texts are longer than the model reads: every copy is cut alike, so the "
                "certificates hold, and words beyond the cut say nothing to the model.",
                soft_wrap=True,
            )
