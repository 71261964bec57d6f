"""The models and data of an evaluation, loaded when they are needed: a finished one is analysed again without any."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import Any

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import OptionError, RunError
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.source import DataSource
from stockade.evaluation.chains import Chain
from stockade.evaluation.plan import Plan, now
from stockade.evaluation.premade import load_premade
from stockade.evaluation.request import EvaluationRequest, premade_names
from stockade.evaluation.ways import views
from stockade.jobs import AN_OBJECT, AttackJob, ModelOptions, reference_of
from stockade.runs.attack import check_answers


class Inputs:
    """What the user gave, and what was loaded of it; one model at a time is held."""

    def __init__(self, request: EvaluationRequest) -> None:
        self.request = request
        self._given = dict(zip(request.names, request.models, strict=True))
        self._premade = dict(zip(premade_names(request.premade), request.premade, strict=True))
        self._held: tuple[str, Classifier] | None = None
        self._sources: dict[str | None, DataSource] = {}
        self._examples: dict[str, ExampleSet] = {}
        self._plan: Plan | None = None
        self._checked: set[tuple[str, str]] = set()
        self._source_model: Classifier | None = None

    @property
    def premade_names(self) -> tuple[str, ...]:
        return tuple(self._premade)

    def make_plan(self) -> Plan:
        """Look at every model and all data once, so that what cannot be used is an error before anything is asked."""
        request = self.request
        attacks, chains = request.named_attacks(), request.chains()
        request.language.check()
        resources = {named.key: _recorded(named) for named in attacks}
        models, sizes, texts = {}, {}, None
        defended = {}
        for name in request.names:
            model = self.model(name)
            texts = self.examples(name)
            sizes = {premade: self.premade(premade, name).size for premade in self._premade}
            models[name] = {
                "reference": reference_of(self._given[name]),
                "fingerprint": _fingerprint(model),
                "labels": list(model.labels),
            }
            self.views(name, model)  # classes that do not fit are told before anything is asked
            defended[name] = {chain.name: self._defended_fingerprint(name, chain) for chain in chains}
        assert texts is not None
        data = {
            "reference": reference_of(request.data),
            "fingerprint": texts.fingerprint,
            "size": texts.size,
            "total": texts.total,
            "ids": None if texts.ids is None else list(texts.ids),
        }
        premade = {
            name: {
                "reference": reference_of(given),
                "fingerprint": self._source(name).fingerprint(),
                "size": sizes[name],
            }
            for name, given in self._premade.items()
        }
        names = tuple(chain.name for chain in chains)
        source = None if self.source is None else _fingerprint(self.source)
        return Plan(request.described(), models, data, premade, resources, names, now(), defended, source)

    def hold_to(self, plan: Plan) -> None:
        """From now on models and data must be those of the plan."""
        self._plan = plan
        self._checked.clear()
        for name, source in self._sources.items():
            self._check_source(name, source)

    def check(self) -> None:
        """Models and data that were given again must be those of the plan, even if nothing is left to ask them."""
        for premade in (None, *self._premade):
            self._source(premade)
        for name in self._given:
            for chain in self.request.chains():
                self._check_chain(name, chain)
        for named in self.request.named_attacks():
            self._check_attack(named)

    def model(self, name: str) -> Classifier:
        """The bare model."""
        if self._held is None or self._held[0] != name:
            self._held = None
            model = self.options_for().load_bare(_findable(self._given[name]))
            for row in islice(self._source(None).rows(), 1):
                check_answers(model, row.input)
            self._held = (name, model)
        model = self._held[1]
        if self._plan is not None and _fingerprint(model) != self._plan.models[name]["fingerprint"]:
            raise RunError(
                f"The model {name} is not the one the evaluation was begun with (another fingerprint): start again "
                "with another --out."
            )
        return model

    def defended(self, name: str, chain: Chain, seed: int) -> Classifier:
        """The model inside a chain of defenses."""
        self._check_chain(name, chain)
        return self._around(name, chain, seed)

    @property
    def source(self) -> Classifier | None:
        """The model that texts are to be transferred from."""
        given = self.request.transfer_from
        if given is None:
            return None
        if self._source_model is None:
            model = self.options_for().load_bare(_findable(given))
            if self._plan is not None and _fingerprint(model) != self._plan.source:
                raise RunError(
                    f"{reference_of(given)} is not the model that texts were transferred from before (another "
                    "fingerprint): start again with another --out."
                )
            self._source_model = model
        return self._source_model

    def views(self, name: str, classifier: Classifier) -> dict[str, Classifier | None]:
        """What searches see of a row, by way."""
        source = self.source
        if source is not None and source.labels != classifier.labels:
            theirs, ours = ", ".join(source.labels), ", ".join(classifier.labels)
            raise OptionError(
                f"--transfer-from has the classes {theirs}, and {name} {ours}: expected the same in the same order."
            )
        return views(classifier, self.request.expectation, self.request.language, source)

    def _around(self, name: str, chain: Chain, seed: int) -> Classifier:
        options = self.options_for(chain)
        return chain.around(self.model(name), self._given[name], options, seed, self.request.language)

    def _defended_fingerprint(self, name: str, chain: Chain) -> str | None:
        """None for what has none, and for what cannot be made: its row will say why."""
        try:
            return _fingerprint(self._around(name, chain, self.request.seed))
        except RunError:
            raise
        except Exception:
            return None

    def _check_chain(self, name: str, chain: Chain) -> None:
        """A defense must be the one of the plan to the last file that it reads."""
        if (name, chain.name) in self._checked:
            return
        planned = None if self._plan is None else self._plan.defended.get(name, {}).get(chain.name)
        if planned is not None and self._defended_fingerprint(name, chain) != planned:
            raise RunError(
                f"{chain.name} around {name} is not what the evaluation was begun with (another fingerprint; has a "
                "file changed that it reads?): start again with another --out."
            )
        self._checked.add((name, chain.name))

    def _check_attack(self, named: NamedAttack) -> None:
        planned = {} if self._plan is None else self._plan.attacks
        if named.key in planned and _recorded(named) != planned[named.key]:
            raise RunError(
                f"{named.key} is not the attack the evaluation was begun with (has a file changed that it reads?): "
                "start again with another --out."
            )

    def options_for(self, chain: Chain | None = None) -> ModelOptions:
        return replace(self.request.model_options, defenses=chain.references if chain else ())

    def examples(self, name: str) -> ExampleSet:
        """The texts of the evaluation with the classes of a model; the same texts for all."""
        if name not in self._examples:
            self._examples[name] = prepare_examples(
                self._source(None),
                self.model(name).labels,
                limit=self.request.limit,
                seed=self.request.seed,
                label_map=self.request.data_options.label_map,
            )
        return self._examples[name]

    def premade(self, premade: str, name: str) -> ExampleSet:
        label_map = self.request.data_options.label_map
        return prepare_examples(self._source(premade), self.model(name).labels, label_map=label_map)

    def job(self, name: str, chain: Chain, attack: str, seed: int) -> AttackJob:
        """One cell of the grid as an attack of its own, which its manifest records."""
        request = self.request
        named = next(one for one in request.named_attacks() if one.key == attack)
        self._check_attack(named)
        return AttackJob(
            self._given[name],
            request.data,
            (named,),
            seed,
            request.budget,
            request.max_words,
            similarity=False,
            data_options=replace(request.data_options, limit=request.limit),
            model_options=self.options_for(chain),
            language=request.language,
        )

    def _source(self, premade: str | None) -> DataSource:
        if premade not in self._sources:
            if premade is None:
                source = self.request.data_options.load(_findable(self.request.data))
            else:
                options = self.request.data_options
                named = {name: getattr(options, name) for name in ("text_column", "label_column", "premise_column")}
                source = load_premade(_findable(self._premade[premade]), named)
            self._check_source(premade, source)
            self._sources[premade] = source
        return self._sources[premade]

    def _check_source(self, premade: str | None, source: DataSource) -> None:
        if self._plan is None:
            return
        planned = self._plan.data if premade is None else self._plan.premade[premade]
        if source.fingerprint() != planned["fingerprint"]:
            raise RunError(f"{source.name} has changed since the evaluation was begun: start again with another --out.")


def _findable(given: object) -> object:
    if isinstance(given, str) and given.startswith(AN_OBJECT):
        raise RunError("The evaluation was made from Python objects: resume it from Python, with the same objects.")
    return given


def _recorded(named: NamedAttack) -> dict[str, Any]:
    """What the plan keeps of an attack, as it is read back: its options, and what stands behind the files and models
    that it uses.
    """
    recorded: dict[str, Any] = json.loads(json.dumps({"options": named.options, **dict(named.resources)}))
    return recorded


def _fingerprint(model: Classifier) -> str | None:
    return model.fingerprint() if isinstance(model, Fingerprinted) else None
