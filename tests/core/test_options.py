"""Options as text and as Python values, and which objects a record can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pytest

from stockade.core.errors import OptionError, unknown_name
from stockade.core.options import REQUIRED, can_be_described, make_with, option_defaults, option_values, parse_options


@dataclass(frozen=True)
class Limit:
    """An option with a textual form of its own, such as `at-most(3)`."""

    words: int

    @classmethod
    def from_text(cls, text: str) -> Self:
        return cls(int(text.removeprefix("at-most(").removesuffix(")")))

    def __str__(self) -> str:
        return f"at-most({self.words})"


@dataclass(frozen=True)
class Options:
    word: str
    count: int = 3
    share: float | None = 0.5
    names: tuple[str, ...] = ()
    limit: Limit | None = None
    table: Mapping[str, object] = field(default_factory=dict)


class Plain:
    """No dataclass, no options."""


class Secretive:
    """No dataclass, and made with something that is not written down."""

    def __init__(self, secret: int = 0) -> None:
        pass


class Remembering:
    def __init__(self) -> None:
        self.heard = 1


@dataclass
class Counting:
    """Holds something besides its options."""

    step: int = 1
    total: int = field(default=0, init=False)


def test_every_option_has_its_default_and_some_have_none() -> None:
    assert option_defaults(Options) == {
        "word": REQUIRED, "count": 3, "share": 0.5, "names": (), "limit": None, "table": {},
    }  # fmt: skip
    assert option_defaults(Plain) == {}
    assert option_values(Options("a", limit=Limit(3)))["limit"] == "at-most(3)"


@pytest.mark.parametrize(
    ("method", "can"),
    [
        (Options("a"), True),
        (Options("a", limit=Limit(3)), True),
        (Options("a", table={"one": [1, (None, True)], "two": {"three": 2.5}}), True),
        (Options("a", table={"one": object()}), False),
        (Options("a", table={1: 2}), False),  # type: ignore[dict-item]
        (Options("a", names=(object(),)), False),  # type: ignore[arg-type]
        (Plain(), True),
        (Secretive(), False),
        (Remembering(), False),
        (Counting(), False),
    ],
)
def test_an_object_can_be_described_when_its_options_are_all_it_holds(method: object, can: bool) -> None:
    assert can_be_described(method) is can


def test_options_as_text() -> None:
    text = "word=a-b, count = 4,names=x+y,limit=at-most(3),the-share=none,,"
    assert parse_options("--attack", "pwws", text) == {
        "word": "a-b", "count": "4", "names": "x+y", "limit": "at-most(3)", "the_share": "none",
    }  # fmt: skip
    assert parse_options("--attack", "pwws", "limit=both(1,2),count=4") == {"limit": "both(1,2)", "count": "4"}
    assert parse_options("--attack", "pwws", "") == {}
    with pytest.raises(OptionError, match=r'^"count" in --attack pwws:word=a,count is not of the form option=value\.$'):
        parse_options("--attack", "pwws", "word=a,count")


def test_text_becomes_what_the_class_declares() -> None:
    written = {"word": "none", "count": "4", "share": "None", "names": "x+y", "limit": "at-most(2)"}
    assert make_with("pwws", Options, written) == Options("none", 4, None, ("x", "y"), Limit(2))
    assert make_with("pwws", Options, {"word": "a", "limit": "none"}) == Options("a")
    assert make_with("pwws", Options, {"word": "a", "limit": Limit(1), "names": ["x"]}) == Options(
        "a", names=("x",), limit=Limit(1)
    )
    with pytest.raises(OptionError, match=r"^The option count of pwws cannot be 'many': .*valid integer.*\.$"):
        make_with("pwws", Options, {"word": "a", "count": "many"})
    with pytest.raises(OptionError, match=r'^There is no option of pwws "cuont" .* Did you mean "count"\?$'):
        make_with("pwws", Options, {"cuont": 1})
    with pytest.raises(OptionError, match=r"^The option word of pwws has no default: write it, as in pwws:word=…"):
        make_with("pwws", Options, {})


@pytest.mark.parametrize("text", ["a", "nobody", "zoo"])
def test_only_none_is_nothing(text: str) -> None:
    """Whether it comes before "none" in the alphabet or after it."""
    with pytest.raises(OptionError, match=f"The option share of pwws cannot be '{text}'"):
        make_with("pwws", Options, {"word": "a", "share": text})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pws", ' Did you mean "pwws"?'),
        ("PWWS", ' Did you mean "pwws"?'),
        ("text", ' Did you mean "textfooler"?'),
        ("ran", ' Did you mean "random"?'),
        ("te", ""),  # two letters begin too many names
        ("xyz", ""),
    ],
)
def test_the_nearest_name_is_offered(name: str, hint: str) -> None:
    error = unknown_name("attack", name, ["textfooler", "pwws", "random"])
    assert str(error) == f'There is no attack "{name}" (found: pwws, random, textfooler).{hint}'
