"""What the transfer paper printed in its Tables 2 to 4, to stand beside other numbers.

"Generating universal language adversarial examples by understanding and enhancing the transferability across neural
models" (under review at ICLR 2021): 63 models with two trainings each, 1,000 texts attacked and 500 successes sampled
per source.
"""

from __future__ import annotations

FACTOR_COLUMNS = ("AG-News, PWWS", "AG-News, GA", "MR, PWWS", "MR, GA")
FACTORS = {
    "input form": (0.286, 0.030, 0.285, 0.049),
    "architecture": (0.197, 0.018, 0.145, 0.021),
    "embedding": (0.085, 0.015, 0.114, 0.015),
    "capacity": (0.066, 0.013, 0.045, 0.011),
}
"""Table 2: the mean of |r(s, t) - r0(t)| when one factor changes."""

ARCHITECTURES = ("LSTM", "BiLSTM", "CNN", "BERT")
BY_ARCHITECTURE = (
    (0.448, 0.394, 0.353, 0.190),
    (0.387, 0.420, 0.337, 0.183),
    (0.343, 0.334, 0.442, 0.169),
    (0.357, 0.346, 0.348, 0.396),
)
"""Table 3: rows are sources, columns targets. The block means of its Figure 3, AG-News under PWWS."""

INPUTS = ("Random", "GloVe", "word2vec", "fastText", "Character", "ELMo", "BERT", "Average")
BY_INPUT = (
    (0.457, 0.389, 0.445, 0.434, 0.214, 0.315, 0.166, 0.346),
    (0.481, 0.503, 0.489, 0.493, 0.219, 0.336, 0.174, 0.385),
    (0.473, 0.413, 0.472, 0.461, 0.216, 0.316, 0.165, 0.360),
    (0.481, 0.442, 0.482, 0.488, 0.222, 0.330, 0.169, 0.373),
    (0.261, 0.233, 0.256, 0.256, 0.386, 0.300, 0.186, 0.268),
    (0.406, 0.379, 0.401, 0.405, 0.256, 0.679, 0.216, 0.392),
    (0.348, 0.329, 0.343, 0.348, 0.328, 0.408, 0.396, 0.357),
    (0.415, 0.384, 0.413, 0.412, 0.263, 0.383, 0.210, 0.354),
)
"""Table 4: the same by input form and embedding, with the averages of rows and columns."""
