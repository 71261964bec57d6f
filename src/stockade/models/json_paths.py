"""Where in an answer something stands, and where in a request the texts go.

A path is names and indices, `results[*].scores` or `choices[0].text`; `[*]` means every item of a list, and `.` the
whole answer. A request is JSON in which `"{texts}"` stands for a list of texts, or `{text}` for a single one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import TextInput
from stockade.datasets.wording import listing

WHOLE = "."
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\*)\]")
_SINGLE = ("{text}", "{premise}", "{hypothesis}")


def parse_path(path: str) -> tuple[str | int | None, ...]:
    """The steps of a path: names, indices, and None for every item.

    Parameters
    ----------
    path
        As the user writes it.
    """
    if path == WHOLE:
        return ()
    steps: list[str | int | None] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise OptionError(
                f'The path "{path}" cannot be read, expected one such as results[*].scores, or "." for all.'
            )
        name, index = match.groups()
        steps.append(name if name is not None else None if index == "*" else int(index))
        at = match.end()
    if not steps:
        raise OptionError('A path is empty, expected one such as results[*].scores, or "." for the whole answer.')
    return tuple(steps)


def value_at(answer: Any, steps: Sequence[str | int | None]) -> Any:
    """What stands at a path in an answer; where it leads nowhere, an error that says what is there instead.

    Parameters
    ----------
    answer
        The answer of a service.
    steps
        The path.
    """
    for number, step in enumerate(steps):
        if step is None:
            if not isinstance(answer, list):
                raise ModelError(
                    f"The answer has {_kind(answer)} where [*] expects a list. Check the path of the scores."
                )
            return [value_at(item, steps[number + 1 :]) for item in answer]
        if isinstance(step, int):
            if not isinstance(answer, list) or step >= len(answer):
                raise ModelError(
                    f"The answer has {_kind(answer)} where [{step}] is expected. Check the path of the scores."
                )
        elif not isinstance(answer, dict) or step not in answer:
            raise ModelError(
                f'The answer has {_kind(answer)} where "{step}" is expected. Check the path of the scores.'
            )
        answer = answer[step]
    return answer


class RequestTemplate:
    """A request with places for texts.

    Parameters
    ----------
    template
        JSON as text, or the values themselves; secrets are put in already.
    """

    def __init__(self, template: Any) -> None:
        if isinstance(template, str):
            try:
                template = json.loads(template)
            except ValueError as error:
                raise OptionError(
                    f'The request is no JSON ({error}), expected one such as {{"texts": "{{texts}}"}}.'
                ) from None
        self._template = template
        strings = list(_strings(template))
        self.batched = "{texts}" in strings
        if not self.batched and not any(place in string for string in strings for place in _SINGLE):
            raise OptionError(
                'The request has no place for a text, expected "{texts}" for a list of them, or {text} for one.'
            )
        if self.batched and any(place in string for string in strings for place in _SINGLE):
            raise OptionError('The request has both "{texts}" and a place for a single text: leave out one of the two.')

    def filled(self, inputs: Sequence[TextInput]) -> Any:
        """The request about some texts; about a single one if it has no place for more.

        Parameters
        ----------
        inputs
            Texts, or pairs of a premise and a hypothesis.
        """
        if self.batched:
            return _with_list(self._template, [item if isinstance(item, str) else list(item) for item in inputs])
        (item,) = inputs
        premise, text = ("", item) if isinstance(item, str) else item
        return _with_strings(self._template, {"{text}": text, "{hypothesis}": text, "{premise}": premise})


def _with_list(value: Any, texts: list[Any]) -> Any:
    if isinstance(value, dict):
        return {name: _with_list(item, texts) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_list(item, texts) for item in value]
    return texts if value == "{texts}" else value


def _with_strings(value: Any, places: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _with_strings(item, places) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_strings(item, places) for item in value]
    return fill(value, places) if isinstance(value, str) else value


def fill(template: str, places: dict[str, str]) -> str:
    """A text with its places filled, all at once: what is put in is not looked at again.

    Parameters
    ----------
    template
        The text.
    places
        What stands for what.
    """
    pattern = re.compile("|".join(map(re.escape, places)))
    return pattern.sub(lambda match: places[match[0]], template)


def _strings(value: Any) -> Sequence[str]:
    if isinstance(value, dict):
        return [string for item in value.values() for string in _strings(item)]
    if isinstance(value, list):
        return [string for item in value for string in _strings(item)]
    return [value] if isinstance(value, str) else []


def _kind(answer: Any) -> str:
    if isinstance(answer, dict):
        return f"a table with {listing(answer) if answer else 'nothing'}"
    return f"a list of {len(answer)}" if isinstance(answer, list) else f"{json.dumps(answer)[:60]}"
