"""The report of one or more certifications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stockade.certificates.certificate import Certificate, statement
from stockade.certificates.evidence import read_evidence
from stockade.certificates.medians import curve_band
from stockade.certificates.method import allowed_changes, changeable_words
from stockade.core.errors import StockadeError
from stockade.report.charts import Series, plot_curves
from stockade.report.document import Block, Document, Heading, Note, Plot, Table, code, texts_and_manifests
from stockade.report.examples import Bar, Example, Examples, Filter, Tone, Word
from stockade.report.figures import PALETTE, RED, draw_plot
from stockade.report.numbers import NOT_AVAILABLE, number, percent, plain_percent
from stockade.report.render_json import indented
from stockade.workflows.attack.result import defense_in_short
from stockade.workflows.certify.result import BAND, CertifyResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEXTS_PER_METHOD = 200
NOT_PROVED = "not a certificate"
COLUMNS = (
    "method",
    "n",
    "accuracy",
    "abstained",
    "wrong",
    "median radius (MCB)",
    "median rate (MCR)",
    "mean copies",
    "seconds",
)
_CLAIMED = "claimed: "
_MOST_WORDS, _MOST_CELLS, _MOST_RADII, _ALL_UP_TO, _MOST_BANDS = 600, 100, 12, 6, 3
_NUMBERS = (
    "Accuracy: the true class is certified, of n, with 95 % Wilson intervals. Abstained: no class wins by enough, or "
    "the method does not reach the text; neither right nor wrong. Wrong: another class than the true one is certified. "
    "A text that ended in an error is in n, and is not certified. MCB: the largest radius that at least half of the "
    "texts have; MCR: the same as a share of the words. Copies: how many the model was asked about for a text."
)
_RADII = (
    "The share of texts whose true class (any class, where the data have no labels) is certified at radius d or more. "
    "The band holds at all radii at once with probability 95 %, for texts like these; it does not speak of the "
    "probability that a certificate is wrong."
)
_TEXTS = (
    "Underlined: words of which any d may be changed. The bar shows how much of the text that is. Class only: the "
    "radius is 0, it is proved which class wins, and nothing is proved of changed texts."
)
_RADIUS, _WORDS, _COPIES = "radius", "words", "copies"
"""What texts can be sorted by."""
_TONES: Mapping[str, Tone] = {"certified": "good", "claimed": "bad", "abstained": "plain", "error": "warning"}


def certify_document(results: Sequence[CertifyResult]) -> Document:
    """The report: what is proved, against whom, how sure that is; numbers, plot, texts, manifest."""
    several = len(results) > 1
    blocks: list[Block] = []
    for result in results:
        blocks += _findings(result, several)
    methods = all_methods(results)
    rows = [(method.title, *_cells(method.numbers)) for entry in methods for method in entry.with_answered()]
    blocks += [Table(COLUMNS, rows, caption=_NUMBERS), radius_table(methods)]
    if len({threat for result in results for threat in threats(result)}) > 1:
        blocks.append(
            Note("The methods are about different attackers: equal radii do not mean equal protection.", "warning")
        )
    blocks.append(Plot(lambda: curve_plot(methods), "The share of texts certified at each radius.", "certificates"))
    blocks += [Heading("Texts"), Note(_TEXTS, kind="aside")]
    blocks += texts_and_manifests(
        [(result.name, _texts(result), indented(result.manifest.described())) for result in results]
    )
    return Document(
        title=_title(methods),
        about=f"Certification report of {', '.join(result.name for result in results)}.",
        blocks=tuple(blocks),
        data=results[0].summary if not several else [result.summary for result in results],
    )


def _title(methods: Sequence[MethodNumbers]) -> str:
    """The result in a line: how many texts are proved to keep their class when something is changed."""
    proving = [method for method in methods if method.numbers["sound"] and method.numbers["n"]]
    if not proving:
        return "Nothing is certified"
    best = max(proving, key=lambda method: method.point(1)["value"] or 0.0)
    share, classes = best.point(1)["value"], best.point(0)["value"]
    by = f" ({best.name})" if len(methods) > 1 else ""
    if share:
        return f"{plain_percent(share)} of the texts are certified at radius 1 or more{by}"
    return f"No text is certified against any change, {plain_percent(classes)} in their class alone{by}"


def _findings(result: CertifyResult, several: bool) -> Iterator[Block]:
    summary = result.summary
    if several:
        yield Heading(result.name)
    for key, numbers in summary["methods"].items():
        yield Note(_finding(key, numbers, result), kind="finding")
    by_threat = threats(result)
    for threat, keys in by_threat.items():
        of_methods = f" of {', '.join(keys)}" if len(by_threat) > 1 else ""
        yield Note(f"A radius of d{of_methods} is about {threat}.")
    if not result.labelled:
        yield Note("The data have no labels: a class is certified as the model gives it.")
    truncated = max((numbers["truncated"] for numbers in summary["methods"].values()), default=0)
    if truncated:
        yield Note(
            f"{truncated:,} texts are longer than the model reads: every copy is cut alike, so the certificates hold, "
            "and words beyond the cut say nothing to the model."
        )
    if not summary["complete"]:
        done = min((numbers["n"] for numbers in summary["methods"].values()), default=0)
        yield Note(
            (f"Not complete: {done:,} of {summary['examples']:,} texts are done. Resume it with ",
             code(f"stockade resume {result.folder}")),
            kind="warning",
        )  # fmt: skip
    defenses = ", ".join(map(defense_in_short, summary["defenses"]))
    yield Note(
        ("Model ", code(summary["model"]), f" in {defenses} on ", code(summary["data"]), f", {summary['examples']:,}",
         " texts. Check it with ", code(f"stockade verify {result.folder}")),
        kind="aside",
    )  # fmt: skip


def threats(result: CertifyResult) -> dict[str, list[str]]:
    """Each threat that the methods of a run are about, with their names."""
    keys: dict[str, list[str]] = {}
    for key, numbers in result.summary["methods"].items():
        keys.setdefault(numbers["threat"].rpartition(_CLAIMED)[2], []).append(key)
    return keys


def _finding(key: str, numbers: Mapping[str, Any], result: CertifyResult) -> str:
    """What one method proves, in a sentence or two."""
    if not numbers["answered"]["n"]:
        why = f": all {numbers['errors']:,} ended in an error" if numbers["errors"] else " yet"
        return f"{key}: no text has an answer{why}."
    without = _without_errors(numbers)
    if not numbers["sound"]:
        return f"{key} is {NOT_PROVED.upper()}: it claims more than it proves, namely {_proved(numbers)}.{without}"
    choose = result.methods[key]["options"].get("choose")
    label = " The true class was given to it (choose=label)." if choose == "label" else ""
    return f"{key} proves {_proved(numbers)}.{without} {_error(numbers, result.summary['familywise'])}{label}"


def _without_errors(numbers: Mapping[str, Any]) -> str:
    """How many texts ended in an error, and what is certified of the others; nothing if none did."""
    if not numbers["errors"]:
        return ""
    answered, plural = numbers["answered"], "" if numbers["errors"] == 1 else "s"
    return (
        f" {numbers['errors']:,} text{plural} ended in an error and count{'s' if not plural else ''} as not certified; "
        f"of the {answered['n']:,} answered it is {plain_percent(answered['curve'][0]['share'])}."
    )


def _proved(numbers: Mapping[str, Any]) -> str:
    curve = numbers["curve"]
    whose = "a class" if numbers["accuracy"] is None else "the true class"
    right = f"{whose} of {plain_percent(curve[0]['share'])} of the texts (n = {numbers['n']:,})"
    if len(curve) == 1:
        return f"{right}, and for none that it stays when something is changed"
    largest = "" if len(curve) == 2 else f", up to radius {len(curve) - 1} for {plain_percent(curve[-1]['share'])}"
    median = numbers["median_radius"]
    half = "less than half have a radius" if median is None else f"at least half have a radius of {median} or more"
    return f"{right}, and for {plain_percent(curve[1]['share'])} that it stays at radius 1{largest}; {half}"


def _error(numbers: Mapping[str, Any], familywise: bool) -> str:
    alpha = numbers["alpha"]
    if alpha is None:
        return "Nothing is left to chance."
    if familywise:
        return f"With probability {1 - alpha:g} or more not one of its certificates is wrong (α = {alpha:g} for all)."
    return (
        f"Each is wrong with probability at most {alpha:g} over the draws of copies: about "
        f"{alpha * numbers['answered']['n']:.3g} of {numbers['answered']['n']:,} may be wrong."
    )


@dataclass(frozen=True, slots=True)
class MethodNumbers:
    """One method of a run, by the name it has on a page of one or more runs."""

    name: str
    numbers: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Its name, with a warning if it proves nothing."""
        return self.name if self.numbers["sound"] else f"{self.name} ({NOT_PROVED})"

    def with_answered(self) -> tuple[MethodNumbers, ...]:
        """The method, and where texts ended in errors once more without those."""
        answered = self.numbers["answered"]
        if not self.numbers["errors"] or not answered["n"]:
            return (self,)
        without = {**self.numbers, **answered, "errors": 0}
        return self, MethodNumbers(f"{self.name}, of the {answered['n']:,} answered", without)

    def point(self, radius: int) -> Mapping[str, float | None]:
        """The certified share at a radius; none is certified beyond the largest, and the band says how sure that is."""
        curve = self.numbers["curve"]
        if radius < len(curve):
            return {"value": curve[radius]["share"], "low": curve[radius]["low"], "high": curve[radius]["high"]}
        ((low, high),) = curve_band([None] * self.numbers["n"], BAND)
        return {"value": 0.0, "low": low, "high": high}


