"""Texts and names that try to act where they are shown go through every writer: none of them can."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import stockade
from stockade.attacks.registry import make_attack
from stockade.cli.progress import SECONDS_BETWEEN_LINES, Lines
from stockade.cli.screen import for_screen
from stockade.core.errors import OptionError
from stockade.core.sanitize import csv_cell, csv_text, json_line, one_line
from stockade.core.text import Edit
from stockade.experiment.progress import Progress
from stockade.experiment.workspace import begin
from stockade.report.render_html import content_policy
from stockade.studies.transferability.matrix import TransferMatrix
from stockade.workflows.attack.result import CODEC, AttackResult
from stockade.workflows.attack.spec import AttackSpec
from tests.e2e.conftest import in_process
from tests.records import record
from tests.report.documents import every_block
from tests.training.tiny import OPTIONS, rows, tiny_origin, train_tiny, without_plots

ESCAPES = {
    "colour": "\x1b[31mred",
    "screen": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "hyperlink": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "C1": "\x9b31m\x9d0;owned\x9c",
    "bidi": "\u202egnp.exe\u2066\u2069",
    "carriage return": "fine\rforged",
    "backspace": "abc\x08\x08\x08xyz",
    "tags": "\U000e0041\U000e0042",
}
FORMULAS = ("=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1", "'=1", "''@x")
MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "![x](http://evil.example/x.png)",
    "http://evil.example",
    "www.evil.example",
    "a | b |\n|---|",
    "`code` ``` $x$",
    "# heading\n\n- item",
    "&lt;b&gt;",
)
HOSTILE = "".join(ESCAPES.values()) + " ".join(MARKUP)
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)  # what a terminal, or a reader's eye, would act upon
FOLDER = "run\x1b]0;owned\x07\u202e"
LABELS = (f"neg{HOSTILE}", f"=pos{HOSTILE}")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in which everything that somebody else could have written is hostile, the folder's name as well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    key = f"toy{HOSTILE}"
    spec = AttackSpec.of(model=len, data=[], attacks={key: make_attack("pwws")}, similarity=False)
    model = {"reference": HOSTILE, "labels": list(LABELS), "deterministic": True, "fingerprint": HOSTILE,
             "remarks": [HOSTILE], "defenses": [{"name": HOSTILE, "options": {HOSTILE: HOSTILE}}]}  # fmt: skip
    data = {"reference": HOSTILE, "fingerprint": "", "rows": 2, "size": 2, "label_counts": {LABELS[0]: 1, LABELS[1]: 1},
            "ids": None}  # fmt: skip
    success = record(
        HOSTILE, "success", key, label=LABELS[0], original=f"=a {HOSTILE}", adversarial=f"+b {HOSTILE}",
        original_prediction=LABELS[0], adversarial_prediction=LABELS[1], premise=HOSTILE,
        edits=(Edit("replace", 0, f"=a{HOSTILE}", f"+b{HOSTILE}"),),
    )  # fmt: skip
    failed = record(1, "error", key, reason=HOSTILE, label=LABELS[1], original="@" + HOSTILE)
    folder = tmp_path / FOLDER
    with begin(folder, spec, {"model": model, "data": data, "neighbours": None}, resume=False) as workspace:
        for item in (success, failed):
            workspace.store.add(key, item.id, CODEC.encode(item), status=item.status)
        AttackResult.of(workspace).write_summary()
    workspace.store.close()
    return folder


def harmless(output: str) -> bool:
    return not ACTING.search(output)


@pytest.mark.parametrize(
    "words",
    [
        ("show", FOLDER),
        ("show", FOLDER, "--status", "all"),
        ("show", FOLDER, "--attack", "\x1b[2Jno"),
        ("report", FOLDER),
        ("report", FOLDER, "--format", "md"),
        ("export", FOLDER),
        ("export", FOLDER, "--format", "csv", "--out", "rows\x1b[2J.csv"),
        ("export", FOLDER, "--format", "\x1b[2J"),
        ("verify", FOLDER),
        ("resume", FOLDER),
        ("show", "absent\x1b[2J\u202e\nstockade: all hold"),
        ("attack", "builtin:\x1b[2J", "builtin:reviews", "--attack", "pwws"),
        ("attack", "builtin:sentiment-cnn", "data\x1b]0;x\x07.csv", "--attack", "pwws"),
        ("attack", "builtin:sentiment-cnn", "builtin:reviews", "--attack", "\x9b2Jpwws"),
        ("\x1b[2J",),
        ("ls", "\x1b[2J"),
        ("doctor", "\x1b[2J"),
    ],
    ids=lambda words: " ".join(map(one_line, words)),
)
def test_no_command_prints_what_a_terminal_acts_upon(run: Path, words: tuple[str, ...]) -> None:
    result = in_process(*words)
    assert result.stdout + result.stderr
    assert harmless(result.stdout), result.stdout
    assert harmless(result.stderr), result.stderr
    assert len(result.stderr.splitlines()) <= 1


def test_a_csv_export_holds_no_formula_and_can_be_turned_back(run: Path) -> None:
    in_process("export", FOLDER, "--format", "csv", "--out", "rows.csv")
    in_process("export", FOLDER, "--format", "jsonl", "--out", "rows.jsonl")
    in_process("export", FOLDER, "--format", "parquet", "--out", "rows.parquet")
    truth = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["original"] for row in truth] == [f"=a {HOSTILE}", "@" + HOSTILE]
    with Path("rows.csv").open(newline="", encoding="utf-8") as stream:
        cells = list(csv.DictReader(stream))
    assert not [cell for row in cells for cell in row.values() if re.match(r"\s*[=+\-@\t\r]", cell)]
    for name in ("original", "adversarial", "label"):
        assert [csv_text(row[name]) or None for row in cells] == [row[name] for row in truth]
    stored = pq.read_table("rows.parquet").to_pylist()
    assert [row["original"] for row in stored] == [row["original"] for row in truth]


def test_an_export_of_ours_is_read_back_as_data_to_the_letter(run: Path) -> None:
    in_process("export", FOLDER, "--format", "csv", "--out", "rows.csv")
    source = stockade.load_data("rows.csv", text_column="original", label_column="label")
    assert [row.text for row in source.rows()] == [f"=a {HOSTILE}", "@" + HOSTILE]
    Path("theirs.csv").write_text("text,label\n'=1,1\n")
    assert [row.text for row in stockade.load_data("theirs.csv").rows()] == ["'=1"]


@given(
    st.one_of(
        st.text(), st.sampled_from(FORMULAS), st.builds(lambda a, b: a + b, st.sampled_from("'=+-@\t "), st.text())
    )
)
def test_a_cell_is_no_formula_and_comes_back(text: str) -> None:
    cell = csv_cell(text)
    assert csv_text(cell) == text
    assert not re.match(r"\s*[=@\t\r＝＋－＠]", cell)
    assert not re.match(r"\s*[+-]", cell) or re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?", cell)


@given(st.text())
def test_json_lines_hold_the_same_text_without_what_a_terminal_acts_upon(text: str) -> None:
    line = json_line(json.dumps(text, ensure_ascii=False))
    assert harmless(line)
    assert json.loads(line) == text
    line.encode()


def test_csv_for_a_terminal_shows_what_would_act(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    (row,) = for_screen([{"text": HOSTILE, "n": 1}], "csv")
    assert harmless(row["text"])
    assert row["n"] == 1
    with pytest.raises(OptionError, match="not for a terminal"):
        for_screen([], "parquet")


@pytest.mark.parametrize("name", [text for text in (*ESCAPES.values(), *FORMULAS, "a,b", 'a"b') if "\r" not in text])
def test_a_matrix_of_models_with_odd_names_comes_back(tmp_path: Path, name: str) -> None:
    matrix = TransferMatrix((name, "b"), (name, "b"), np.array([[np.nan, 0.5], [1.0, np.nan]]))
    matrix.write(tmp_path / "matrix.csv")
    with (tmp_path / "matrix.csv").open(newline="", encoding="utf-8") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    assert not [cell for cell in cells if re.match(r"\s*[=@+-]", cell)]
    assert TransferMatrix.read(tmp_path / "matrix.csv").sources == (name, "b")


def test_progress_lines_and_bars(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from stockade.cli import progress

    times = iter(SECONDS_BETWEEN_LINES * number for number in range(9))
    Lines(lambda: next(times)).show(Progress(part=HOSTILE, done=1, total=2))
    line = capsys.readouterr().err
    assert "owned" in line
    assert harmless(line.rstrip("\n"))
    assert line.count("\n") == 1

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown: list[str] = []
    monkeypatch.setattr(progress, "_bars", lambda: _Bars(shown))
    with progress.watch() as observe:
        observe(Progress(part=HOSTILE, done=1, total=2, status="success", note=HOSTILE))
    assert len(shown) == 2
    assert all(harmless(text) for text in shown)


class _Bars:
    """Keeps what would be drawn."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add_task(self, description: str, **_: object) -> int:
        self.shown.append(description)
        return 0

    def update(self, task: int, *, numbers: str, **_: object) -> None:
        self.shown.append(numbers)


