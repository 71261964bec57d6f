"""From what a chat model says to a class: the label in its answer, or the probabilities of the labels' first tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from stockade.core.errors import ModelError

_PREAMBLE = re.compile(r"^(?:the\s+)?(?:final\s+)?(?:label|class|answer|category|classification)\s*(?:is\b|[:=])\s*")
_DECORATION = " \t\r\n\"'`*_.,;:!?()[]{}<>#-"
_AMBIGUOUS = 0.01
"""How probable a first token may be that begins several labels before the answer says nothing."""
_LIKELY = 0.5
"""How probable the labels must be together for their shares to be an answer."""


def parse_label(answer: str, labels: Sequence[str]) -> int | None:
    """The class that an answer names: it is a label, or begins with one; None if it does neither.

    Case, quotes, emphasis and punctuation do not matter, nor does a preamble such as "Label:". A label in the middle of
    a sentence does not count, because the sentence may deny it.

    Parameters
    ----------
    answer
        What the model said.
    labels
        The classes.
    """
    said = _PREAMBLE.sub("", answer.strip(_DECORATION).casefold()).strip(_DECORATION)
    beginning = [
        (len(name), index)
        for index, label in enumerate(labels)
        if (name := label.casefold().strip()) and (said == name or re.match(rf"{re.escape(name)}(?!\w)", said))
    ]
    return max(beginning)[1] if beginning else None


def label_probabilities(choice: Mapping[str, Any], labels: Sequence[str]) -> list[float] | None:
    """The probabilities of the labels by their first tokens, made to sum to 1; None if the answer shows none.

    A token counts for the label that it begins. A label of which no token is listed is taken to be as probable as the
    least probable token that is, or as all that is not listed together, whichever is less.

    Parameters
    ----------
    choice
        A choice of the answer, with its log-probabilities.
    labels
        The classes.
    """
    listed = _first_tokens(choice)
    if listed is None:
        return None
    names = [label.casefold().strip() for label in labels]
    masses, ambiguous = [0.0] * len(labels), 0.0
    for token, chance in listed:
        begun = [index for index, name in enumerate(names) if name.startswith(token) or token.startswith(name)]
        if len(begun) == 1:
            masses[begun[0]] += chance
        elif begun:
            ambiguous += chance
    if ambiguous >= _AMBIGUOUS:
        raise ModelError(
            f"Several of the labels {', '.join(labels)} begin with the same token, so its probability says nothing. "
            "Name labels that begin differently, or use --setting logprobs=off."
        )
    if sum(masses) < _LIKELY:
        return []
    rest = max(0.0, 1.0 - sum(chance for _, chance in listed))
    floor = max(1e-12, min(rest, min(chance for _, chance in listed)))
    masses = [mass or floor for mass in masses]
    return [mass / sum(masses) for mass in masses]


def _first_tokens(choice: Mapping[str, Any]) -> list[tuple[str, float]] | None:
    """The likely tokens, in lower case and with their probabilities, where the answer says its first word."""
    content = (choice.get("logprobs") or {}).get("content") if isinstance(choice.get("logprobs"), Mapping) else None
    for place in content or ():
        if not any(letter.isalnum() for letter in str(place.get("token", ""))):
            continue
        tokens: dict[str, float] = {}
        for item in place.get("top_logprobs") or ():
            token = str(item["token"]).strip(_DECORATION).casefold()
            if token:
                tokens[token] = tokens.get(token, 0.0) + math.exp(min(0.0, float(item["logprob"])))
        return list(tokens.items()) or None
    return None
