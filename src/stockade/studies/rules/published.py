"""What the transfer paper printed about replacement rules in its Tables 5, 9 and 10, to stand beside other numbers.

"Generating universal language adversarial examples by understanding and enhancing the transferability across neural
models" (under review at ICLR 2021): 63 models, at most 30 % of the words changed, percent of sentences. Table 5 is size
6 of Table 9; the last row of Table 10 is size 7. Word%, the share of changed words, depends on the target, so success
must have been judged after each replacement.
"""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES = ("All", "Word", "Character", "ELMo", "BERT")
CORPORA = ("AG-News", "MR")

SUCCESS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "AG-News": {"pmi": (29.0, 31.5, 23.5, 29.4, 17.9), "uawr": (62.7, 69.9, 49.2, 57.5, 33.4)},
    "MR": {"pmi": (68.0, 72.7, 61.4, 69.0, 35.9), "uawr": (86.8, 90.1, 80.0, 89.3, 65.8)},
}
"""Table 5, success in the order of the families."""
CHANGED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "AG-News": {"pmi": (14.3, 14.1, 13.4, 16.1, 14.2), "uawr": (15.0, 14.4, 15.6, 16.0, 16.1)},
    "MR": {"pmi": (10.6, 10.5, 10.0, 11.9, 10.9), "uawr": (9.0, 8.4, 10.1, 9.5, 11.1)},
}
"""Table 5, changed words in the order of the families."""
BY_SIZE: Mapping[str, Mapping[int, tuple[float, ...]]] = {
    "AG-News": {
        2: (52.9, 57.1, 50.0, 47.2, 27.4),
        3: (56.9, 60.9, 50.5, 55.3, 30.5),
        4: (56.9, 60.9, 50.1, 55.4, 33.3),
        5: (62.4, 71.0, 43.8, 57.6, 32.6),
        6: (62.7, 69.9, 49.2, 57.5, 33.4),
        7: (63.2, 69.9, 49.4, 60.2, 34.3),
    },
    "MR": {
        2: (85.3, 88.9, 79.0, 87.5, 60.0),
        3: (86.2, 89.6, 79.2, 89.4, 62.5),
        4: (85.8, 89.0, 78.1, 89.1, 66.2),
        5: (86.3, 90.3, 76.5, 89.6, 63.8),
        6: (86.8, 90.1, 80.0, 89.3, 65.8),
        7: (87.0, 90.3, 80.1, 89.8, 66.2),
    },
}
"""Table 9, success by the size of the ensemble that the rules were mined with."""
BY_BUDGET: Mapping[str, Mapping[float, float]] = {
    "AG-News": {0.05: 16.3, 0.10: 27.6, 0.15: 38.8, 0.20: 48.8, 0.25: 57.3, 0.30: 63.2},
    "MR": {0.05: 36.2, 0.10: 54.3, 0.15: 66.1, 0.20: 75.3, 0.25: 81.1, 0.30: 87.0},
}
"""Table 10, success of all models by the largest share of words that may change."""
