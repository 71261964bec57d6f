"""The plots of the study of rules are drawn, with a curve for each family and rule set."""

from __future__ import annotations

from stockade.studies.rules.analysis import analyse
from stockade.studies.rules.outcomes import Outcomes, TargetOutcomes
from stockade.studies.rules.page import budget_plot, size_plot, target_plot


def test_every_plot_names_what_it_shows() -> None:
    edits = {"uawr-2": (1, 2, 0), "uawr-3": (1, 1, 0), "pmi": (0, 1, 0)}
    targets = [TargetOutcomes(name, ("a", "b", "c"), (10, 10, 10), edits) for name in ("CNN-W-GloVe-1", "MiniLM-L6")]
    numbers = analyse(
        Outcomes(targets, ["CNN-W-GloVe-1"]),
        main="uawr-3",
        by_size={2: "uawr-2", 3: "uawr-3"},
        baselines=["pmi"],
        rule_sets={"uawr-2": 1, "uawr-3": 1, "pmi": 1},
        budgets=(0.1, 0.3),
    )
    for plot, names in (
        (size_plot, ("All", "Word", "BERT", "Held-out")),
        (budget_plot, ("UAWR, 3 models", "PMI")),
        (target_plot, ("CNN-W-GloVe-1 (mined with)", "MiniLM-L6")),
    ):
        svg = plot(numbers)
        assert svg.startswith("<svg")
        assert all(name in svg for name in names)
