"""The mutation check on a toy package: what its tests pin down is caught, what they leave open survives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from mutants import Sandbox, behaviour, draw_mutants, is_mutant, main

TOY = """\
def is_adult(age: int) -> bool:
    return age >= 18
"""
TESTS = """\
from toy.ages import is_adult

def test_the_bound():
    assert is_adult(18) and is_adult(90) and not is_adult(17)
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in {"src/toy/ages.py": TOY, "tests/test_ages.py": TESTS, "pytest.ini": "[pytest]\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "src/toy/__init__.py").touch()
    return tmp_path


def test_the_check_counts_what_tests_catch_and_shows_what_they_do_not(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = toy / "src/toy/ages.py"
    source.write_text(TOY + "\n\nUNUSED = 7\n")

    main(["src/toy", "--root", str(toy), "--sample", "3"])

    report = capsys.readouterr().out
    assert "| src/toy | 3 | 2 | 1 | 0 | 67% |" in report  # the comparison, 18 and 7: nobody asks for 7
    assert report.count("-UNUSED = 7") == 1
    assert "-    return age >= 18" not in report
    assert source.read_text() == TOY + "\n\nUNUSED = 7\n"


def test_a_sample_depends_on_its_seed_alone_and_has_one_change_at_each_place(toy: Path) -> None:
    modules = [Path("src/toy/ages.py")]
    first, again = (list(draw_mutants(toy, modules, Random(1))) for _ in range(2))
    assert first == again
    assert len(first) == 2
    every = {mutant.after for mutant in draw_mutants(toy, modules, Random(1), everything=True)}
    assert {mutant.after for mutant in first} < every
    assert {TOY.replace(">=", other) for other in ("==", "!=", "<", "<=", ">")} < every
    assert {TOY.replace("18", other) for other in ("19", "17")} < every


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("size: int | None = 1", "size: int + None = 1"),
        ("def f(x: int | None) -> int | None: ...", "def f(x: int - None) -> int * None: ..."),
        ("@dataclass(frozen=True, slots=True)\nclass A: ...", "@dataclass(frozen=False, slots=False)\nclass A: ..."),
        ("def f(x, *, y, z=1): ...", "def f(x, /, y, z=1): ..."),
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)"),
        ("@lru_cache(maxsize=1)\ndef f(): ...", "def f(): ..."),
        ("if TYPE_CHECKING:\n    x = 1", "if TYPE_CHECKING:\n    x = 2"),
        ("x = 1", "x = = 1"),
    ],
)
def test_what_no_test_could_notice_is_no_mutant(before: str, after: str) -> None:
    assert not is_mutant(after, behaviour(before))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("size: int = 1", "size: int = 2"),
        ("@dataclass(order=True)\nclass A: ...", "@dataclass(order=False)\nclass A: ..."),
        ("@property\ndef f(self): ...", "def f(self): ..."),
        ("def f(x, *, y=1): ...", "def f(x, *, y=2): ..."),
        ("@near(1)\ndef f(): ...", "@near(2)\ndef f(): ..."),
    ],
)
def test_what_a_test_could_notice_is_a_mutant(before: str, after: str) -> None:
    assert is_mutant(after, behaviour(before))


def test_what_fails_by_itself_catches_nothing(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (toy / "tests/test_broken.py").write_text("from toy import ages\ndef test_it():\n    assert not ages\n")
    (toy / "tests/test_ages.py").write_text("def test_nothing():\n    pass\n")

    main(["src/toy/ages.py", "--root", str(toy), "--sample", "1"])

    report = capsys.readouterr().out
    assert "tests/test_broken.py fails without a mutant (status 1) and is left out." in report
    assert "| src/toy/ages.py | 1 | 0 | 1 | 0 | 0% |" in report


def test_a_target_that_is_not_there_is_named(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["src/toys", "--root", str(toy)])
    assert "has no src/toys. Name a package or module below it" in capsys.readouterr().err


def test_a_test_that_never_ends_is_stopped_and_no_failure(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (toy / "tests/test_ages.py").write_text("def test_it():\n    while True:\n        pass\n")
    sandbox = Sandbox.copy(toy, tmp_path_factory.mktemp("sandbox") / "tree")
    assert sandbox.run([Path("tests/test_ages.py")], limit=3) is None
