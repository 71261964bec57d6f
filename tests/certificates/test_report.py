"""The page of certificates says what was found, and never more than was proved."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.certificates.distributions import MaskingDistribution
from stockade.certificates.evidence import SampledEvidence
from stockade.certificates.export import DOCUMENTS
from stockade.certificates.pages.ground import _reached, ground
from stockade.certificates.pages.headline import headline
from stockade.certificates.pages.page import render_page
from stockade.certificates.pages.plots import curve_plot
from stockade.certificates.pages.report import write_certificate_report
from stockade.certificates.pages.shown import shown, shown_certificates
from stockade.certificates.pages.tables import MethodNumbers, all_methods, number_rows, radius_rows, shown_radii
from stockade.certificates.sequential import Plan, Tally
from stockade.core.errors import OptionError
from stockade.core.protocols import Probabilities
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0}, bias=-0.1)
ROWS = [
    ("good good good good film", "positive"),  # 4 groups against 1; ties go to negative: (4 - 1 - 1) // 2 = 1
    ("a film of <b>no</b> note", "negative"),  # 5 against 0: 5 // 2 = 2
    ("good good film film story", "positive"),  # 2 against 3: negative, which is wrong, at radius 0
    ("good good good fine film", "positive"),  # 3 against 2: (3 - 2 - 1) // 2 = 0
]


def voting(rows: list[tuple[str, str]] = ROWS, **options: Any) -> st.CertificateRun:
    return st.certify(st.defend(VICTIM, "partition", groups=5), rows, "position-partition", **options)


def masking(*methods: str, **options: Any) -> st.CertificateRun:
    return st.certify(st.defend(VICTIM, "ranmask", rate=0.7), ROWS, *methods, **options)


@dataclass
class Article:
    attributes: dict[str, str]
    words: list[tuple[str, bool]] = field(default_factory=list)
    filled: float | None = None
    text: str = ""


class Page(HTMLParser):
    """The certificates of a page as a browser reads it, and everything that it would have to fetch."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.articles: list[Article] = []
        self.fetched: list[str] = []
        self._open: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.fetched += [given[name] for name in ("src", "href") if name in given and not given[name].startswith("#")]
        self._open.append(given.get("class", ""))
        if tag == "article":
            self.articles.append(Article({name: value for name, value in given.items() if name.startswith("data-")}))
        if given.get("class") == "fill":
            self.articles[-1].filled = float(given["style"].removeprefix("width: ").removesuffix("%"))

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self.articles:
            self.articles[-1].text += data
            if self._open and self._open[-1].split()[:1] == ["word"]:
                self.articles[-1].words.append((data, "open" in self._open[-1]))


def page_of(*runs: st.CertificateRun) -> Page:
    content = render_page(runs)
    return Page(re.sub(r"<(meta|br|input)\b[^>]*>", "", content))


def test_the_page_shows_each_text_with_its_words_radius_and_sentence() -> None:
    page = page_of(voting())
    assert page.fetched == []
    radii = [1, 2, 0, 0]
    for article, (text, label), radius in zip(page.articles, ROWS, radii, strict=True):
        assert [word for word, _ in article.words] == text.split()
        assert all(marked == (radius > 0) for _, marked in article.words)
        assert article.filled == (100 * radius / 5 if radius else None)
        assert f"radius {radius}" in article.text
        assert label in article.text
    stays = "The class stays negative under any change of up to 2 words, the number of words unchanged"
    assert stays in page.articles[1].text
    assert "any 2 of 5 words" in page.articles[1].text
    assert "votes of 5 groups: negative 5, positive 0" in page.articles[1].text
    assert [one.attributes["data-verdict"] for one in page.articles] == ["right", "right", "wrong", "right"]
    assert "negative, the true class is positive" in page.articles[2].text


def test_the_tables_and_the_headline_are_those_of_the_radii() -> None:
    run = voting()
    methods = all_methods([run])
    ((name, n, accuracy, abstained, wrong, median, rate, copies, _),) = number_rows(methods)
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
    assert radius_rows(methods) == [  # the band is sqrt(log(2 / 0.05) / 8) = 0.679 to both sides
        ("position-partition", "75.0 % (7.1–100.0)", "50.0 % (0.0–100.0)", "25.0 % (0.0–92.9)")
    ]
    against, proved = headline(run)
    assert against == (
        "A radius of d is about any change of up to d words, the number of words unchanged (words are what blanks "
        "separate)."
    )
    assert proved == (
        "position-partition proves the true class of 75.0 % of the texts (n = 4), and for 50.0 % that it stays at "
        "radius 1, up to radius 2 for 25.0 %; at least half have a radius of 1 or more. Nothing is left to chance."
    )


