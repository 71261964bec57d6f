"""The page in a browser: filters work, nothing runs, no part of it is wider than a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, sync_playwright

from stockade.report.document import Document, Table
from tests.report.documents import every_block, hostile

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
