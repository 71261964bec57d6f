"""Mine word replacement rules: replacements that move models away from a class (UAWR), or by word counts (PMI)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stockade.experiment.inputs import DataOptions, ModelOptions
from stockade.experiment.progress import Observer, Runtime

if TYPE_CHECKING:
    from stockade.workflows.mine.result import MineResult


def mine_rules(
    models: object,
    data: object,
    *,
    method: str = "uawr",
    score: str = "logits",
    min_count: int = 2,
    max_count: int | None = 2,
    limit: int | None = None,
    seed: int = 0,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    batch_tokens: int | None = None,
    seconds: float | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> MineResult:
    """Mine word replacement rules from labelled texts; `rules.jsonl` is in the folder of the result.

    Parameters
    ----------
    models
        A model as `st.attack` takes it, `"ensemble:A,B,…"`, a list of models or a dictionary that names them: the mean
        of their logits is what replacements should change. None for word counts.
    data
        Labelled texts as `st.attack` takes them, best those that the models were trained on.
    method
        `"uawr"` asks the models; `"pmi"` and `"pmi-smoothed"` count words.
    score
        `"logits"`, or `"log-likelihood"` for the log-softmax of their mean. With two classes both give the same.
    min_count
        Rules with fewer places in the data are left out.
    max_count
        The most places at which a rule is scored, a seeded sample of them; None for all.
    limit
        Mine a seeded sample of this many rows; all by default.
    seed
        Decides the samples.
    max_words
        Longer texts are left out.
    mlm, encoder
        Another masked LM or sentence encoder, for models in a defense that asks one.
    out
        The folder of the job; without one it lives in a temporary folder as long as the returned object, and
        `result.save(folder)` keeps it.
    resume
        Go on with the interrupted job in `out`.
    batch_tokens
        Tokens per batch; tuned by default. Changes the speed, not the rules.
    seconds
        A time limit: no chunk of texts is begun after it.
    data_options, model_options
        How the data are read and the models are loaded.
    observer
        Called with a `Progress` after each chunk of texts.
    """
    from stockade.workflows.mine.run import WORKFLOW
    from stockade.workflows.mine.spec import MineSpec

    spec = MineSpec.of(
        models=models,
        data=data,
        method=method,
        score=score,
        min_count=min_count,
        max_count=max_count,
        limit=limit,
        seed=seed,
        max_words=max_words,
        mlm=mlm,
        encoder=encoder,
        data_options=data_options or DataOptions(),
        model_options=model_options or ModelOptions(),
    )
    runtime = Runtime(batch_tokens=batch_tokens, seconds=seconds, observer=observer)
    result: MineResult = WORKFLOW.start(spec, out, runtime, resume=resume)
    return result