@pytest.mark.parametrize(
    ("whole_set", "sentence"),
    [
        (
            False,
            "Each is wrong with a chance of at most 0.1 over the draws of copies (α for each text): in the mean at",
        ),
        (True, "With a chance of at least 0.9 not one of its certificates is wrong (α = 0.1 for all)."),
    ],
)
def test_the_headline_says_whom_alpha_is_for(whole_set: bool, sentence: str) -> None:
    assert sentence in headline(masking("ranmask-gap", alpha=0.1, whole_set=whole_set))[1]


def test_what_proves_nothing_is_called_so_everywhere() -> None:
    run = masking("ranmask-gap", "ranmask-legacy:most=200,selection=50")
    page = page_of(run)
    claims = [one for one in page.articles if one.attributes["data-method"] == "ranmask-legacy"]
    assert len(claims) == len(ROWS)
    for article in claims:
        if article.attributes["data-status"] == "claimed":
            assert "not a certificate" in article.text
            assert "NOT A CERTIFICATE" in article.text
    assert any(article.attributes["data-status"] == "claimed" for article in claims)
    proofs = [one for one in page.articles if one.attributes["data-method"] == "ranmask-gap"]
    assert not any("not a certificate" in one.text.lower() for one in proofs)
    assert "ranmask-legacy is NOT A CERTIFICATE" in headline(run)[2]
    assert [row[0] for row in number_rows(all_methods([run]))] == ["ranmask-gap", "ranmask-legacy (not a certificate)"]


def test_only_what_proves_nothing_is_dashed() -> None:
    sound, unsound = all_methods([masking("ranmask-gap", "ranmask-legacy:most=200,selection=50")])
    assert "stroke-dasharray" not in curve_plot([sound])
    assert "stroke-dasharray" in curve_plot([unsound])
    assert "ranmask-legacy (not a certificate)" in curve_plot([sound, unsound])
    assert curve_plot([sound]) == curve_plot([sound])


def test_abstentions_and_errors_are_told_with_their_reason() -> None:
    class Moody(WeightVictim):
        def predict_proba(self, inputs: Any) -> Probabilities:
            if any("story" in str(item) for item in inputs):
                raise ValueError("not that word")
            return super().predict_proba(inputs)

    defended = st.defend(Moody(VICTIM.weights), "ranmask", rate=0.7)
    run = st.certify(defended, ROWS, "ranmask-exact:most=1")
    first, *others = page_of(run).articles
    assert first.attributes["data-status"] == "abstained"  # 1 of 5 words is kept: 5 copies, and none is asked
    assert "the text has 5 masked copies, more than most=1" in first.text
    run = st.certify(defended, ROWS, "ranmask-exact")
    first, *others = page_of(run).articles
    assert first.attributes["data-status"] == "error"  # errors come first
    assert "No answer of the model" in first.text
    assert "not that word" in first.text
    assert {one.attributes["data-status"] for one in others} == {"certified"}


def test_texts_that_do_not_fit_are_counted() -> None:
    run = voting()
    found, left_out = shown_certificates(run, "position-partition", 3)
    assert [one.certificate.id for one in found] == ["0", "1", "2"]
    assert left_out == 1
    assert shown_certificates(run, "position-partition", 4)[1] == 0


def test_a_long_text_is_cut_on_the_page() -> None:
    run = voting([("good " * 700, "positive"), *ROWS])
    found = shown(run, run.certificates[0])
    assert (len(found.words), found.more_words, found.cells) == (600, 100, 0)
    assert "and 100 more words" in render_page([run])


def test_markup_in_a_text_stays_text() -> None:
    content = render_page([voting()])
    assert "<b>no</b>" not in content
    assert "&lt;b&gt;no&lt;/b&gt;" in content


def test_different_attackers_on_one_page_are_warned_of() -> None:
    words = masking("ranmask-gap")
    edits = st.certify(st.defend(VICTIM, "deletion", kept_chance=0.3), ROWS, "deletion:most=200")
    warning = "equal radii do not mean equal protection"
    assert warning in render_page([words, edits])
    assert warning not in render_page([words, voting()])
    assert "insertions, deletions and substitutions" in headline(edits)[0]


def test_a_run_without_certificates_has_a_page(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: Any) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        voting(out=tmp_path / "run", observer=stop, concurrency=1)
    run = st.CertificateRun(tmp_path / "run")
    assert "Not complete: 1 of 4 texts are done" in render_page([run])
    run = masking("ranmask-gap", out=tmp_path / "none", concurrency=1)
    numbers = {**run.summary["methods"]["ranmask-gap"], "n": 0, "curve": []}
    assert curve_plot([MethodNumbers("none", numbers)]) == ""
    assert radius_rows([MethodNumbers("none", numbers)]) == []


def test_of_many_radii_the_table_shows_the_first_and_the_last() -> None:
    numbers = {"n": 4, "sound": True, "curve": [{"radius": d, "share": 1, "low": 0, "high": 1} for d in range(41)]}
    radii = shown_radii([MethodNumbers("many", numbers)])
    assert radii[:6] == list(range(6))
    assert radii[-1] == 40
    assert len(radii) == 12
    assert radii == sorted(set(radii))
    assert shown_radii([MethodNumbers("few", {**numbers, "curve": numbers["curve"][:12]})]) == list(range(12))


