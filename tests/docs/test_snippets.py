"""The Python snippets and the commands of the README and the docs run, in a folder with stand-ins for a reader's files.

Those of docs/extending have tests of their own, which also look at what they print.
"""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

import stockade as st
from stockade.cli.main import cli
from tests.docs.documents import PAGES, Block, Command, blocks, commands, name_of
from tests.docs.stand_ins import ROWS, lay_out

SLOW_SNIPPETS = {
    "docs/defenses/README.md#2": "trains",
    "docs/defenses/route.md#1": "attacks texts, then fits a detector with a masked LM",
    "docs/studies.md#1": "five attacks with a masked LM and a sentence encoder",
    "docs/studies.md#2": "five attacks on two models",
    "docs/studies.md#4": "certificates and attacks at two rates",
}
ATTENTION = "minutes per text: every word of the vocabulary is tried; tests/studies/attention runs it on small models"
SNIPPETS_NOT_RUN = {"docs/studies.md#3": ATTENTION}
COMMANDS_NOT_RUN = {
    r"attack (sklearn|onnx|https?|chat|zero-shot|spacy|fasttext):.*": "tests/models/contract runs every adapter",
    r"attack … .*": "an ellipsis",
    r"study attention .*": ATTENTION,
    r"study bae --resume .*--rating.*": "needs people who rate; tests/studies/bae/test_rating_sheet.py fills sheets in",
    r"study transfer .*--pool .*": "trains 40 models; tests/studies/transfer/test_pool.py runs a small pool",
    r"resume runs/one": ATTENTION,
    r"study translation .*--train-data .*": "trains two translators; tests/studies/translation does it",
    r"train nli.jsonl --arch BERT .*": "needs a pre-trained BERT",
    r"lexicon build mine.npz": "needs a package of 70 MB; the command below it writes the same file",
}
CHEAPER = {"--limit": "6", "--epochs": "1", "--trials": "2", "--seeds": "1"}
ADDED = {
    "attack": {"--limit": "6"},
    "certify": {"--limit": "6"},
    "evaluate": {"--limit": "3", "--budget": "40"},
    "tune": {"--budget": "40"},
}
STAND_INS = {
    "MODEL": "builtin:sentiment-cnn",
    "DATA": "reviews.csv",
    "MiniLM-L6": "CNN-W-Random-1",
    "builtin:reviews": "reviews.csv",
    "builtin:reviews:test": "reviews.csv",
    "builtin:reviews:train": "reviews.csv",
    "builtin:reviews:validation": "more.csv",
}
"""Values of options, options and words of a command that make it quick."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a reader works in: data, a function, model folders, and the repository's docs."""
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def python_snippets() -> list[tuple[str, Block]]:
    """Every Python block with its page and number, apart from those that have tests of their own."""
    return [
        (f"{name_of(page)}#{number}", block)
        for page in PAGES
        if "extending" not in page.parts
        for number, block in enumerate(blocks(page, "python"), 1)
    ]


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(block, id=name, marks=[pytest.mark.slow] if name in SLOW_SNIPPETS else [])
        for name, block in python_snippets()
        if name not in SNIPPETS_NOT_RUN
    ],
)
def test_the_python_snippet_runs(snippet: Block, desk: Path) -> None:
    path = desk / "snippet.py"
    path.write_text(re.sub(r"\blimit=\d{2,}", f"limit={ROWS}", snippet.code), encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")


def shell_blocks() -> list[tuple[str, list[Command]]]:
    """The commands of every shell block that can be run, apart from those of single attacks."""
    runnable = []
    for page in PAGES:
        in_code = [command for command in commands(page) if not command.is_mention]
        for block in blocks(page, "bash") if not _is_attack_page(page) else ():
            last = block.line + block.code.count("\n")
            lines = [command for command in in_code if block.line < command.line <= last and _can_run(command)]
            runnable += [(f"{name_of(page)}:{block.line}", lines)] if lines else []
    return runnable


def _is_attack_page(page: Path) -> bool:
    return page.parent.name in ("attacks", "extending") and page.name != "README.md"


def _can_run(command: Command) -> bool:
    written = " ".join(command.arguments)
    return not any(re.fullmatch(pattern, written) for pattern in COMMANDS_NOT_RUN)


def run(arguments: Sequence[str], out: str) -> None:
    """Run a command in this process, on less than the page says; `out` is its folder if it names none."""
    quick = [CHEAPER.get(before, STAND_INS.get(word, word)) for before, word in pairwise(("", *arguments))]
    if quick[0] == "train":
        shutil.rmtree(quick[quick.index("--out") + 1], ignore_errors=True)
    if "--resume" not in quick and quick[0] in ADDED:
        for option, value in {"--out": out, **ADDED[quick[0]]}.items():
            quick += [] if option in quick else [option, value]
    if "textfooler" in quick and "--budget" not in quick:
        quick += ["--budget", "40"]
    code = cli.main(quick, prog_name="stockade", standalone_mode=False)
    verdicts = (1, 3) if quick[:2] == ["rules", "test"] else ()
    assert code in (0, None, *verdicts), f"stockade {' '.join(quick)} ended with {code}"


@pytest.mark.slow
@pytest.mark.parametrize("lines", [pytest.param(lines, id=name) for name, lines in shell_blocks()])
def test_the_commands_of_a_block_run_one_after_the_other(lines: list[Command], desk: Path) -> None:
    for number, command in enumerate(lines):
        loop = ("30", "60", "85") if any("$rate" in word for word in command.arguments) else ("",)
        for rate in loop:
            run([word.replace("$rate", rate) for word in command.arguments], out=f"runs/{number}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if _is_attack_page(page) and "attacks" in page.parts and page.name != "translation.md"],
    ids=name_of,
)
def test_the_command_of_an_attack_finds_the_examples_of_its_page(page: Path, desk: Path) -> None:
    first = next(command for command in commands(page) if not command.is_mention)
    cli.main([*first.arguments, "--out", "runs/a"], prog_name="stockade", standalone_mode=False)
    result = st.AttackResult.open("runs/a")
    adversarial = {(record.attack.partition(":")[0], record.adversarial) for record in result.records(status="success")}
    rows = re.findall(r"^\| `(\S+)` \| (.*\*\*.*) \| \w+ [\d.]+ → ", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows
    for attack, text in rows:
        assert (attack, re.sub(r"~~[^~]+~~ ?", "", text).replace("**", "")) in adversarial


def test_every_exception_is_one() -> None:
    names = {name for name, _ in python_snippets()}
    assert {*SLOW_SNIPPETS, *SNIPPETS_NOT_RUN} - names == set()
    lines = [" ".join(command.arguments) for page in PAGES for command in commands(page)]
    for pattern in COMMANDS_NOT_RUN:
        assert any(re.fullmatch(pattern, line) for line in lines), pattern