def all_methods(results: Sequence[CertifyResult]) -> list[MethodNumbers]:
    """The methods of the runs, each with the name of its run if there are several."""
    several = len(results) > 1
    return [
        MethodNumbers(f"{result.name}: {key}" if several else key, numbers)
        for result in results
        for key, numbers in result.summary["methods"].items()
    ]


def radius_table(methods: Sequence[MethodNumbers]) -> Table:
    """The certified share at each radius: at all of them, or of many the first ones and some up to the largest."""
    longest = max((len(method.numbers["curve"]) for method in methods), default=0)
    radii = list(range(longest))
    if longest > _MOST_RADII:
        others = _MOST_RADII - _ALL_UP_TO
        steps = [_ALL_UP_TO + round((longest - 1 - _ALL_UP_TO) * at / (others - 1)) for at in range(others)]
        radii = [*range(_ALL_UP_TO), *dict.fromkeys(steps)]
    rows = [
        (method.title, *(percent(method.point(radius)) for radius in radii))
        for entry in methods
        for method in entry.with_answered()
        if method.numbers["n"]
    ]
    return Table(("certified", *(f"d ≥ {radius}" for radius in radii)), tuple(rows), caption=_RADII)


def curve_plot(methods: Sequence[MethodNumbers]) -> str:
    """One line per method with its band; what proves nothing is dashed and red. Empty if nothing was certified yet."""
    measured = [method for method in methods if method.numbers["n"]]
    if not measured:
        return ""
    radii = list(range(1 + max(len(method.numbers["curve"]) for method in measured)))
    few = len(radii) <= _MOST_RADII
    colours = iter([colour for colour in PALETTE if colour != RED] * len(measured))
    series = [
        Series(
            method.title,
            [method.point(radius) for radius in radii],
            next(colours) if method.numbers["sound"] else RED,
            radii,
            "-" if method.numbers["sound"] else "--",
            None if few else "",
        )
        for method in measured
    ]
    labelled = any(method.numbers["accuracy"] is not None for method in measured)

    def draw(axes: Axes) -> None:
        plot_curves(
            axes,
            series,
            xlabel="radius d",
            ylabel=f"{'true ' if labelled else ''}class certified at d or more, %",
            spread="bars" if few and len(measured) > _MOST_BANDS else "band",
            aside=0.05 if few else 0.0,
        )
        axes.set_xticks([radius for radius in axes.get_xticks() if radius in radii])

    return draw_plot("certificates", (8.6, 3.8), draw)


