"""Texts without labels: certified for the class that the model gives, and no share of right ones is claimed."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.certificates.pages.markdown import render_markdown
from stockade.certificates.pages.page import render_page
from stockade.certificates.verify import recompute
from stockade.core.errors import DataError, OptionError
from stockade.datasets.examples import prepare_examples, prepare_texts
from stockade.datasets.load import load_data
from tests.certificates.kit import ROWS
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
TEXTS = [text for text, _ in ROWS]


def test_the_certificates_are_those_of_the_same_texts_with_labels() -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.5)
    told = st.certify(robust, ROWS)
    untold = st.certify(robust, TEXTS, labelled=False)
    pairs = list(zip(told.certificates, untold.certificates, strict=True))
    assert [(one.id, one.predicted, one.radius, one.evidence) for one, _ in pairs] == [
        (one.id, one.predicted, one.radius, one.evidence) for _, one in pairs
    ]
    assert {one.label for one in untold.certificates} == {None}


def test_shares_are_of_all_texts_and_nothing_is_called_right_or_wrong(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("text\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    run = st.certify(st.defend(VICTIM, "ranmask", rate=0.5), file, labelled=False, out=tmp_path / "run")
    numbers = run.summary["methods"]["ranmask-gap"]
    assert (numbers["accuracy"], numbers["wrong"]) == (None, None)
    assert numbers["curve"][0]["share"] == sum(one.radius is not None for one in run.certificates) / len(TEXTS)
    assert recompute(run).problems == ()
    page, text = render_page([run]), render_markdown([run])
    assert "The data have no labels" in page
    assert "true class is <b>" not in page
    assert "True class" not in text


def test_a_column_of_labels_may_be_left_alone_and_a_sample_is_the_same_with_or_without_it() -> None:
    source = load_data(ROWS)
    with_labels = prepare_examples(source, VICTIM.labels, limit=3, seed=5)
    without = prepare_texts(source, limit=3, seed=5)
    assert with_labels.ids == without.ids == tuple(one.id for one in without)
    assert [one.text for one in with_labels] == [one.text for one in without]
    assert len(without) == 3


def test_an_interrupted_run_goes_on_without_labels(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: object) -> None:
        raise Stopped

    robust = st.defend(VICTIM, "partition")
    with pytest.raises(Stopped):
        st.certify(robust, TEXTS, labelled=False, out=tmp_path / "run", observer=stop)
    run = st.certify(robust, TEXTS, labelled=False, out=tmp_path / "run", resume=True)
    assert run.summary["complete"]
    assert not run.labelled


def test_what_needs_labels_is_refused(tmp_path: Path) -> None:
    robust = st.defend(VICTIM, "ranmask")
    with pytest.raises(OptionError, match="choose=label gives the method the true class"):
        st.certify(robust, TEXTS, "ranmask-gap:choose=label", labelled=False)
    with pytest.raises(DataError, match="Put a label beside each text"):
        st.certify(robust, TEXTS)
    with pytest.raises(OptionError, match="leave out --label-column"):
        st.certify(robust, TEXTS, labelled=False, data_options=st.DataOptions(label_column="label"))
    with pytest.raises(OptionError, match="--limit is 0"):
        st.certify(robust, TEXTS, labelled=False, limit=0)


def test_data_that_change_while_they_are_read_are_noticed() -> None:
    source = load_data([{"text": text} for text in TEXTS], needs_labels=False)
    texts = prepare_texts(source)
    source._table.items.pop()  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="has changed since it was checked"):
        list(texts)
