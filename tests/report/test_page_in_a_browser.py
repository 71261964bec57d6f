"""The page in a browser: filters work, nothing runs, no part of it is wider than a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, sync_playwright

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