def _cells(numbers: Mapping[str, Any]) -> tuple[str, ...]:
    median, rate = numbers["median_radius"], numbers["median_rate"]
    return (
        f"{numbers['n']:,}" + (f" ({numbers['errors']:,} errors)" if numbers["errors"] else ""),
        NOT_AVAILABLE if numbers["accuracy"] is None else percent(numbers["accuracy"]),
        f"{numbers['abstained']:,}",
        NOT_AVAILABLE if numbers["wrong"] is None else f"{numbers['wrong']:,}",
        NOT_AVAILABLE if median is None else str(median),
        plain_percent(rate),
        number(numbers["mean_copies"], 0),
        number(numbers["seconds"]),
    )


def _texts(result: CertifyResult) -> Examples:
    """Of each method the texts that ended in an error first, then the others in the order of the data."""
    items: list[Example] = []
    left_out = 0
    for key, numbers in result.summary["methods"].items():
        certificates = sorted(result.records(key), key=lambda certificate: certificate.status != "error")
        chosen = certificates[:TEXTS_PER_METHOD]
        items += [certificate_example(result, certificate) for certificate in chosen]
        left_out += numbers["n"] - len(chosen)
    more = f"{left_out:,} more texts are in the run: stockade export {result.folder}" if left_out else ""
    filters = (
        Filter("method", "Method"),
        Filter("status", "Status"),
        Filter("radius", "Radius"),
        Filter("class", "Class"),
    )
    return Examples(items=items, filters=filters, sorts=(_RADIUS, _WORDS, _COPIES), search=True, more=more)