def tokens(markdown: str) -> Iterator[Any]:
    for token in MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(markdown):
        yield token
        yield from token.children or ()


def test_a_report_in_markdown_is_only_what_we_wrote(run: Path) -> None:
    in_process("report", FOLDER, "--format", "md", "--out", "report.md")
    text = Path("report.md").read_text()
    assert harmless(text)
    kinds = {token.type for token in tokens(text)}
    assert not kinds & {"link_open", "image"}
    tags = {
        tag for token in tokens(text) if token.type.startswith("html") for tag in re.findall(r"<(\w+)", token.content)
    }
    assert tags <= {"details", "summary", "del", "strong"}
    assert "evil.example" in text
    written = "".join(token.content for token in tokens(text) if token.type == "inline")
    assert r"http\://evil" in written
    assert not re.search(r"(?<!\\)://|www\.", re.sub(r"(`+).*?(?<!`)\1(?!`)", "", written))


def test_the_card_of_a_model_is_only_what_we_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_plots(monkeypatch)
    monkeypatch.chdir(tmp_path)
    names = dict(zip(("negative", "positive"), LABELS, strict=True))
    texts = [(text, names[label]) for text, label in rows(20)]
    result = train_tiny(tmp_path / "m", texts, origin=tiny_origin(), options=OPTIONS.changed(epochs=1), labels=LABELS)
    card = (result.folder / "README.md").read_text()
    assert harmless(card)
    assert not {token.type for token in tokens(card)} & {"link_open", "image", "html_block", "html_inline"}


