"""The paper's own numbers, to be read beside those of a run: percent of texts fooled (RANDOM: of draws)."""

from __future__ import annotations

from stockade.studies.tables import Table

_COLUMNS = ("attack", "Yelp, LSTM", "Yelp, BERT", "Yelp, BERT not pre-trained", "MNLI, LSTM", "MNLI, BERT")
_ROWS = (
    ("random", 1.1, 0.8, 1, 17.8, 9.2),
    ("list", 27, 6, 15, 63, 56),
    ("asmin-gr", 16, 11, 32, 57, 53),
    ("asmax-gr", 62, 17, 35, 78, 54),
    ("asmin-ec", 16, 10, 32, 55, 52),
    ("asmax-ec", 62, 17, 35, 78, 51),
    ("A*", 62, 17, 35, 78, 54),
    ("gs-gr", 79, 52, 53, 95, 75),
    ("gs-ec", 78, 50, 53, 95, 75),
)
OTHERS = (
    "R_e: LSTM 0.83, BERT 0.56. Human raters: gs-ec on LSTM 0.6 readability and 52.1 % accuracy, on BERT 1.0 and "
    "68.8 %; on BERT gs-gr 0.55 and 64.6 %, gs-ec 1.0 and 68.8 %."
)


def published_table() -> Table:
    rows = [(str(name), *(f"{number} %" for number in numbers)) for name, *numbers in _ROWS]
    return Table(_COLUMNS, tuple(rows))
