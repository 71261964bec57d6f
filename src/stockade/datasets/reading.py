"""How a text file of data is read, where its name and its bytes do not say."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from stockade.core.errors import OptionError
from stockade.datasets.wording import quote

UTF_8 = "utf-8"
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|"}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read.

    Parameters
    ----------
    encoding
        The encoding of a text file; UTF-8 if None.
    delimiter
        What stands between the cells of a csv or tsv file, one character or its name; by its extension if None.
    skip_bad_rows
        Leave out rows that cannot be read (no text, no label, too many cells, no JSON) and count them, instead of
        ending with the first.
    """

    encoding: str | None = None
    delimiter: str | None = None
    skip_bad_rows: bool = False

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                info = codecs.lookup(self.encoding)
            except LookupError:
                info = None
            if info is None or not getattr(info, "_is_text_encoding", True):
                raise OptionError(
                    f"--encoding {self.encoding} is no encoding of text that Python knows, expected a name such as "
                    "utf-8, latin-1, cp1252 or utf-16."
                )
        if self.delimiter is not None and len(self.mark or "") != 1:
            raise OptionError(
                f"--delimiter {quote(self.delimiter)} is not one character, expected one such as ; or | or the word "
                "tab."
            )

    @property
    def mark(self) -> str | None:
        """The delimiter as a character; None if it was not named."""
        return None if self.delimiter is None else _NAMED_DELIMITERS.get(self.delimiter, self.delimiter)

    @property
    def parts(self) -> tuple[str, ...]:
        """What a fingerprint of the rows must also depend on: nothing for a file that is read as usual."""
        named = (("encoding", self.encoding), ("delimiter", self.mark))
        settings = [f"{name} {value}" for name, value in named if value is not None]
        return (*settings, *(("skip bad rows",) if self.skip_bad_rows else ()))

    def refuse(self, name: str, *options: str) -> None:
        """Refuse options that mean nothing for some data.

        Parameters
        ----------
        name
            What errors call the data.
        *options
            The fields that mean nothing here.
        """
        for option in options:
            if getattr(self, option):
                flag = "--" + option.replace("_", "-")
                raise OptionError(f"{flag} is for text files, and {name} is none: leave it out.")


PLAIN = Reading()
"""Read as usual."""
