"""The page of the study of BAE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stockade.core.records import Record
from stockade.report.diff import record_pieces
from stockade.report.document import Block, Document, Heading, Note, Plot, Prose, Table, code
from stockade.report.examples import Example, Examples, Version
from stockade.report.numbers import count, number, percent_cell, plain_percent, ranged_cell
from stockade.studies.bae.analysis import SPLITS, BaeNumbers, Splits, split_texts
from stockade.studies.bae.plots import curve_plot, split_plot, trade_off_plot
from stockade.studies.bae.published import PUBLISHED, published_cell
from stockade.studies.bae.rating_page import rating_blocks
from stockade.studies.bae.study import BaeResult
from stockade.studies.claims import claims_in_short, claims_table
from stockade.studies.frame import study_document
from stockade.studies.records import AttackNumbers, Results, succeeded, was_attacked

COMPARED, COMPARED_BOTH = 8, 4
"""How many texts are shown under every attack: those that most attacks fool, and those that needed both operations."""
_SHOWN_CAPS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
_LONGEST = 1_200
_CLAIMS = (
    "Held or not held with p < 0.05, else undecided: attacks are compared by McNemar's exact test on the texts that "
    "both have attacked, similarities by flipping signs on the texts that both fool. No correction for many "
    "comparisons. The paper had other victims, data, masked LM and sentence encoder."
)
_CURVE = (
    "Accuracy after the attack when replacements and insertions may be at most this share of the original's words, "
    "rounded down to whole words. bae-r+i may do more operations than there are words, hence the last column."
)
_ANTONYMS = (
    "Successes in which at least one word was replaced by a WordNet antonym. Indirect: adjectives that are opposites "
    "through a synonym. Such a text may well deserve the label that the model gives it. Attacks that only insert have "
    "none; opposites that WordNet does not list are not counted."
)


def bae_document(result: BaeResult) -> Document:
    """The whole page."""
    numbers = result.numbers
    return study_document(result, about=_about(result), findings=findings(result), blocks=_blocks(result, numbers))


def _about(result: BaeResult) -> Prose:
    summary = result.summary
    budget = f", at most {summary['budget']:,} queries per text" if summary["budget"] else ""
    return (
        "The four modes of BAE (Garg and Ramakrishnan 2020) and TextFooler on the same texts. Model ",
        code(summary["model"]),
        " on ",
        code(summary["data"]),
        f", {count(summary['examples'], 'text')}, seed {summary['seed']}{budget}. Masked LM: {summary['masked_lm']}. "
        f"Similarity: {summary['similarity_scale']}.",
    )


def findings(result: BaeResult) -> list[str]:
    """The study in a few sentences; every one follows from the tables."""
    attacks = result.numbers.attacks
    if not any(attack.attacked for attack in attacks.values()):
        return [
            "Nothing was attacked: the model is wrong on every text that could be read, so there is nothing to fool."
        ]
    if not any(attack.succeeded for attack in attacks.values()):
        return ["No attack fooled the model on any text."]
    return [
        _strongest(attacks),
        _most_similar(attacks),
        *_most_fluent(result.numbers),
        claims_in_short(result.claims),
    ]


def _strongest(attacks: Mapping[str, AttackNumbers]) -> str:
    rates = {name: attack.success_rate["value"] or 0.0 for name, attack in attacks.items()}
    names = [name for name, rate in rates.items() if rate == max(rates.values())]
    strongest = attacks[names[0]]
    who = (
        f"{names[0]} is the strongest: it fools"
        if len(names) == 1
        else f"{', '.join(names[:-1])} and {names[-1]} are the strongest: they fool"
    )
    return (
        f"{who} the model on {strongest.succeeded:,} of {count(strongest.attacked, 'text')}, and accuracy falls from "
        f"{plain_percent(strongest.clean_accuracy['value'])} to {plain_percent(strongest.robust_accuracy['value'])}."
    )


def _most_similar(attacks: Mapping[str, AttackNumbers]) -> str:
    means = {name: attack.mean_similarity for name, attack in attacks.items()}
    measured = {name: value for name, value in means.items() if value is not None}
    if not measured:
        return "Similarity was not measured."
    best, worst = max(measured, key=lambda name: measured[name]), min(measured, key=lambda name: measured[name])
    if best == worst:
        return f"The mean similarity of {best} to the original is {measured[best]:.3f}."
    return (
        f"The texts of {best} stay most similar to the original ({measured[best]:.3f}), those of {worst} least "
        f"({measured[worst]:.3f})."
    )


def _most_fluent(numbers: BaeNumbers) -> list[str]:
    if numbers.fluency is None:
        return []
    medians = {name: attack.median_ratio for name, attack in numbers.fluency.attacks.items()}
    ratios = {name: ratio for name, ratio in medians.items() if ratio is not None}
    if len(set(ratios.values())) < 2:
        return []
    best, worst = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    return [
        f"By pseudo-perplexity {best} costs least fluency (median ratio {ratios[best]:.2f}) and {worst} most "
        f"({ratios[worst]:.2f})."
    ]


def _blocks(result: BaeResult, numbers: BaeNumbers) -> Iterator[Block]:
    yield from (Note(remark) for remark in result.run.summary["remarks"])
    yield Heading("The attacks", aside="Tables 1 and 2")
    yield _attack_table(numbers.attacks, result.summary["similarity_scale"])
    if result.spec.published is not None:
        yield _published_table(numbers.attacks, result.spec.published)
    yield Plot(
        lambda: trade_off_plot(numbers.attacks),
        "Success rate with its 95 % interval against similarity: up and to the right is worse for the model's owner.",
        "trade-off",
    )
    yield Heading("What the paper claims, and what is seen here")
    yield claims_table(result.claims, _CLAIMS)
    yield Heading("How many words it takes", aside="Figure 2")
    yield Plot(lambda: curve_plot(numbers), name="curve")
    yield _curve_table(numbers)
    yield Heading("Replacing and inserting", aside="Table 5")
    yield Plot(lambda: split_plot(numbers.splits), name="splits")
    yield _split_table(numbers.splits)
    yield Heading("Human raters", aside="Table 4")
    yield from rating_blocks(numbers.ratings, str(result.folder))
    yield Heading("Did it keep its meaning?")
    yield _antonym_table(numbers)
    yield Heading("Is it still fluent?")
    yield _fluency_table(numbers, result.summary["masked_lm"])
    yield from _texts(result)


def _attack_table(attacks: Mapping[str, AttackNumbers], scale: str | None) -> Table:
    columns = ("attack", "n", "attacked", "clean accuracy", "after the attack", "success rate", "similarity")
    rows = [
        (
            name,
            f"{attack.n:,}" + (f" (+{attack.errors:,} errors)" if attack.errors else ""),
            f"{attack.attacked:,}",
            percent_cell(attack.clean_accuracy),
            percent_cell(attack.robust_accuracy),
            percent_cell(attack.success_rate),
            number(attack.mean_similarity, 3),
            number(attack.mean_perturbed_percent, 1, " %"),
            number(attack.mean_queries),
        )
        for name, attack in attacks.items()
    ]
    caption = (
        "Shares with 95 % Wilson intervals. Success rate: fooled, of the texts the model gets right. Similarity "
        f"({scale or 'not measured'}) and changed words are means over successes, queries over all attacked texts. "
        "Another encoder has another scale: compare rows, not papers."
    )
    return Table((*columns, "changed words", "queries"), rows, caption=caption)


def _curve_table(numbers: BaeNumbers) -> Table:
    """Some caps of the curve, and the accuracy without any."""
    caps = numbers.curve.caps
    chosen = [caps.index(cap) for cap in _SHOWN_CAPS]
    rows = [
        (
            name,
            *(plain_percent(curve[index]["value"]) for index in chosen),
            plain_percent(numbers.attacks[name].robust_accuracy["value"]),
        )
        for name, curve in numbers.curve.attacks.items()
    ]
    return Table(("at most", *(f"{100 * caps[index]:.0f} %" for index in chosen), "no cap"), rows, caption=_CURVE)


def _published_table(attacks: Mapping[str, AttackNumbers], published: str) -> Table:
    """What the paper printed, beside."""
    model, data = published_cell(published)
    rows = [
        (
            name,
            percent_cell(attacks[name].robust_accuracy),
            f"{cell.accuracy:g} %",
            number(attacks[name].mean_similarity, 3),
            f"{cell.similarity:.3f}",
        )
        for name, cell in PUBLISHED[model][data].items()
    ]
    caption = (
        f"The paper's {model} on {data}: another training, another masked LM, and similarity by the Universal Sentence "
        "Encoder, so compare the order of the rows."
    )
    columns = ("attack", "accuracy after it", "in the paper", "similarity", "in the paper")
    return Table(columns, rows, title="Beside the paper's numbers", caption=caption)


def _split_table(splits: Splits) -> Table:
    rows = [
        (
            f"{name}: {SPLITS[name]}",
            f"{split.count:,}",
            percent_cell(split.share),
            percent_cell(splits.of_tested[name].share),
        )
        for name, split in splits.splits.items()
    ]
    caption = (
        f"Of {count(splits.attacked, 'text')} that all three have attacked, and of "
        f"{count(splits.tested, 'test instance')} as in the paper, those among them that the model gets wrong anyway. "
        "A needed an insertion, B a replacement, C both; C is the part that A and B share."
    )
    return Table(("split", "texts", "of those attacked", "of all test instances"), rows, caption=caption)


def _antonym_table(numbers: BaeNumbers) -> Table:
    rows = [
        (
            name,
            f"{antonyms.successes:,}",
            f"{antonyms.direct.count:,}",
            percent_cell(antonyms.direct.share),
            f"{antonyms.with_indirect.count:,}",
            percent_cell(antonyms.with_indirect.share),
        )
        for name, antonyms in numbers.antonyms.items()
    ]
    columns = ("attack", "successes", "with an antonym", "share", "indirect ones too", "share")
    return Table(columns, rows, caption=_ANTONYMS)


def _fluency_table(numbers: BaeNumbers, proposes: str) -> Block:
    fluency = numbers.fluency
    if fluency is None:
        return Note("Not measured.", kind="aside")
    rows = [
        (
            name,
            f"{attack.measured:,}",
            number(attack.median_original),
            number(attack.median_adversarial),
            number(attack.median_ratio, 2, "×"),
            ranged_cell(attack.mean_ratio, 2, "×"),
        )
        for name, attack in fluency.attacks.items()
    ]
    columns = ("attack", "successes", "median before", "median after", "median ratio", "mean ratio")
    caption = (
        f"Pseudo-perplexity by {fluency.masked_lm}: each piece is hidden in turn, exp of the mean negative "
        "log-probability per piece. The ratio is adversarial / original; above 1 is less fluent. BAE's words are "
        f"proposed by {'the same model, which favours it' if fluency.masked_lm == proposes else proposes}."
    )
    return Table(columns, rows, caption=caption)


def _texts(result: BaeResult) -> Iterator[Block]:
    """The same text under every attack: those that needed both operations, then those that most attacks fool."""
    results = result.results
    both = split_texts(results)["C"][:COMPARED_BOTH]
    if both:
        yield Heading("Texts that needed both", aside="split C")
        yield Examples(items=[_compared(results, text) for text in both], preview=2)
    others = [text for text in _most_fooled(results) if text not in both][:COMPARED]
    if others:
        yield Heading("The same text under every attack")
        yield Examples(
            items=[_compared(results, text) for text in others],
            preview=2,
            more=f"The texts that most attacks fool. All others: stockade show {result.run.folder}",
        )


def _most_fooled(results: Results) -> Sequence[str]:
    """The texts that some attack fools, by how many do, in the order of the data among equals; not the very long."""
    first = next(iter(results.values()))
    counts = {text: sum(succeeded(records.get(text)) for records in results.values()) for text in first}
    fooled = [text for text, fooling in counts.items() if fooling and len(first[text].original) <= _LONGEST]
    return sorted(fooled, key=lambda text: -counts[text])


def _compared(results: Results, text: str) -> Example:
    tried = {attack: records[text] for attack, records in results.items() if was_attacked(records.get(text))}
    original = next(iter(tried.values()))
    return Example(
        text=original.original,
        premise=original.premise,
        details=(f"example {original.id}", original.label),
        versions=[_version(attack, record) for attack, record in tried.items()],
    )


def _version(attack: str, record: Record) -> Version:
    if not succeeded(record):
        return Version(attack, "not fooled", tone="good")
    similarity = "" if record.similarity is None else f" · {record.similarity:.3f}"
    return Version(attack, record_pieces(record), f"{record.adversarial_prediction}{similarity}")
