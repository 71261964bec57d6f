"""Part-of-speech tags: Penn, universal (12 tags; Petrov et al. 2012), WordNet's four, and when two are compatible."""

from __future__ import annotations

from types import MappingProxyType

_PENN_BY_UNIVERSAL = {
    "NOUN": "NN NNS NNP NNPS",
    "VERB": "VB VBD VBG VBN VBP VBZ MD",
    "ADJ": "JJ JJR JJS",
    "ADV": "RB RBR RBS WRB",
    "PRON": "PRP PRP$ WP WP$",
    "DET": "DT PDT WDT EX",
    "ADP": "IN",
    "CONJ": "CC",
    "NUM": "CD",
    "PRT": "RP TO POS",
    "X": "FW LS SYM UH ADD AFX GW XX",
    ".": "# $ '' `` , . : -LRB- -RRB- HYPH NFP _SP",
}

PENN_TO_UNIVERSAL = MappingProxyType(
    {penn: universal for universal, penns in _PENN_BY_UNIVERSAL.items() for penn in penns.split()}
)
UNIVERSAL_TAGS = tuple(_PENN_BY_UNIVERSAL)

_WORDNET_POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}


def universal_tag(tag: str) -> str:
    """The universal tag of a Penn tag; a universal tag stays what it is, an unknown one becomes "X"."""
    return PENN_TO_UNIVERSAL.get(tag, tag if tag in _PENN_BY_UNIVERSAL else "X")


def wordnet_pos(penn_tag: str) -> str | None:
    """WordNet's part of speech for a tag, `None` for the classes WordNet does not cover (modal verbs are verbs)."""
    return _WORDNET_POS.get(universal_tag(penn_tag))


def compatible(a: str, b: str, noun_verb_exchange: bool = True) -> bool:
    """Whether a word tagged `b` may stand for one tagged `a`; Penn and universal tags both do.

    Equal universal tags are compatible. With `noun_verb_exchange` so are a noun and a verb, as in TextFooler's code and
    TextAttack; the BAE paper says "same POS", which is `noun_verb_exchange=False`.
    """
    first, second = universal_tag(a), universal_tag(b)
    return first == second or (noun_verb_exchange and {first, second} == {"NOUN", "VERB"})
