"""The page of certificates says what was certified, and never more than was proved."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import OptionError
from stockade.core.protocols import Probabilities
from stockade.report.document import Block, Note, Table, spans
from stockade.workflows.certify import page as certify_page
from stockade.workflows.certify.page import (
    MethodNumbers,
    all_methods,
    certificate_example,
    certify_document,
    curve_plot,
    radius_table,
)
from stockade.workflows.certify.result import LAYOUT, CertifyResult
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0}, bias=-0.1)
ROWS = [
    ("good good good good film", "positive"),  # 4 groups against 1; ties go to negative: (4 - 1 - 1) // 2 = 1
    ("a film of <b>no</b> note", "negative"),  # 5 against 0: 5 // 2 = 2
    ("good good film film story", "positive"),  # 2 against 3: negative, which is wrong, at radius 0
    ("good good good fine film", "positive"),  # 3 against 2: (3 - 2 - 1) // 2 = 0
]
LEGACY = "ranmask-legacy:most=200,selection=50"


def certify_votes(rows: list[tuple[str, str]] = ROWS, **options: Any) -> CertifyResult:
    return st.certify(st.defend(VICTIM, "partition", groups=5), rows, "position-partition", **options)


def certify_masking(methods: str | list[str], **options: Any) -> CertifyResult:
    return st.certify(st.defend(VICTIM, "ranmask", rate=0.7), ROWS, methods, **options)


@pytest.fixture(scope="module")
def votes() -> CertifyResult:
    """Certificates of the four texts by votes of groups."""
    return certify_votes()


@pytest.fixture(scope="module")
def with_claims() -> CertifyResult:
    """Certificates by a sound method, and claims by one that proves nothing."""
    return certify_masking(["ranmask-gap", LEGACY])


@dataclass
class Article:
    """A text as a browser reads it."""

    attributes: dict[str, str]
    words: list[tuple[str, bool]] = field(default_factory=list)
    filled: float | None = None
    text: str = ""


class Page(HTMLParser):
    """The texts of a page as a browser reads it, and everything that it would have to fetch."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.articles: list[Article] = []
        self.fetched: list[str] = []
        self._open: list[str] = []
        self.feed(re.sub(r"<(meta|br|wbr|input)\b[^>]*>", "", content))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.fetched += [values[name] for name in ("src", "href") if not values.get(name, "#").startswith("#")]
        self._open.append(f"{tag} {values.get('class', '')}")
        if tag == "article":
            self.articles.append(Article({name: value for name, value in values.items() if name.startswith("data-")}))
        if values.get("class") == "fill":
            self.articles[-1].filled = float(values["style"].removeprefix("width:").removesuffix("%"))

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self.articles and any(part.startswith("article") for part in self._open):
            self.articles[-1].text += data


def page_of(*results: CertifyResult) -> Page:
    return Page(certify_document(results).to_html())


def notes(results: Sequence[CertifyResult], kind: str | None = None) -> list[str]:
    """The sentences of the page that are no captions, of one kind or of all."""
    blocks: Sequence[Block] = certify_document(results).blocks
    return [
        "".join(span.text for span in spans(block.text))
        for block in blocks
        if isinstance(block, Note) and kind in (None, block.kind)
    ]


def numbers_table(*results: CertifyResult) -> list[list[str]]:
    table = next(block for block in certify_document(results).blocks if isinstance(block, Table))
    return [[cell.text for cell in row] for row in table.cells]


def test_the_page_shows_each_text_with_its_words_radius_and_sentence(votes: CertifyResult) -> None:
    page = page_of(votes)
    assert page.fetched == []
    certificates = votes.certificates
    for article, certificate, (text, label), radius in zip(
        page.articles, certificates, ROWS, [1, 2, 0, 0], strict=True
    ):
        example = certificate_example(votes, certificate)
        assert [(word.text, word.marked) for word in example.text] == [(word, radius > 0) for word in text.split()]  # type: ignore[union-attr]
        assert text in article.text
        assert article.filled == (100 * radius / 5 if radius else None)
        assert f"radius {radius}" in article.text
        assert f"true class {label}" in article.text
    stays = "The class stays negative under any change of up to 2 words, the number of words unchanged"
    assert stays in page.articles[1].text
    assert "any 2 of 5 words" in page.articles[1].text
    assert "votes of 5 groups: negative 5, positive 0" in page.articles[1].text
    assert [article.attributes["data-class"] for article in page.articles] == ["right", "right", "wrong", "right"]


