"""The report on what data say about rules: a report on the bias of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from stockade.core.text import Text
from stockade.report.document import Block, Cell, Details, Document, Heading, Note, Table, code
from stockade.report.examples import Example, Examples, Filter, Tone, Word
from stockade.report.numbers import count, number
from stockade.report.render_json import indented
from stockade.workflows.mine.explain import ExplainedRule, RulesExplanation, Sentence
from stockade.workflows.mine.page import MOST_ROWS
from stockade.workflows.mine.word_use import LogOdds, WordUse

_AROUND = 20
"""How many words of a long text stand on either side of the marked one."""
_NAMED = 5
_MOST_CLASSES = 4
"""With more classes than this, those other than the rule's are counted together."""
_TIED = (
    "Words that rules replace and that are more frequent in texts of the class, from the surest down. Odds: how many "
    "times higher the odds are that a text of the class has the word, with the 95 % interval (0.5 added to each count; "
    "each word by itself, so of words that mean nothing one in forty would be here too). Exploited by: the strongest "
    "rule for the word."
)
_RULES = (
    "PMI of the word → of its replacement, in bits, as in the transfer paper's Table 6: 0 where no text of the class "
    "has the word. A rule that takes PMI with its own class away, or adds PMI with another, turns what the data say "
    "against the models that learned it."
)


def explain_document(explanation: RulesExplanation) -> Document:
    """Findings, tied words, all rules with PMI before and after, texts, where the rules come from."""
    total = sum(explanation.texts.values())
    return Document(
        title="What the data say about the rules",
        about=(code(explanation.name), " on ", code(explanation.data), f", {count(total, 'text')}"),
        blocks=tuple(_blocks(explanation)),
        data=explanation.described(),
    )


def findings(explanation: RulesExplanation) -> list[str]:
    """The report in a few sentences."""
    tied = explanation.tied_words
    sentences = [
        f"{len(tied):,} of the {count(explanation.words, 'word')} that rules replace are clearly tied to the class of "
        "their rule by the data."
    ]
    for label in explanation.labels:
        first = next((rule for rule in tied if rule.label == label), None)
        if first is not None:
            uses, odds = _texts(explanation, first, first.before), first.before.log_odds
            sentences.append(
                f"The surest of {label} is “{first.before.word}” (texts: {uses}; odds {2**odds.value:.1f} times as "
                f"high, {_odds_interval(odds)}); the rules replace it by “{first.rule.replacement}”."
            )
    if explanation.unused:
        named = ", ".join(f"{rule.rule.word} ({rule.label})" for rule in explanation.unused[:_NAMED])
        more = " …" if len(explanation.unused) > _NAMED else ""
        sentences.append(
            f"{count(len(explanation.unused), 'rule has', 'rules have')} a word that no text of their class contains: "
            f"{named}{more}."
        )
    if explanation.foreign:
        sentences.append(
            f"{count(explanation.foreign, 'rule is', 'rules are')} for classes that the data do not have, and left out."
        )
    return sentences


def _blocks(explanation: RulesExplanation) -> Iterator[Block]:
    yield from (Note(sentence, kind="finding") for sentence in findings(explanation))
    tied = _per_class(explanation, explanation.tied_words, explanation.top)
    yield Heading("Words that the data tie to a class")
    yield _tied_table(explanation, tied) if tied else Note("None is clearly tied to a class.", kind="aside")
    yield Heading("The strongest rules", aside="Table 6")
    yield _rule_table(explanation, explanation.strongest, searchable=False)
    yield Heading("The texts behind them")
    examples = [_example(explanation, rule) for rule in explanation.strongest if explanation.sentences[rule.rule.key]]
    yield Examples(items=examples, filters=(Filter("class", "Class"),), search=True, preview=3)
    listed = _per_class(explanation, sorted(explanation.rules, key=lambda rule: -rule.rule.salience), MOST_ROWS)
    yield Heading("All rules")
    left_out = len(explanation.rules) - len(listed)
    yield Details(
        f"{count(len(listed), 'rule')} to search in" + (f"; {left_out:,} more are in the file" if left_out else ""),
        (_rule_table(explanation, listed, searchable=True),),
        unfolded=True,
    )
    if explanation.provenance:
        yield Details("Where the rules come from", indented(explanation.provenance))


def _per_class(explanation: RulesExplanation, rules: Sequence[ExplainedRule], most: int) -> list[ExplainedRule]:
    return [
        rule for label in explanation.labels for rule in islice((rule for rule in rules if rule.label == label), most)
    ]


