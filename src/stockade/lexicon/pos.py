"""Part of speech: tag-sets, and a small tagger for attacks.

Tags are Penn's, the universal ones (12 tags; Petrov et al. 2012), or WordNet's four.

The tagger tags one word in its window, lower-case text included, in microseconds. It is a linear model over hashed
features in two layers. The first scores a word alone, from its letters; its best one or two tags are the word's
*class*. The second adds features of the window of two words on either side: the words, their classes, and combinations.
No feature depends on a tag that was predicted in context, so one word can be tagged without the rest of the sentence,
and a candidate can be tried at a place by changing one row. All arithmetic is on integers (weights are int8, hashes
CRC-32 and multiply-shift): the same tags on every machine.

Made by tools/train_pos_tagger.py, which says who taught it and how well it agrees with its teacher. Words are those of
attacks: no punctuation, "don't" and "film's" are one word and get the tag of their first part.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stockade.artifacts import read_artifact

SPAN = 2  # words on either side that the tagger looks at
_FIELDS = "wcgsk"  # of a word in the window: word, class, guess (best tag alone), suffix, shape
_TEMPLATES = (
    # about the neighbours only
    "w-1", "w+1", "w-2", "w+2", "c-1", "c+1", "c-1 c+1", "c-2 c-1", "c+1 c+2", "g-2 g-1 g+1 g+2", "w-2 w-1",
    # about the word among its neighbours
    "w0", "w0 g-1", "w0 g+1", "w-1 w0", "w0 w+1", "w0 g-1 g+1", "c0 c-1", "c0 c+1", "c0 g-1 g+1", "c0 g-2 g-1",
    "c0 g+1 g+2", "c0 w-1", "c0 w+1", "c0 w-2", "c0 w+2", "s0 g-1", "s0 g+1", "k0 k-1 k+1", "k0 w-1",
    "c0 g-2 g-1 g+1 g+2", "c0 w-1 g+1", "c0 g-1 w+1", "c0 w-2 w-1",
)  # fmt: skip
_NEIGHBOURS = sum("0" not in template for template in _TEMPLATES)
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})

Ids = NDArray[np.int64]
Rows = NDArray[np.uint64]
Scores = NDArray[np.int32]

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
    """The universal tag of a Penn tag; a universal tag stays what it is, any other tag becomes "X"."""
    return PENN_TO_UNIVERSAL.get(tag, tag if tag in _PENN_BY_UNIVERSAL else "X")


def wordnet_pos(penn_tag: str) -> str | None:
    """WordNet's part of speech for a tag, `None` for the classes WordNet does not cover (modal verbs are verbs)."""
    return _WORDNET_POS.get(universal_tag(penn_tag))


def compatible(a: str, b: str, noun_verb_exchange: bool = True) -> bool:
    """Whether a word tagged `b` may replace a word tagged `a`, by their universal tags.

    Parameters
    ----------
    a, b : str
        Penn or universal tags.
    noun_verb_exchange : bool
        Whether a noun and a verb are compatible too, as in TextFooler's code and TextAttack; the BAE paper says "same
        POS", which is False.
    """
    first, second = universal_tag(a), universal_tag(b)
    return first == second or (noun_verb_exchange and {first, second} == {"NOUN", "VERB"})


def _hash(text: str) -> int:
    return crc32(text.encode(errors="surrogatepass"))  # a lone surrogate is no reason to fail


