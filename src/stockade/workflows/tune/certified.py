"""What options are worth if certificates decide: how many words may change in each text (MCB is their median)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from stockade.certificates.registry import NamedMethod, default_method, make_methods
from stockade.core.protocols import Classifier
from stockade.datasets.examples import ExampleSet
from stockade.experiment.progress import Runtime
from stockade.experiment.store import ResultStore
from stockade.workflows.certify.result import CODEC
from stockade.workflows.certify.run import certify_texts
from stockade.workflows.certify.spec import CertifySpec
from stockade.workflows.tune.spec import TuneSpec


def method_of(spec: TuneSpec, model: Classifier) -> NamedMethod:
    """The method that certifies a model: the one that was named, else the one for its defense.

    Parameters
    ----------
    spec
        The search.
    model
        The model in the defense whose options are searched.
    """
    return default_method(model) if spec.method is None else make_methods(spec.method)[0]


def certified_radii(spec: TuneSpec, model: Classifier, examples: ExampleSet, runtime: Runtime) -> list[int | None]:
    """For each text how many of its words may change; None where the true class is not certified.

    Parameters
    ----------
    spec
        The search.
    model
        The model in its defense.
    examples
        The texts.
    runtime
        How fast it is; never what is found.
    """
    job = CertifySpec.of(
        model=spec.model,
        data=spec.data,
        methods=(method_of(spec, model),),
        seed=spec.seed,
        max_words=spec.max_words,
        mlm=spec.mlm,
        encoder=spec.encoder,
    )
    with tempfile.TemporaryDirectory(prefix="stockade-tune-") as folder:
        store = ResultStore(Path(folder), writable=True)
        try:
            speed = Runtime(concurrency=runtime.concurrency, batch_tokens=runtime.batch_tokens)
            certify_texts(store, model, examples, job, speed)
            certificates = [CODEC.read(document) for document in store.documents()]
        finally:
            store.close()
    return [certificate.radius if certificate.correct else None for certificate in certificates]