def _tied_table(explanation: RulesExplanation, rules: Sequence[ExplainedRule]) -> Table:
    rows = [
        (
            rule.label,
            Cell(rule.before.word, _texts(explanation, rule, rule.before)),
            Cell(f"{2**rule.before.log_odds.value:.1f}×", _odds_interval(rule.before.log_odds)),
            Cell(rule.rule.replacement, _texts(explanation, rule, rule.after)),
            number(rule.rule.salience, 2),
        )
        for rule in rules
    ]
    columns = ("class", "word (texts)", "odds", "exploited by (texts)", "salience")
    return Table(columns, rows, caption=_TIED, numeric=(2, 4), grouped=1)


def _texts(explanation: RulesExplanation, rule: ExplainedRule, use: WordUse) -> str:
    """How many texts of each class have a word."""
    labels = explanation.labels
    if len(labels) <= _MOST_CLASSES:
        return ", ".join(f"{use.texts[label]:,} {label}" for label in labels)
    others = sum(use.texts[label] for label in labels if label != rule.label)
    return f"{use.texts[rule.label]:,} {rule.label}, {others:,} others"


def _rule_table(explanation: RulesExplanation, rules: Sequence[ExplainedRule], *, searchable: bool) -> Table:
    rows: list[tuple[str | Cell, ...]] = [
        (
            rule.label,
            rule.rule.word,
            rule.rule.replacement,
            number(rule.rule.salience, 2),
            "" if rule.rule.count is None else f"{rule.rule.count:,}",
            *(_pmi_cell(rule, label) for label in explanation.labels),
        )
        for rule in rules
    ]
    columns = ("class", "word", "replacement", "salience", "count", *(f"PMI, {label}" for label in explanation.labels))
    return Table(
        columns,
        rows,
        caption=_RULES,
        numeric=range(3, len(columns)),
        grouped=0 if searchable else 1,
        searchable=searchable,
        preview=10 if searchable else None,
    )


def _pmi_cell(rule: ExplainedRule, label: str) -> Cell:
    """PMI before and after; coloured where the data go with the rule."""
    before, after = rule.before.pmi[label], rule.after.pmi[label]
    helps = before > after if label == rule.label else after > before
    tone: Tone = "bad" if helps else "plain"
    return Cell(f"{before:.3f} → {after:.3f}", tone=tone)


def _example(explanation: RulesExplanation, rule: ExplainedRule) -> Example:
    """The texts of the class that have the word, and one of another class that has the replacement."""
    first, *others = explanation.sentences[rule.rule.key]
    notes = [f"also: {excerpt(sentence)}" for sentence in others]
    notes += [
        f"{rule.rule.replacement}, in {sentence.label}: {excerpt(sentence)}"
        for sentence in explanation.counterparts[rule.rule.key]
    ]
    uses, replaced = (_texts(explanation, rule, use) for use in (rule.before, rule.after))
    return Example(
        text=marked_words(first.text, first.index),
        status=f"{rule.rule.word} → {rule.rule.replacement}",
        tone="bad",
        label=rule.label,
        verdict=f"salience {number(rule.rule.salience, 2)}",
        details=(f"{rule.rule.word}: {uses}", f"{rule.rule.replacement}: {replaced}", f"example {first.id}"),
        notes=notes,
        facets={"class": rule.label},
    )


def marked_words(text: Text, index: int) -> tuple[Word, ...]:
    """A text around one of its words, which is marked; punctuation stays with the words it belongs to.

    Parameters
    ----------
    text
        The text.
    index
        The word to mark.
    """
    start, end = max(0, index - _AROUND), min(len(text.words), index + _AROUND + 1)
    words = []
    for at in range(start, end):
        before = _sides(text.gaps[at])[1] if at else text.gaps[0].strip()
        behind = _sides(text.gaps[at + 1])[0] if at + 1 < len(text.words) else text.gaps[-1].rstrip()
        words.append(Word(f"{before}{text.words[at]}{behind}", marked=at == index))
    cut = [Word("…")]
    return (*(cut if start else ()), *words, *(cut if end < len(text.words) else ()))


def _sides(gap: str) -> tuple[str, str]:
    """What of a gap belongs to the word before it, and what to the word behind: an opening bracket, say."""
    behind, blank, rest = gap.partition(" ")
    middle, _, before = rest.rpartition(" ")
    return (f"{behind} {middle}".rstrip(), before.strip()) if blank else (gap.rstrip(), "")


def excerpt(sentence: Sentence) -> str:
    """The same as plain text, with the word between guillemets."""
    words = marked_words(sentence.text, sentence.index)
    return " ".join(f"«{word.text}»" if word.marked else word.text for word in words)


def _odds_interval(odds: LogOdds) -> str:
    return f"{2**odds.low:.1f}–{2**odds.high:.1f}"