def certificate_example(result: CertifyResult, certificate: Certificate) -> Example:
    """One text under one method, as a report shows it."""
    method, words = result.methods[certificate.method], certificate.text.split()
    shown = words[:_MOST_WORDS]
    details = [f"example {certificate.id}", f"{certificate.words} words", f"{certificate.copies:,} copies"]
    if certificate.label is not None:
        details.insert(1, f"true class {certificate.label}")
    if certificate.truncated:
        details.append("longer than the model reads")
    if len(words) > len(shown):
        details.append(f"and {len(words) - len(shown):,} more words")
    radius = certificate.radius
    verdict = certificate.status if radius is None else f"{certificate.predicted}, radius {radius}"
    if certificate.status == "claimed":
        verdict = f"{certificate.predicted}, claims radius {radius}: {NOT_PROVED}"
    wrong = radius is not None and certificate.label is not None and not certificate.correct
    return Example(
        text=[Word(word, mark) for word, mark in zip(shown, _marks(result, certificate, len(words)), strict=False)],
        status=_status(certificate),
        tone="bad" if wrong else "soft" if radius == 0 else _TONES[certificate.status],
        label=certificate.method,
        verdict=verdict,
        details=details,
        premise=certificate.premise,
        bar=_bar(result, certificate) if radius else None,
        notes=[f"{statement(certificate, method)}."],
        explained=_explained(result, certificate),
        values={
            _RADIUS: -1 if radius is None else radius,
            _WORDS: certificate.words,
            _COPIES: certificate.copies,
        },
        facets={
            "method": certificate.method,
            "status": certificate.status,
            "radius": "none" if radius is None else str(radius),
            "class": "none" if radius is None or certificate.label is None else "wrong" if wrong else "right",
        },
    )


def _status(certificate: Certificate) -> str:
    """The status in words; a radius of 0 says which class wins, and nothing of changed texts."""
    return "class only" if certificate.status == "certified" and certificate.radius == 0 else certificate.status


def _marks(result: CertifyResult, certificate: Certificate, words: int) -> tuple[bool, ...]:
    """Which words an attacker may change within the radius; none if that is nothing or cannot be told here."""
    context = result.contexts[certificate.method] if certificate.radius else None
    try:
        marks = None if context is None else changeable_words(context.named.method, certificate, context.defense)
    except StockadeError:  # a file that the defense reads is not here
        marks = None
    return marks or (False,) * words


def _bar(result: CertifyResult, certificate: Certificate) -> Bar:
    named = result.contexts[certificate.method].named
    words = max(1, certificate.words)
    return Bar(
        min(1.0, (certificate.radius or 0) / words),
        allowed_changes(named.method, certificate),
        certificate.words if certificate.words <= _MOST_CELLS else 0,
    )


def _explained(result: CertifyResult, certificate: Certificate) -> list[str]:
    """What was counted, what it proves at least, and what more would need."""
    if certificate.evidence is None:
        return []
    counted, *others = read_evidence(certificate.evidence).explain(result.labels)
    selected = []
    if certificate.selection:
        selected = [f"{sum(certificate.selection):,} votes of other copies chose the class"]
    return [counted, *selected, *others]
