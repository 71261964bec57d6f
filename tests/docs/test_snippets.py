"""The Python snippets and the commands of the README and the docs run, in a folder with stand-ins for a reader's files.

Those of docs/extending have tests of their own, which also look at what they print.
"""

from __future__ import annotations

import csv
import json
import re
import runpy
import shutil
import sys
from itertools import islice
from pathlib import Path

import pytest

from stockade.cli.main import cli
from stockade.datasets.builtin import reviews
from tests.docs.documents import PAGES, ROOT, Block, blocks, commands, name_of

ROWS = 12

SLOW_SNIPPETS = {
    "docs/defenses/README.md#2": "trains",
    "docs/defenses/route.md#1": "attacks many texts, then fits a detector",
    "docs/evaluate.md#1": "a grid of attacks",
    "docs/studies.md#1": "five attacks with a masked LM and a sentence encoder",
    "docs/studies.md#3": "certificates and attacks at two rates",
    "docs/tune.md#1": "a search with several views of each trial",
}
NOT_RUN = {
    "docs/studies.md#2": "minutes per text: every word of a transformer's vocabulary is tried; tests/studies/attention",
}


def python_snippets() -> list[tuple[str, Block]]:
    """Every Python block with its page and number, apart from those that have tests of their own."""
    pages = [page for page in PAGES if "extending" not in page.parts]
    return [
        (f"{name_of(page)}#{number}", block) for page in pages for number, block in enumerate(blocks(page, "python"), 1)
    ]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a reader works in: data, a function, model folders, and the repository's docs."""
    by_label = [[review.text for review in reviews("test") if review.label == label] for label in (0, 1)]
    with (tmp_path / "reviews.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for negative, positive in islice(zip(*by_label, strict=False), ROWS // 2):
            writer.writerows(((negative, "negative"), (positive, "positive")))
    mails = [("send me your money now", "spam"), ("see you for lunch", "ham")] * 3
    lines = [json.dumps({"text": text, "label": label}) for text, label in mails]
    (tmp_path / "mails.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "my_module.py").write_text(
        "def predict(texts):\n    return [[0.2, 0.8] if 'money' in text else [0.7, 0.3] for text in texts]\n",
        encoding="utf-8",
    )
    for model in ("my-bert", "models/m"):
        shutil.copytree(ROOT / "src/stockade/artifacts/sentiment-cnn", tmp_path / model)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(block, id=name, marks=[pytest.mark.slow] if name in SLOW_SNIPPETS else [])
        for name, block in python_snippets()
        if name not in NOT_RUN
    ],
)
def test_the_python_snippet_runs(snippet: Block, desk: Path) -> None:
    path = desk / "snippet.py"
    path.write_text(re.sub(r"\blimit=\d{2,}", f"limit={ROWS}", snippet.code), encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")


def test_every_exception_is_a_snippet_that_exists() -> None:
    names = {name for name, _ in python_snippets()}
    assert {*SLOW_SNIPPETS, *NOT_RUN} - names == set()


def run(page: Path, arguments: tuple[str, ...]) -> None:
    """Run a command in this process, on fewer texts than the page says."""
    line = re.sub(r"--limit \d+", "--limit 3", "\0".join(arguments).replace("--limit\0", "--limit ")).replace(
        "--limit ", "--limit\0"
    )
    code = cli.main(line.split("\0"), prog_name="stockade", standalone_mode=False)
    assert code in (0, None), f"{name_of(page)}: stockade {' '.join(arguments)} ended with {code}"


@pytest.mark.slow
def test_the_commands_of_the_readme_run_one_after_the_other(desk: Path) -> None:
    page = ROOT / "README.md"
    (block,) = blocks(page, "bash")
    last = block.line + block.code.count("\n") + 1
    lines = [command for command in commands(page) if block.line <= command.line <= last]
    assert len(lines) == 11
    for command in lines:
        run(page, command.arguments)
    assert (desk / "runs/mine/report.html").exists()
    assert (desk / "rows.csv").exists()
    assert (desk / "runs/e/report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((ROOT / "docs/attacks").glob("[!R]*.md")), ids=name_of)
def test_the_command_of_an_attack_runs(page: Path, desk: Path) -> None:
    first = next(command for command in commands(page) if not command.is_mention)
    run(page, (*first.arguments, "--limit", "1", "--out", "runs/a"))
    rows = json.loads((desk / "runs/a/summary.json").read_text(encoding="utf-8"))["attacks"]
    assert all(numbers["n"] == 1 for numbers in rows.values())