def _mix(seed: int) -> int:
    """A fixed odd 64-bit number for each seed (the finaliser of splitmix64)."""
    z = (seed + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    z = (z ^ z >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
    return z ^ z >> 31 | 1


def _template_matrix() -> Rows:
    """One column per template: an odd multiplier at each field of the window that the template reads, else zero."""
    matrix = np.zeros(((2 * SPAN + 1) * len(_FIELDS), len(_TEMPLATES)), dtype=np.uint64)
    for column, template in enumerate(_TEMPLATES):
        for number, slot in enumerate(template.split()):
            row = (int(slot[1:]) + SPAN) * len(_FIELDS) + _FIELDS.index(slot[0])
            matrix[row, column] = _mix(column * 8 + number)
    return matrix


_MATRIX = _template_matrix()
_SALT = np.array([_mix(10_000 + column) for column in range(len(_TEMPLATES))], dtype=np.uint64)
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)


def shape(word: str) -> str:
    """Case and kind of characters, coarsely: "x", "Xx", "X", "XX", "0", each with "-" or "'" when the word has one."""
    letters = "".join(filter(str.isalpha, word))
    if not letters:
        kind = "0" if any(map(str.isdigit, word)) else "."
    elif letters.islower():
        kind = "x"
    elif letters.isupper():
        kind = "X" if len(letters) == 1 else "XX"
    else:
        kind = "Xx" if letters[0].isupper() else "xX"
    has_digit = "0" if kind != "0" and any(map(str.isdigit, word)) else ""
    return kind + has_digit + ("-" if "-" in word else "") + ("'" if "'" in word else "")


def letter_features(word: str) -> list[str]:
    """What the first layer sees: the word, its endings, beginnings and shape, its parts at hyphen and apostrophe."""
    word = word.translate(_APOSTROPHES)
    low, form = word.lower(), shape(word)
    base, _, clitic = low.partition("'")
    head = base.rpartition("-")[2]
    features = ["w" + low, "k" + form, "b" + head, "k" + form + head[-2:], "l" + str(min(len(low), 6))]
    features += ["s" + head[-size:] for size in range(1, 6) if size < len(head)]
    features += ["p" + low[:size] for size in range(1, 5) if size < len(low)]
    if clitic:
        features.append("'" + clitic)
    return features


def letter_ids(word: str, buckets: int) -> Ids:
    """The rows of the first layer's table that the word uses."""
    return np.array([_hash(feature) % buckets for feature in letter_features(word)], dtype=np.int64)


def window_ids(windows: Rows, buckets: int, templates: slice = slice(None)) -> Ids:
    """The rows of the second layer's table, per window (one row of all fields of five words) and template.

    A template's key is a sum of products modulo 2^64, so that all of them are one product of integer matrices.
    """
    keys = windows @ _MATRIX[:, templates] + _SALT[templates]
    keys = (keys ^ keys >> np.uint64(32)) * _SPREAD
    return (keys >> np.uint64(65 - buckets.bit_length())).astype(np.int64)


class Tagger:
    """Tags words with the Penn tag-set. Safe to share between threads; holds nothing but weights and a word cache."""

    def __init__(self, tags: Sequence[str], letters: NDArray[np.int8], window: NDArray[np.int8], doubt: int) -> None:
        """`letters` and `window` are the tables of both layers, [buckets, tags], their sizes powers of two.

        A word's class names its two best tags when the second is less than `doubt` behind.
        """
        self.tags = tuple(tags)
        self._letters, self._window, self._doubt = letters, window, doubt
        self._universal = tuple(universal_tag(tag) for tag in tags)
        self._word = lru_cache(maxsize=1 << 16)(self._read_word)
        self._edge = np.array([_hash(field) for field in _FIELDS], dtype=np.uint64)

    def tag(self, words: Sequence[str]) -> list[str]:
        """The Penn tag of each word in its window."""
        return [self.tags[i] for i in self._best(words)]

    def universal(self, words: Sequence[str]) -> list[str]:
        """The universal tag of each word in its window."""
        return [self._universal[i] for i in self._best(words)]

    def tag_word(self, words: Sequence[str], index: int) -> str:
        """The Penn tag of one word in its window; the same as `tag(words)[index]`."""
        return self.tag_candidates(words, index, [words[index]])[0]

    def tag_candidates(self, words: Sequence[str], index: int, candidates: Sequence[str]) -> list[str]:
        """The Penn tag that each candidate has in the place of `words[index]`."""
        index = range(len(words))[index]
        if not candidates:
            return []
        read = [self._word(word) for word in candidates]
        window = np.concatenate([self._row(words, i) for i in range(index - SPAN, index + SPAN + 1)])
        windows = np.tile(window, (len(candidates), 1))
        centre = SPAN * len(_FIELDS)
        windows[:, centre : centre + len(_FIELDS)] = np.array([row for row, _ in read])
        around = window_ids(window, len(self._window), slice(_NEIGHBOURS))  # the same for every candidate
        within = window_ids(windows, len(self._window), slice(_NEIGHBOURS, None))
        scores = np.array([alone for _, alone in read]) + self._window[around].sum(0, dtype=np.int32)
        scores += self._window[within].sum(1, dtype=np.int32)
        return [self.tags[i] for i in scores.argmax(1).tolist()]

    def windows(self, words: Sequence[str]) -> Rows:
        """The window of each word: the fields of five words side by side."""
        edge = [self._edge] * SPAN
        rows = np.array([*edge, *(self._word(word)[0] for word in words), *edge])
        return np.concatenate([rows[i : i + len(words)] for i in range(2 * SPAN + 1)], axis=1)

    def alone(self, word: str) -> Scores:
        """The first layer's scores: what the word's letters say, whatever is around it."""
        return self._word(word)[1]

    def tag_alone(self, word: str) -> str:
        """The Penn tag that a word most often has, from its letters alone.

        That is not the tag of a sentence of this one word, which is mostly a name or a cry.
        """
        return self.tags[int(self.alone(word).argmax())]

    def _row(self, words: Sequence[str], index: int) -> Rows:
        return self._word(words[index])[0] if 0 <= index < len(words) else self._edge

    def _best(self, words: Sequence[str]) -> list[int]:
        if not words:
            return []
        ids = window_ids(self.windows(words), len(self._window))
        scores = np.array([self._word(word)[1] for word in words])
        scores += self._window[ids].sum(1, dtype=np.int32)
        best: list[int] = scores.argmax(1).tolist()
        return best

    def _read_word(self, word: str) -> tuple[Rows, Scores]:
        """The word's fields in a window, and its first-layer scores."""
        scores: Scores = self._letters[letter_ids(word, len(self._letters))].sum(0, dtype=np.int32)
        second, first = np.argsort(scores, kind="stable")[-2:].tolist()
        unsure = int(scores[first]) - int(scores[second]) < self._doubt
        plain = word.translate(_APOSTROPHES)
        low = plain.lower()
        values = ("w" + low, f"c{first}/{second if unsure else ''}", f"g{first}", "s" + low[-3:], "k" + shape(plain))
        return np.array([_hash(value) for value in values], dtype=np.uint64), scores


@lru_cache(maxsize=1)
def load_tagger() -> Tagger:
    """The tagger that comes with the package, read at the first call."""
    packed = io.BytesIO(read_artifact("pos_tagger.npz", "tools/train_pos_tagger.py"))
    with np.load(packed, allow_pickle=False) as file:
        tags = [str(tag) for tag in file["tags"]]
        return Tagger(tags, file["letters"], file["window"], int(file["doubt"]))