def test_a_page_shows_what_is_invisible_and_runs_only_its_own_script(run: Path) -> None:
    in_process("report", FOLDER, "--out", "report.html")
    page = Path("report.html").read_text()
    assert harmless(page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert unescape(policy[1]) == content_policy()
    directives = dict(part.strip().split(" ", 1) for part in content_policy().split(";"))
    assert directives["default-src"] == "'none'"
    assert "unsafe" not in directives["script-src"] + directives["style-src-elem"]
    for tag, directive in (("script", "script-src"), ("style", "style-src-elem")):
        (content,) = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"


def test_every_page_comes_with_the_policy_before_anything_that_could_run() -> None:
    page = every_block().to_html()
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<script>")


@given(st.text(alphabet=st.sampled_from(HOSTILE + "ab \n"), max_size=60))
@settings(max_examples=30, deadline=None)
def test_every_block_of_a_report_is_harmless_in_every_format(text: str) -> None:
    document = every_block(lambda _: text or "x")
    screen = io.StringIO()
    from rich.console import Console

    document.to_terminal(Console(file=screen, width=100, markup=False, emoji=False, highlight=False))
    for output in (screen.getvalue(), document.to_markdown(), document.to_html()):
        assert harmless(output)


def test_commands_print_through_the_screen_alone() -> None:
    folder = Path(stockade.__file__).parent / "cli"
    for path in folder.glob("*.py"):
        if path.name != "screen.py":
            for call in re.findall(r"(?:click\.s?echo|(?<![\w.])print)\([^\n]*", path.read_text()):
                assert "json.dumps" in call or "one_line(" in call, f"{path.name}: {call}"