def test_the_tables_and_the_findings_are_those_of_the_radii(votes: CertifyResult) -> None:
    ((name, n, accuracy, abstained, wrong, median, rate, copies, _),) = numbers_table(votes)
    assert (name, n, abstained, wrong, median, rate, copies) == (
        "position-partition",
        "4",
        "0",
        "1",
        "1",
        "20.0 %",
        "5",
    )
    assert accuracy.startswith("75.0 % (")
    assert radius_table(all_methods([votes])).rows == (  # the band is sqrt(log(2 / 0.05) / 8) = 0.679 to both sides
        ("position-partition", "75.0 % (7.1–100.0)", "50.0 % (0.0–100.0)", "25.0 % (0.0–92.9)"),
    )
    assert notes([votes], "finding") == [
        "position-partition proves the true class of 75.0 % of the texts (n = 4), and for 50.0 % that it stays at "
        "radius 1, up to radius 2 for 25.0 %; at least half have a radius of 1 or more. Nothing is left to chance."
    ]
    assert (
        "A radius of d is about any change of up to d words, the number of words unchanged (words are what blanks "
        "separate)."
    ) in notes([votes])


@pytest.mark.parametrize(
    ("familywise", "sentence"),
    [
        (False, "Each is wrong with probability at most 0.1 over the draws of copies: about 0.4 of 4 may be wrong."),
        (True, "With probability 0.9 or more not one of its certificates is wrong (α = 0.1 for all)."),
    ],
)
def test_the_finding_says_whom_alpha_is_for(familywise: bool, sentence: str) -> None:
    (finding,) = notes([certify_masking("ranmask-gap", alpha=0.1, familywise=familywise)], "finding")
    assert finding.endswith(sentence)


def test_what_proves_nothing_is_called_so_everywhere(with_claims: CertifyResult) -> None:
    page = page_of(with_claims)
    claims = [article for article in page.articles if article.attributes["data-method"] == "ranmask-legacy"]
    assert len(claims) == len(ROWS)
    for article in claims:
        if article.attributes["data-status"] == "claimed":
            assert "not a certificate" in article.text
            assert "NOT A CERTIFICATE" in article.text
    assert any(article.attributes["data-status"] == "claimed" for article in claims)
    proofs = [article for article in page.articles if article.attributes["data-method"] == "ranmask-gap"]
    assert len(proofs) == len(ROWS)
    assert not any("not a certificate" in article.text.lower() for article in proofs)
    assert "ranmask-legacy is NOT A CERTIFICATE" in notes([with_claims], "finding")[1]
    assert [row[0] for row in numbers_table(with_claims)] == ["ranmask-gap", "ranmask-legacy (not a certificate)"]


def test_only_what_proves_nothing_is_dashed(with_claims: CertifyResult) -> None:
    sound, unsound = all_methods([with_claims])
    assert "stroke-dasharray" not in curve_plot([sound])
    assert "stroke-dasharray" in curve_plot([unsound])
    assert "ranmask-legacy (not a certificate)" in curve_plot([sound, unsound])
    assert curve_plot([sound]) == curve_plot([sound])


def test_abstentions_and_errors_are_shown_with_their_reason() -> None:
    class Moody(WeightVictim):
        def predict_proba(self, inputs: Any) -> Probabilities:
            if any("story" in str(item) for item in inputs):
                raise ValueError("not that word")
            return super().predict_proba(inputs)

    defended = st.defend(Moody(VICTIM.weights), "ranmask", rate=0.7)
    first = page_of(st.certify(defended, ROWS, "ranmask-exact:most=1")).articles[0]
    assert first.attributes["data-status"] == "abstained"  # 1 of 5 words is kept: 5 copies, and none is asked
    assert "the text has 5 masked copies, more than most=1" in first.text
    first, *others = page_of(st.certify(defended, ROWS, "ranmask-exact")).articles
    assert first.attributes["data-status"] == "error"  # errors come first
    assert "No answer of the model" in first.text
    assert "not that word" in first.text
    assert {article.attributes["data-status"] for article in others} == {"certified"}


