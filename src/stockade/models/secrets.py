"""Secrets come from the environment and go nowhere but to the service.

Settings name a variable as `${NAME}`; its value is put in when a request is made. What is recorded, shown or raised
has the name. Answers of a service may repeat a secret, so every sentence about one goes through `redact`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from stockade.core.errors import ModelError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHORTEST = 4
"""Shorter values are not looked for in texts: they would stand in any sentence."""


def names_variable(text: str) -> bool:
    """Whether a text takes a value from the environment."""
    return _VARIABLE.search(text) is not None


_KEPT: WeakSet[Secrets] = WeakSet()
_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy")


def _redact_record(record: logging.LogRecord) -> bool:
    """A filter for the logs of connections: the headers of an answer may repeat a secret."""
    message = record.getMessage()
    for secrets in list(_KEPT):
        message = secrets.redact(message)
    record.msg, record.args = message, ()
    return True


class Secrets:
    """The values of environment variables that requests need, and where to hide them."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        _KEPT.add(self)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_redact_record)  # the same filter is added once

    def expand(self, value: Any) -> Any:
        """A text, list or table with the values of the variables that it names.

        Parameters
        ----------
        value
            As the user wrote it.
        """
        if isinstance(value, str):
            return _VARIABLE.sub(self._value, value)
        if isinstance(value, dict):
            return {name: self.expand(item) for name, item in value.items()}
        return [self.expand(item) for item in value] if isinstance(value, list) else value

    def redact(self, text: str) -> str:
        """The text with `${NAME}` in place of each secret.

        Parameters
        ----------
        text
            Whatever somebody may read.
        """
        for name, value in sorted(self._values.items(), key=lambda item: -len(item[1])):
            if len(value) >= _SHORTEST:
                text = text.replace(value, f"${{{name}}}")
        return text

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the secrets out of what is said against an answer, which may repeat them."""
        try:
            yield
        except ModelError as problem:
            raise type(problem)(self.redact(str(problem))) from None

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        value = os.environ.get(name)
        if not value:
            raise ModelError(f"The environment variable {name} is not set, and a setting takes its value from there.")
        if "\n" in value or "\r" in value or "\0" in value:
            raise ModelError(f"The environment variable {name} holds a line break, which no header can have.")
        self._values[name] = value
        return value
