"""Certify a classifier: how many words of each text may change, proved for every text that can be certified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stockade.experiment.inputs import DataOptions, ModelOptions
from stockade.experiment.progress import Observer, Runtime

if TYPE_CHECKING:
    from stockade.workflows.certify.result import CertifyResult


def certify(
    model: object,
    data: object,
    methods: object = None,
    *,
    defenses: object = None,
    alpha: float | None = None,
    familywise: bool = False,
    unlabelled: bool = False,
    limit: int | None = None,
    seed: int = 0,
    max_words: int = 5_000,
    mlm: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    concurrency: int = 64,
    batch_tokens: int | None = None,
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> CertifyResult:
    """Certify the texts of `data` for a model in a certifiable defense, such as partition.

    Parameters
    ----------
    model
        A folder that was trained with such a defense, or what `st.defend` returns; also anything that `st.attack`
        takes, with `defenses`.
    data
        What `st.attack` takes.
    methods
        A name as `stockade ls certificates` shows it, with a preset or options if you like
        (`"ranmask-gap:alpha=0.001"`), a method object, or a list of them. By default the method for the model's
        defense.
    defenses
        Defenses around the model, from the outside in; by default those that its folder records.
    alpha
        The probability that a certificate may be wrong; 0.05 by default.
    familywise
        Let alpha be for all texts of the run together instead of for each.
    unlabelled
        The data have no labels: certify the class that the model gives, right or wrong.
    limit
        Certify a seeded sample of this many rows; all by default.
    seed
        Decides the sample and every random copy.
    max_words
        Longer texts are recorded as errors.
    mlm, encoder
        Another masked LM or sentence encoder, for defenses that use one.
    out
        The folder of the run; without one it lives in a temporary folder as long as the returned object.
    resume
        Go on with the interrupted run in `out`.
    concurrency, batch_tokens
        How fast it is, never what comes out.
    data_options, model_options
        How the data are read and the model is loaded.
    observer
        Called with a `Progress` after each text.
    """
    from stockade.workflows.certify.run import WORKFLOW
    from stockade.workflows.certify.spec import CertifySpec

    spec = CertifySpec.of(
        model=model,
        data=data,
        methods=methods,
        defenses=defenses,
        alpha=alpha,
        familywise=familywise,
        unlabelled=unlabelled,
        limit=limit,
        seed=seed,
        max_words=max_words,
        mlm=mlm,
        encoder=encoder,
        data_options=data_options or DataOptions(),
        model_options=model_options or ModelOptions(),
    )
    runtime = Runtime(concurrency=concurrency, batch_tokens=batch_tokens, observer=observer)
    result: CertifyResult = WORKFLOW.start(spec, out, runtime, resume=resume)
    return result
