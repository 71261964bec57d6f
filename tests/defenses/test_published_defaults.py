"""The numbers of the papers and of their authors' code, as the presets of that name have them.

A preset may have more options than are listed: those are of our own making, or as the class describes them.
"""

from __future__ import annotations

from typing import Any

import pytest

import stockade as st
from stockade.defenses.neighbours import NEAREST, neighbour_table, replacements
from stockade.defenses.ranmask import RISING
from stockade.defenses.registry import defenses, make_defense
from tests.specification import listed_defaults, needs_specification
from tests.toys import WeightVictim

FILTER = {"candidates": 10, "match_pos": True, "similarity": "filter", "scale": "tf", "threshold": 0.0}
SYNONYMS = {"min_cosine": 0.8, "maximum": 100, "directions": 8}
RANMASK_ASCENT = {"step_size": 0.3, "start_norm": 0.5, "max_norm": 0.05, "norm": "absolute"}

PUBLISHED: dict[str, dict[str, Any]] = {
    # Zeng et al. 2021: votes (sections 1 and 3.3), 100 copies under attack (section 4.1), rates of tables 4 to 7
    "ranmask@paper": {"combine": "vote", "copies": 100, "rate": 0.3, "sampling": "uniform", "draws": "fresh"},
    "ranmask@ag-news": {"rate": 0.9},
    "ranmask@sst2": {"rate": 0.3},
    "ranmask@imdb": {"rate": 0.3},
    "ranmask@snli": {"rate": 0.15},
    # its code: logits brought to length 1 before the mean, two words kept at least
    "ranmask@authors": {"combine": "normalised-logit", "kept": 2, "copies": 100},
    # Ye et al. 2020: the class that most perturbed texts have; sets as in the code
    "safer@paper": {"combine": "vote", **SYNONYMS},
    "safer@authors": {"combine": "vote", "copies": 2000, **SYNONYMS},
    # Huang et al. 2023: the class that most shortened texts have
    "deletion@paper": {"combine": "vote"},
    # Mein et al. 2020, section 3.3: MNLI by mean logits, IMDB by mean probabilities, neither by votes
    "five@paper": {"deviation": 8.14, "samples": 8, "tokens": 1, "combine": "logit"},
    "five@mnli": {"deviation": 8.14, "samples": 8, "tokens": 1, "combine": "logit"},
    "five@imdb": {"deviation": 2.3, "samples": 10, "tokens": 1, "combine": "probability"},
    "fuse@paper": {"perturb_words": 2, "multiplier": 14, "total_alternatives": 14, "combine": "logit", **FILTER},
    "fuse@mnli": {"perturb_words": 2, "multiplier": 14, "total_alternatives": 14, "combine": "logit", **FILTER},
    "fuse@imdb": {"perturb_words": 3, "multiplier": 17, "total_alternatives": 12, "combine": "probability", **FILTER},
    "fact@paper": {"perturb_words": 9, "multiplier": 12, "total_alternatives": 4, **FILTER},
    "fact@mnli": {"perturb_words": 9, "multiplier": 12, "total_alternatives": 4, **FILTER},
    "fact@imdb": {"perturb_words": 23, "multiplier": 12, "total_alternatives": 4, **FILTER},
    # the defaults of the released code
    "five@authors": {"deviation": 0.05, "samples": 10, "tokens": 2, "combine": "logit", "importance": "half_sq_norm"},
    "fuse@authors": {
        "perturb_words": 2,
        "multiplier": 3,
        "total_alternatives": 5,
        "importance": "half_sq_norm",
        **FILTER,
    },
    "fact@authors": {
        "perturb_words": 2,
        "multiplier": 3,
        "total_alternatives": 5,
        "importance": "half_sq_norm",
        **FILTER,
    },
    # PGD-10 (Zeng et al. 2021, tables 4 to 7) with the norms of its code, which has 3 steps
    "pgd@paper": {"steps": 10, **RANMASK_ASCENT},
    "pgd@ranmask-authors": {"steps": 3, **RANMASK_ASCENT},
    # Zhu et al. 2020: RoBERTa on SST-2 and MNLI (middles of the ranges), ALBERT on both; 0 is no limit
    "freelb@paper": {"steps": 2, "step_size": 0.1, "start_norm": 0.75, "max_norm": 0.5, "norm": "absolute"},
    "freelb@mnli": {"steps": 2, "step_size": 0.1, "start_norm": 0.15, "max_norm": 0.25, "norm": "absolute"},
    "freelb@albert-sst2": {"steps": 2, "step_size": 0.1, "start_norm": 0.6, "max_norm": 0.0, "norm": "absolute"},
    "freelb@albert-mnli": {"steps": 3, "step_size": 0.04, "start_norm": 0.08, "max_norm": 0.0, "norm": "absolute"},
    "freelb@ranmask-authors": {"steps": 3, **RANMASK_ASCENT},
    # Zeng et al. 2021, section 4.3, says synonyms; its code takes any word. A fifth of the tokens in each of 3 rounds
    "adv-hotflip@paper": {"candidates": "neighbours", "share": 0.2, "rounds": 3},
    "adv-hotflip@authors": {"candidates": "vocabulary", "share": 0.2, "rounds": 3},
    # Zeng et al. 2021, section 4.3: added to the whole data; its code replaces a half, of texts of 3 words up
    "augmentation@paper": {"variant": "add"},
    "augmentation@authors": {"variant": "replace", "words": 3},
}


