"""The page in a browser: filters work, nothing runs, no part of it is wider than a phone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Dialog, sync_playwright

import stockade as st
from stockade.report.document import Cell, Document, Table
from stockade.report.examples import Example, Examples
from tests.report.documents import every_block, hostile
from tests.toys import WeightVictim

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_filters_show_the_chosen_examples(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(every_block().write(tmp_path / "page.html").as_uri())
    assert page.locator("article:visible").count() == 3
    assert page.locator("output").inner_text() == "3 shown"
    page.locator("select[name=status]").select_option("failed")
    assert [text.split() for text in page.locator("article:visible").all_inner_texts()] == [
        ["open", "closed", "1", "of", "2", "words"]
    ]
    page.locator("select[name=status]").select_option("")
    page.locator("input[type=search]").fill("WHOLE")
    assert page.locator("article:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_hostile_text_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    heard: list[str] = []

    def hear(dialog: Dialog) -> None:
        heard.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", hear)
    page.on("request", lambda request: heard.append(request.url))
    page.goto(hostile().write(tmp_path / "page.html").as_uri())
    assert heard == [(tmp_path / "page.html").as_uri()]
    assert page.locator("img").count() == 0


def rules_table() -> Document:
    rows = (("funny → laughable", "3.1"), ("Funny → droll", "2.0"), ("great → <b>big</b>", "1.0"))
    return Document(title="rules", blocks=(Table(("rule", "salience"), rows, searchable=True, preview=1),))


def test_a_searchable_table_shows_the_rows_that_have_all_the_words(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(rules_table().write(tmp_path / "page.html").as_uri())
    assert page.locator("tbody tr:visible").count() == 3
    page.locator("input[type=search]").fill("droll FUNNY")
    assert page.locator("tbody tr:visible td:first-child").all_inner_texts() == ["Funny → droll"]
    assert page.locator("output").inner_text() == "1 of 3 rows"
    page.locator("input[type=search]").fill("<b>")
    assert page.locator("tbody tr:visible").count() == 1
    page.locator("input[type=search]").fill("nothing has this")
    assert page.locator("tbody tr:visible").count() == 0
    page.locator("input[type=search]").fill("")
    assert page.locator("tbody tr:visible").count() == 3


def test_without_javascript_a_searchable_table_is_whole_and_has_no_field(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(rules_table().write(tmp_path / "page.html").as_uri())
    assert page.locator("tbody tr:visible").count() == 3
    assert page.locator("input[type=search]:visible").count() == 0


def test_a_script_that_got_into_a_page_is_not_run(browser: Browser, tmp_path: Path) -> None:
    path = every_block().write(tmp_path / "page.html")
    injected = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    path.write_text(path.read_text().replace("<main>", f"<main>{injected}"))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.title() == "title · Stockade"
    assert page.locator("output").inner_text() == "3 shown"  # the page's own script does
    page.close()


def test_a_table_is_sorted_by_a_click_on_a_column(browser: Browser, tmp_path: Path) -> None:
    rows = (("b", Cell("9.5 %", "1–99")), ("c", "1,200.0 %"), ("a", "n/a"), ("d", "−3.0 %"))
    document = Document(title="t", blocks=(Table(("name", "rate"), rows), Table(("x",), (("1",), ("2",)))))
    page = browser.new_page()
    page.goto(document.write(tmp_path / "page.html").as_uri())
    names = page.locator("table.sortable tbody td:first-child")
    page.get_by_role("button", name="rate").click()
    assert names.all_inner_texts() == ["c", "b", "d", "a"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("rate")
    page.get_by_role("button", name="rate").click()
    assert names.all_inner_texts() == ["a", "d", "b", "c"]
    page.get_by_role("button", name="name").click()
    assert names.all_inner_texts() == ["d", "c", "b", "a"]
    assert page.locator("table.sortable").count() == 1, "two rows need no sorting"


def test_examples_are_sorted_by_a_value_and_back(browser: Browser, tmp_path: Path) -> None:
    items = [
        Example(text=text, values=values, explained=("exactly so",))
        for text, values in (("one", {"queries": 5.0}), ("two", {}), ("three", {"queries": 70.0}))
    ]
    document = Document(title="t", blocks=(Examples(items=items, sorts=("queries",), more="the end"),))
    page = browser.new_page()
    page.goto(document.write(tmp_path / "page.html").as_uri())
    texts = page.locator("article .text")
    page.locator("select.sort").select_option("queries")
    assert texts.all_inner_texts() == ["three", "one", "two"]
    assert page.locator("article:visible").count() == 3, "sorting filters nothing"
    page.locator("select.sort").select_option("their order")
    assert texts.all_inner_texts() == ["one", "two", "three"]
    assert not page.get_by_text("exactly so").first.is_visible()
    page.get_by_text("Details").first.click()
    assert page.get_by_text("exactly so").first.is_visible()


def _attack(folder: Path) -> Document:
    victim = WeightVictim({"good": 2.0, "bad": -2.0}, bias=0.5)
    data = [("good film", "positive"), ("bad film " + "x" * 90, "negative")]
    return st.attack(victim, data, ["deepwordbug", "pwws"], similarity=False, out=folder).document()


def _evaluation(folder: Path) -> Document:
    victim, data = WeightVictim({"good": 2.0, "bad": -2.0}, bias=0.5), [("good film", "positive"), ("bad", "negative")]
    chains = ["ranmask:copies=3,rate=0.35,combine=vote"]
    result = st.evaluate({"a-model-with-a-long-name" * 2: victim}, data, "deepwordbug", chains, out=folder)
    return result.document()


def _certificates(folder: Path) -> Document:
    defended = st.defend(WeightVictim({"good": 4.0}, bias=-0.1), "ranmask", rate=0.5)
    return st.certify(defended, [("good good film", "positive"), ("a film", "negative")], out=folder).document()


@pytest.mark.parametrize("make", [_attack, _evaluation, _certificates])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_in_light_and_dark(
    make: Callable[[Path], Document], scheme: Literal["light", "dark"], browser: Browser, tmp_path: Path
) -> None:
    document = make(tmp_path / "job")
    page = browser.new_context(viewport={"width": 360, "height": 800}, color_scheme=scheme).new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.goto(document.write(tmp_path / "page.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert problems == [], "no script fails and nothing is against the page's own policy"
    ink, ground = page.evaluate(
        "[getComputedStyle(document.querySelector('h1')).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (_brightness(ink) > _brightness(ground)) == (scheme == "dark")


def _brightness(colour: str) -> int:
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])
