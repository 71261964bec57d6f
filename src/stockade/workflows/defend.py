"""Put a model inside defenses."""

from __future__ import annotations

from typing import Any

from stockade.core.errors import OptionError
from stockade.core.protocols import Classifier
from stockade.defenses.chain import wrap
from stockade.defenses.registry import make_defense, make_defenses
from stockade.experiment.inputs import ModelOptions, defenses_around
from stockade.models.language import LanguageModels


def defend(
    model: object,
    defenses: object,
    *,
    seed: int = 0,
    mlm: str | None = None,
    encoder: str | None = None,
    model_options: ModelOptions | None = None,
    **options: Any,
) -> Classifier:
    """Put a model inside one or more defenses: a classifier that can be asked, attacked and defended again.

    Parameters
    ----------
    model
        What `st.attack` takes.
    defenses
        A name as `stockade ls defenses` shows it, a defense object, or a list of them from the outside in, in place of
        those that the model's folder records. One that only acts in training, as in
        `st.defend("models/m", ["five", "fact"])`, must be in the folder already.
    seed
        Names the random choices of randomised defenses.
    mlm, encoder
        Another masked LM or sentence encoder, for defenses that use one.
    model_options
        How the model is loaded.
    **options
        Options of a single defense: `st.defend(model, "ranmask", rate=0.3)`.
    """
    several = isinstance(defenses, list | tuple) and len(defenses) > 1
    if options and several:
        raise OptionError(
            "Options by keyword are for a single defense; write them with the names, as in five:samples=8."
        )
    references = list(defenses) if isinstance(defenses, list | tuple) else [defenses]
    named = (make_defense(references[0], **options),) if len(references) == 1 else make_defenses(references)
    if not any(defense.entry.answers for defense in named):
        name = named[0].name
        raise OptionError(f'{name} changes how a model is trained: use st.train(…, defenses=["{name}"]).')
    bare = (model_options or ModelOptions()).load(model)
    return wrap(bare, defenses_around(model, named), seed=seed, language=LanguageModels(mlm, encoder))
