"""What decides which rules are mined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, model_validator

from stockade.core.errors import OptionError
from stockade.experiment.inputs import models_by_name
from stockade.experiment.spec import Count, ModelSpec, Reference

Method = Literal["uawr", "pmi", "pmi-smoothed"]
METHODS = ("uawr", "pmi", "pmi-smoothed")
SCORES = ("logits", "log-likelihood")
MIN_COUNT, MAX_COUNT = 2, 2
"""Two places a rule give as good rules as all of them (benchmarks/rules.py), and 5,000 sentences in a quarter of an
hour with six models of the transfer paper's kinds.
"""


def _models(value: object) -> Mapping[str, object]:
    return {} if value is None or value in ([], (), {}) else models_by_name(value)


class MineSpec(ModelSpec):
    """Models, data, and every option that decides the rules.

    Parameters
    ----------
    models
        References or objects by name, whose logits are averaged; none for rules by word counts.
    method
        `uawr` by what replacements do to the models; `pmi` and `pmi-smoothed` by word counts alone.
    score
        For `uawr`: the mean of the logits, or the log-softmax of that mean.
    min_count
        Rules with fewer places in the data are left out; for word counts, with fewer texts of the class.
    max_count
        For `uawr`: the most places at which a rule is scored, a seeded sample of them; all if None.
    """

    kind: ClassVar[str] = "rules"

    models: Annotated[Mapping[str, Reference], BeforeValidator(_models)] = {}
    method: Method = "uawr"
    score: Literal["logits", "log-likelihood"] = "logits"
    min_count: Count = MIN_COUNT
    max_count: Count | None = MAX_COUNT

    @model_validator(mode="after")
    def _models_fit_the_method(self) -> Self:
        if self.method == "uawr" and not self.models:
            raise OptionError(
                "Rules by UAWR are mined with at least one model: name it before the data, or count words instead with "
                "--method pmi."
            )
        if self.method != "uawr" and self.models:
            raise OptionError(
                f"Rules by {self.method} come from the data alone (found: the models {', '.join(self.models)}). Leave "
                "the models out, or mine with --method uawr."
            )
        return self