def test_texts_that_do_not_fit_are_counted(votes: CertifyResult, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = f"1 more texts are in the run: stockade export {votes.folder}"
    assert sentence not in certify_document([votes]).to_html()
    monkeypatch.setattr(certify_page, "TEXTS_PER_METHOD", 3)
    content = certify_document([votes]).to_html()
    assert sentence in content
    assert content.count("<article") == 3


def test_a_long_text_is_cut_on_the_page() -> None:
    result = certify_votes([("good " * 700, "positive"), *ROWS])
    example = certificate_example(result, result.certificates[0])
    assert len(example.text) == 600
    assert example.bar is not None
    assert example.bar.cells == 0
    assert "and 100 more words" in page_of(result).articles[0].text


def test_markup_in_a_text_stays_text(votes: CertifyResult) -> None:
    content = certify_document([votes]).to_html()
    assert "<b>no</b>" not in content
    assert "&lt;b&gt;no&lt;/b&gt;" in content


def test_different_attackers_on_one_page_are_warned_of(votes: CertifyResult) -> None:
    words = certify_masking("ranmask-gap")
    edits = st.certify(st.defend(VICTIM, "deletion", kept_chance=0.3), ROWS, "deletion:most=200")
    warning = "The methods are about different attackers: equal radii do not mean equal protection."
    assert warning in notes([words, edits], "warning")
    assert warning not in notes([words, votes], "warning")
    assert any("insertions, deletions and substitutions" in sentence for sentence in notes([edits]))


def test_a_run_without_all_certificates_has_a_page(tmp_path: Path, votes: CertifyResult) -> None:
    def stop(progress: st.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        certify_votes(out=tmp_path / "run", observer=stop, concurrency=1)
    result = CertifyResult.open(tmp_path / "run")
    (warning,) = notes([result], "warning")
    assert warning == f"Not complete: 1 of 4 texts are done. Resume it with stockade resume {tmp_path / 'run'}"
    nothing = MethodNumbers("none", {**votes.summary["methods"]["position-partition"], "n": 0, "curve": []})
    assert curve_plot([nothing]) == ""
    assert radius_table([nothing]).rows == ()


def radii_of(numbers: dict[str, Any]) -> list[int]:
    return [int(column.removeprefix("d ≥ ")) for column in radius_table([MethodNumbers("", numbers)]).columns[1:]]


def test_of_many_radii_the_table_shows_the_first_and_the_last() -> None:
    curve = [{"radius": radius, "share": 1, "low": 0, "high": 1} for radius in range(41)]
    numbers: dict[str, Any] = {"n": 4, "errors": 0, "answered": {}, "sound": True, "curve": curve}
    radii = radii_of(numbers)
    assert radii[:6] == list(range(6))
    assert radii[-1] == 40
    assert len(radii) == 12
    assert radii == sorted(set(radii))
    assert radii_of({**numbers, "curve": curve[:12]}) == list(range(12))


def test_beyond_the_largest_radius_nothing_is_certified_and_the_band_stays(votes: CertifyResult) -> None:
    (method,) = all_methods([votes])
    beyond = method.point(3)
    assert (beyond["value"], beyond["low"]) == (0, 0)
    assert beyond["high"] == pytest.approx(0.679, abs=1e-3)  # sqrt(log(2 / 0.05) / 8)


VECTORS = "good 1 0 0\nfine 1 0.1 0\ngreat 1 -0.1 0\nbad -1 0 0\nawful -1 0.1 0\nfilm 0 0 1\nstory 0 1 -1\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two sets, good-fine-great and bad-awful; film and story have none."""
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS)
    return str(path)


def marked_words(result: CertifyResult) -> list[str]:
    (certificate,) = result.certificates
    return [word.text for word in certificate_example(result, certificate).text if word.marked]  # type: ignore[union-attr]


def test_with_synonyms_only_words_that_have_some_are_marked(table: str) -> None:
    victim = WeightVictim({"good": 4.0, "fine": 4.0, "great": 4.0}, bias=-0.1)
    defended = st.defend(victim, "safer", vectors=table, directions=0)
    result = st.certify(defended, [('-- a "good" film: not bad, a story', "positive")], "safer:most=100")
    (certificate,) = result.certificates
    assert certificate.radius == 2  # all copies say positive, and the sets are those of every synonym
    assert marked_words(result) == ['"good"', "bad,"]
    assert "any 2 of 2 words with synonyms, of 8 in all" in page_of(result).articles[0].text
    Path(table).write_text(VECTORS.replace("film 0 0 1", "film 1 0 0.1"))  # film has synonyms now: another table
    assert marked_words(result) == []


def test_markdown_and_json(votes: CertifyResult, tmp_path: Path) -> None:
    document = votes.document()
    lines = document.write(tmp_path / "page.md", "md").read_text().splitlines()
    assert "| position-partition | 75.0 % (7.1–100.0) | 50.0 % (0.0–100.0) | 25.0 % (0.0–92.9) |" in lines
    text = r"- position-partition, certified, negative, radius 2: **a** **film** **of** **\<b\>no\</b\>** **note**"
    assert text in lines
    assert "  - example 1 · true class negative · 5 words · 5 copies" in lines
    written = document.write(tmp_path / "page.json", "json").read_text()
    assert json.loads(written) == json.loads(json.dumps(votes.summary))
    with pytest.raises(OptionError, match='no report format "pdf"'):
        document.write(tmp_path / "page.pdf", "pdf")


def test_a_notebook_shows_the_run(votes: CertifyResult) -> None:
    content = votes._repr_html_()
    assert content.lstrip().startswith('<div class="stockade">')
    assert "position-partition proves the true class of 75.0 % of the texts" in content
    assert content.count("<article") == len(ROWS)


def test_exported_columns_are_those_of_a_row() -> None:
    for row in certify_masking(["ranmask-gap", "ranmask-exact"]).rows():
        assert tuple(row) == LAYOUT.columns
        nested = {name for name, value in row.items() if isinstance(value, dict | list)}
        assert nested <= set(LAYOUT.nested)


def test_the_title_says_what_is_proved(votes: CertifyResult) -> None:
    assert certify_document([votes]).title == "50.0 % of the texts are certified at radius 1 or more"
    none = certify_votes([ROWS[3]])
    assert certify_document([none]).title == "No text is certified against any change, 100.0 % in their class alone"


def test_a_radius_of_zero_has_not_the_green_of_a_certificate(votes: CertifyResult) -> None:
    by_radius = {certificate.radius: certificate_example(votes, certificate) for certificate in votes.records()}
    assert (by_radius[1].status, by_radius[1].tone) == ("certified", "good")
    right = next(certificate for certificate in votes.records() if certificate.radius == 0 and certificate.correct)
    shown = certificate_example(votes, right)
    assert (shown.status, shown.tone) == ("class only", "soft")
    assert shown.facets["status"] == "certified", "it is found by its status all the same"


def test_how_a_certificate_was_computed_is_folded_away_and_has_no_endless_numbers() -> None:
    sure = [(" ".join(["plain"] * 40), "negative")]
    result = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), sure, "ranmask-gap:most=2000")
    (certificate,) = result.records()
    example = certificate_example(result, certificate)
    assert len(example.notes) == 1
    assert not re.search(r"\bbet\b|antithetic|randomizer", example.notes[0])
    assert example.explained
    document = certify_document([result])
    page = document.to_html()
    folded = "".join(re.findall(r'<details class="explained">.*?</details>', page, re.DOTALL))
    assert all(sentence.partition(" ")[0] in folded for sentence in example.explained)
    plain = page.replace(folded, "").partition("<main>")[2].partition('id="manifest"')[0]
    assert not re.search(r"the bet |antithetic|randomizer", plain)
    assert not re.search(r"\d{1,3}(,\d{3}){4,}", page.partition('id="manifest"')[0]), "no number of a trillion and more"
    assert "antithetic" not in document.to_markdown().partition("## Manifest")[0]
