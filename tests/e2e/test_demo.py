"""`stockade demo`, `doctor` and the page they lead to."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

from tests.e2e.conftest import Stockade


class Outline(HTMLParser):
    """Collects what a page loads from elsewhere, and how many examples and highlighted words it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.examples = self.insertions = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.outside += [str(values[name]) for name in ("src", "href") if values.get(name, "#")[:1] not in ("#", "")]  # type: ignore[index]
        self.examples += "example" in (values.get("class") or "").split()
        self.insertions += tag == "ins"


def test_the_demo_attacks_three_victims_hardens_and_certifies_one_and_writes_a_page_that_needs_nothing_else(
    stockade: Stockade, folder: Path
) -> None:
    result = stockade("demo", "--limit", 4, "--out", "demo")
    assert result.returncode == 0, result.stderr
    for victim in ("sentiment-cnn", "sentiment-lstm", "sentiment-bert"):
        assert victim in result.stdout
        assert json.loads((folder / "demo" / victim / "summary.json").read_text())["complete"] is True
    hardened = json.loads((folder / "demo/sentiment-cnn-hardened/manifest.json").read_text())["inputs"]["model"]
    assert hardened["defenses"][0]["name"] == "ranmask"
    assert (folder / "demo/models/sentiment-cnn/defense.json").exists()
    after = result.stdout[result.stdout.index("Hardening sentiment-cnn") :]
    assert after.index("before") < after.index("after ")
    assert "Try next" in result.stdout
    certified = json.loads((folder / "demo/sentiment-cnn-certified/summary.json").read_text())
    assert certified["methods"]["ranmask-gap"]["n"] == 4
    assert "d ≥ 0" in after
    assert "ranmask-gap proves the true class" in after
    assert stockade("verify", "demo/sentiment-cnn-certified").stdout == "4 results checked: all hold\n"
    page = Outline()
    page.feed((folder / "demo/report.html").read_text())
    assert page.outside == []
    assert page.examples == 4 * 2 * 4  # three victims and the hardened one, two attacks, four texts
    assert page.insertions > 0
    again = stockade("demo", "--limit", 1, "--out", "demo")
    assert "demo-2" in again.stdout


def test_the_doctor_says_what_is_there(stockade: Stockade) -> None:
    result = stockade("doctor", "--json")
    report = json.loads(result.stdout)
    assert result.returncode == 0
    assert report["healthy"] is True
    assert {check["name"] for check in report["checks"]} >= {"torch", "WordNet table", "built-in reviews", "device"}