def test_beyond_the_largest_radius_nothing_is_certified_and_the_band_stays() -> None:
    (method,) = all_methods([voting()])
    beyond = method.point(3)
    assert (beyond["share"], beyond["low"]) == (0, 0)
    assert beyond["high"] == pytest.approx(0.679, abs=1e-3)  # sqrt(log(2 / 0.05) / 8)


def test_limits_are_never_rounded_in_favour_of_the_certificate() -> None:
    distribution = MaskingDistribution(16, 5)
    for votes in range(1, 113):
        evidence = SampledEvidence(
            distribution, "gap", Plan("fixed", 0.05, (112,)), 1, Tally((112 - votes, votes), 112)
        )
        limits, needed = list(_reached(evidence, evidence.radius()))
        low, high = (float(number) for number in re.findall(r"-?\d+\.\d+", limits))
        assert low <= evidence.limits.low
        assert high >= evidence.limits.high
        threshold = re.search(r"more than (\d+\.?\d*)", needed)
        if threshold:
            following = 0 if evidence.radius() is None else evidence.radius() + 1  # type: ignore[operator]
            assert Fraction(threshold[1]) >= 2 * distribution.losses()[following]
        else:
            assert "out of reach" in needed


def test_bets_are_told_with_what_they_would_need() -> None:
    text = "good fun and some bad jokes for all of us and many more good things to come " * 2
    unsure = WeightVictim({"good": 4.0, "bad": -4.0}, bias=0.1)
    (one,) = st.certify(st.defend(unsure, "ranmask", rate=0.7), [(text, "positive")]).certificates
    votes, selection, reached, beyond = ground(one, ["negative", "positive"])
    assert re.fullmatch(r"votes of [\d,]+ copies in [\d,]+ deals: negative [\d,]+, positive [\d,]+", votes)
    assert selection.endswith("votes of other copies chose the class")
    assert reached.startswith(f"a bet against radius {one.radius} holds ")
    last, best, proof, randomizer = (float(number.replace(",", "")) for number in re.findall(r"[\d,]+\.\d+", reached))
    assert proof == 20
    assert best >= proof or last >= randomizer
    assert beyond == f"radius {(one.radius or 0) + 1} is out of reach, whatever the votes"


VECTORS = "good 1 0 0\nfine 1 0.1 0\ngreat 1 -0.1 0\nbad -1 0 0\nawful -1 0.1 0\nfilm 0 0 1\nstory 0 1 -1\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two sets, good-fine-great and bad-awful; film and story have none."""
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text(VECTORS)
    return str(path)


def test_with_synonyms_only_words_that_have_some_are_marked(table: str) -> None:
    victim = WeightVictim({"good": 4.0, "fine": 4.0, "great": 4.0}, bias=-0.1)
    defended = st.defend(victim, "safer", vectors=table, directions=0)
    run = st.certify(defended, [('-- a "good" film: not bad, a story', "positive")], "safer:most=100")
    (certificate,) = run.certificates
    assert certificate.radius == 2  # all copies say positive, and the sets are those of every synonym
    (article,) = page_of(run).articles
    assert [word for word, marked in article.words if marked] == ['"good"', "bad,"]
    assert "any 2 of 2 words with synonyms, of 8 in all" in article.text
    Path(table).write_text(VECTORS.replace("film 0 0 1", "film 1 0 0.1"))  # film has synonyms now: another table
    (article,) = page_of(run).articles
    assert not any(marked for _, marked in article.words)


def test_markdown_and_json(tmp_path: Path) -> None:
    run = voting(out=tmp_path / "run")
    write_certificate_report([run], tmp_path / "page.md", "md")
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert "| position-partition | 75.0 % (7.1–100.0) | 50.0 % (0.0–100.0) | 25.0 % (0.0–92.9) |" in lines
    assert any(line.endswith(r"True class: negative. Text: a film of \<b\>no\</b\> note") for line in lines)
    write_certificate_report([run], tmp_path / "page.json", "json")
    assert json.loads((tmp_path / "page.json").read_text()) == [json.loads(json.dumps(run.summary))]
    with pytest.raises(OptionError, match='no report format "pdf"'):
        write_certificate_report([run], tmp_path / "page.pdf", "pdf")


def test_a_notebook_shows_the_run() -> None:
    content = voting()._repr_html_()
    assert content.lstrip().startswith('<div class="stockade">')
    assert "position-partition proves the true class of 75.0 % of the texts" in content
    assert content.count("<article") == 3


def test_exported_columns_are_those_of_a_document() -> None:
    run = masking("ranmask-gap", "ranmask-exact")
    for document in run.documents():
        assert tuple(document) == DOCUMENTS.columns
        nested = {name for name, value in document.items() if isinstance(value, dict | list)}
        assert nested <= set(DOCUMENTS.nested)