@pytest.mark.parametrize("reference", PUBLISHED)
def test_presets_have_the_published_numbers(reference: str) -> None:
    options, published = make_defense(reference).options, PUBLISHED[reference]
    assert {name: options[name] for name in published} == published


@needs_specification
def test_the_rates_and_copies_of_ranmask_are_those_of_the_specification() -> None:
    listed = listed_defaults()["ranmask"]
    rates = {"ag": "ag-news", "sst2": "sst2", "imdb": "imdb", "snli": "snli"}
    assert {name: make_defense(f"ranmask@{preset}").options["rate"] for name, preset in rates.items()} == listed["rho"]
    assert make_defense("ranmask@paper").options["copies"] == listed["n_attack"]


def test_every_preset_named_after_a_paper_or_its_authors_is_in_the_table() -> None:
    """But for those of papers that give no numbers for words, and the baseline of our own."""
    ours = {"hull", "mask-top", "partition", "route"}
    named = {
        f"{name}@{preset}"
        for name, entry in defenses().items()
        for preset in entry.presets
        if name not in ours and preset not in ("default", "vote", "synonyms", "adaptive")
    }
    assert named == PUBLISHED.keys()


def test_what_a_preset_is_called_besides() -> None:
    for name in ("ranmask", "safer", "deletion"):
        assert make_defense(f"{name}@vote").options == make_defense(f"{name}@paper").options
    assert make_defense("adv-hotflip@synonyms").options == make_defense("adv-hotflip@paper").options


def test_switch_looks_at_a_hundred_neighbours() -> None:
    """Mein et al. 2020, section 2.1.1: "a pre-computed matrix of 100 nearest-neighbor index numbers for each word"."""
    table = neighbour_table(None)
    assert NEAREST == 100
    assert len(replacements(table, "film", 1000, False)) == 100
    hundredth = table.neighbours("film", count=100)[-1].word
    assert hundredth in replacements(table, "film", 1000, False)


def test_a_curriculum_rises_for_three_fifths_of_the_training() -> None:
    """The released code of RanMASK."""
    assert RISING == 0.6


@pytest.mark.parametrize("name", ["ranmask", "safer", "deletion"])
def test_preset_paper_votes_and_no_preset_does_not(name: str) -> None:
    """Eight copies of a text that is sure of nothing: votes are eighths, mean probabilities are not."""
    victim = WeightVictim({"great": 0.3, "outstanding": 0.1, "dull": -0.4, "tedious": -0.3, "film": 0.1})
    text = "a great and dull but outstanding and tedious film"
    (votes,) = st.defend(victim, f"{name}@paper", copies=8).predict_proba([text]) * 8
    assert votes.tolist() == [round(share) for share in votes.tolist()]
    (means,) = st.defend(victim, name, copies=8).predict_proba([text]) * 8
    assert all(abs(share - round(share)) > 1e-3 for share in means.tolist())
