"""The README and the docs keep up with the program: commands, links, names; and they can be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from stockade.attacks.registry import make_attack
from stockade.certificates.registry import make_method
from stockade.cli.main import COMMANDS, cli
from stockade.core.errors import StockadeError
from stockade.defenses.registry import make_defense
from tests.docs.documents import PAGES, ROOT, Command, anchors, blocks, commands, links, name_of, prose_lines

every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)

_PLACEHOLDERS = {"NAME": "bae"}
_OF_THE_READERS = {"drop-vowels", "spelling"}
"""Methods that docs/extending tells its readers to write."""

_RETIRED = (
    r"--expectation|--whole-set|evaluation\.(html|json)|study\.(html|json)|tune\.(html|json)"
    r"|training\.(html|json)|plan\.json|certificates\.sqlite|st\.(Run|CertificateRun|Evaluation|Tuned|Trained)\b"
    r"|scheme=dealt|pushed_out|gone on with|in the mean at most"
)


def parsed(arguments: list[str], is_mention: bool) -> dict[str, Any]:
    """What the command line would be given, by the real options of the command; errors as a user would see them."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
        subcommand = command.get_command(context, _PLACEHOLDERS.get(name, name))
        assert subcommand is not None, f"there is no command {name}"
        command = subcommand
    if is_mention and (not arguments or "…" in arguments):
        return {}
    try:
        simplified = [re.sub(r"\$\w+", "5", argument.split("|")[0]) for argument in arguments]
        return command.make_context(command.name, simplified).params
    except click.MissingParameter:
        assert is_mention, "something is missing"
    except click.exceptions.Exit:  # --help, --version
        pass
    return {}


@every_page
def test_every_command_line_is_one_that_the_program_takes(page: Path) -> None:
    for command in commands(page):
        written = f"{name_of(page)}:{command.line}: stockade {' '.join(command.arguments)}"
        try:
            parsed(list(command.arguments), command.is_mention)
        except (click.ClickException, StockadeError, AssertionError) as error:
            message = error.format_message() if isinstance(error, click.ClickException) else str(error)
            pytest.fail(f"{written}\n{message}")


_MAKERS: tuple[tuple[str, Callable[..., object]], ...] = (
    ("attacks", make_attack),
    ("methods", make_method),
    ("defenses", make_defense),
)


@every_page
def test_every_method_that_a_command_names_exists_with_these_options(page: Path) -> None:
    for command in commands(page):
        params = parsed(list(command.arguments), command.is_mention)
        for parameter, make in _MAKERS:
            for chain in params.get(parameter) or ():
                for reference in chain.split("+") if command.arguments[0] == "evaluate" else [chain]:
                    if re.split("[@:]", reference)[0] not in {"none", "own", *_OF_THE_READERS}:
                        make(reference)


def test_every_command_is_shown_somewhere() -> None:
    shown = {command.arguments[0] for page in PAGES for command in commands(page) if command.arguments}
    assert set(COMMANDS) - shown == set()


def test_commands_are_found_in_code_and_in_sentences_and_unknown_options_are_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Try `stockade verify RUN`.\n\n```bash\nstockade attack M D \\\n    --limit 3  # few\n```\n\n    stockade ls\n",
        encoding="utf-8",
    )
    assert commands(page) == [
        Command(("attack", "M", "D", "--limit", "3"), 4, False),
        Command(("ls",), 8, False),
        Command(("verify", "RUN"), 0, True),
    ]
    assert parsed(["attack", "M", "D", "--limit", "3"], False)["limit"] == 3
    with pytest.raises(click.NoSuchOption):
        parsed(["certify", "M", "D", "--whole-set"], False)
    with pytest.raises(AssertionError, match="missing"):
        parsed(["detector", "M", "RUN"], False)


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} does not exist"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading among {sorted(anchors(target))}"


@every_page
def test_lines_can_be_read_in_a_terminal(page: Path) -> None:
    lines = prose_lines(page.read_text(encoding="utf-8"))
    assert [(number, len(line)) for number, line in lines if len(line) > 120] == []


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) != "docs/architecture.md"], ids=name_of)
def test_names_that_are_no_more_are_only_in_the_table_of_renames(page: Path) -> None:
    assert [match.group() for match in re.finditer(_RETIRED, page.read_text(encoding="utf-8"))] == []


def test_the_readme_leads_to_every_page_of_the_docs() -> None:
    reached, queue = set(), [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        if page not in reached:
            reached.add(page)
            targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
            queue += [target for target in targets if target.suffix == ".md"]
    assert set(PAGES) - reached == set()


def test_the_readme_shows_output_that_the_demo_prints() -> None:
    demo = (ROOT / "src/stockade/cli/demo.py").read_text(encoding="utf-8")
    (output,) = [block.code for block in blocks(ROOT / "README.md") if "Hardening sentiment-cnn" in block.code]
    for victim in ("sentiment-cnn", "sentiment-lstm", "sentiment-bert"):
        assert victim in output
    for sentence in ("Attacks that fail prove nothing.", "Everything comes with the installation.", "Try next"):
        assert sentence in demo
        assert sentence in output
