"""Which attacks fit the language of the data: what a search reads besides the model is there for English alone.

An attack says what it reads (`english`). What the user brings for another language counts as there: a masked LM, a
sentence encoder, word neighbours. Attacks that read nothing but the text, such as DeepWordBug, fit every language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import OptionError, ResourceMissing
from stockade.core.protocols import Attack

RESOURCES: Mapping[str, tuple[str, str]] = {
    "wordnet": ("WordNet", ""),
    "pos": ("a part-of-speech tagger", ", or one without it (same_pos=false)"),
    "neighbours": ("word neighbours", ", or bring a table with --neighbours"),
    "masked-lm": ("a masked LM", ", or name one for that language with --mlm"),
    "encoder": ("a sentence encoder", ", or name one for that language with --encoder"),
}
"""What there is for English alone, and what else a user can do about it."""
_CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*", re.IGNORECASE)
_ENGLISH, _LATIN = "en", "Latin"


@runtime_checkable
class EnglishAttack(Protocol):
    """An attack that reads resources which are there for English alone."""

    def english(self) -> Collection[str]:
        """Which of `RESOURCES` it reads, with its options as they are."""


def check_language(
    attacks: Sequence[NamedAttack], texts: Iterable[str], language: str | None, brought: Collection[str]
) -> None:
    """Refuse attacks that need what is not there for the language of the data.

    Parameters
    ----------
    attacks
        The attacks.
    texts
        Some of the data: in another script than English, they are in another language, whatever was declared.
    language
        A code such as "de"; None for English.
    brought
        The resources that the user brings for that language.
    """
    if language is not None and not _CODE.fullmatch(language):
        raise OptionError(f'--language is "{language}", expected a code such as en, de or pt-BR.')
    english = is_english(language)
    script = script_of(texts) if english else None
    if english and script in (None, _LATIN):
        return
    spoken = f"in {language} (--language)" if not english else f"written in {script} letters (name their --language)"
    for attack in attacks:
        missing = missing_resources(attack.attack, brought)
        if missing:
            what, remedy = RESOURCES[missing[0]]
            raise ResourceMissing(
                f"{attack.key} needs {what}, which Stockade has for English alone, and the data are {spoken}. Use an "
                f"attack that fits every language, such as deepwordbug{remedy}."
            )


def is_english(language: str | None) -> bool:
    """Whether a code means English, as none does.

    Parameters
    ----------
    language
        A code such as "en-GB"; None if nobody named one.
    """
    return language is None or language.lower().partition("-")[0] == _ENGLISH


def missing_resources(attack: Attack, brought: Collection[str]) -> list[str]:
    """What an attack reads that is there for English alone and that nobody brings, in the order of `RESOURCES`.

    Parameters
    ----------
    attack
        The attack; one that does not say what it reads is taken to read nothing.
    brought
        The resources that the user brings.
    """
    read = attack.english() if isinstance(attack, EnglishAttack) else ()
    return [name for name in RESOURCES if name in read and name not in brought]


def script_of(texts: Iterable[str]) -> str | None:
    """The script of most letters, such as Latin or Cyrillic; None where there are no letters.

    Parameters
    ----------
    texts
        Some texts.
    """
    letters = Counter(letter for text in texts for letter in text if letter.isalpha())
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        name = unicodedata.name(letter, "unknown").partition(" ")[0]
        scripts[name if name == "CJK" else name.capitalize()] += count
    if not scripts:
        return None
    script, count = scripts.most_common(1)[0]
    return script if 2 * count > scripts.total() or script != _LATIN else None
