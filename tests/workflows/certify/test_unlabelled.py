"""Texts without labels: certified for the class that the model gives, and no share of right ones is claimed."""

from __future__ import annotations

from pathlib import Path

import pytest

import stockade as st
from stockade.core.errors import DataError, OptionError
from stockade.datasets.examples import prepare_examples, prepare_texts
from stockade.datasets.load import load_data
from tests.certificates.kit import ROWS
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
TEXTS = [text for text, _ in ROWS]


def test_the_certificates_are_those_of_the_same_texts_with_labels() -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.5)
    labelled, unlabelled = (
        [(entry.id, entry.predicted, entry.radius, entry.evidence) for entry in result.certificates]
        for result in (st.certify(robust, ROWS), st.certify(robust, TEXTS, unlabelled=True))
    )
    assert labelled == unlabelled


def test_shares_are_of_all_texts_and_nothing_is_called_right_or_wrong(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("text\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    result = st.certify(st.defend(VICTIM, "ranmask", rate=0.5), file, unlabelled=True, out=tmp_path / "run")
    assert {certificate.label for certificate in result.certificates} == {None}
    numbers = result.summary["methods"]["ranmask-gap"]
    assert (numbers["accuracy"], numbers["wrong"]) == (None, None)
    assert numbers["curve"][0]["share"] == sum(entry.radius is not None for entry in result.certificates) / len(TEXTS)
    assert result.verify().problems == ()
    page, text = result.document().to_html(), result.document().to_markdown()
    for content in (page, text):
        assert "The data have no labels" in content
        assert "· true class" not in content
    assert 'data-class="right"' not in page
    assert 'data-class="wrong"' not in page


def test_a_column_of_labels_may_be_left_alone_and_a_sample_is_the_same_with_or_without_it() -> None:
    source = load_data(ROWS)
    with_labels = prepare_examples(source, VICTIM.labels, limit=3, seed=5)
    without = prepare_texts(source, limit=3, seed=5)
    assert with_labels.ids == without.ids == tuple(example.id for example in without)
    assert [example.text for example in with_labels] == [example.text for example in without]
    assert len(without) == 3


def test_an_interrupted_run_goes_on_without_labels(tmp_path: Path) -> None:
    def stop(progress: st.Progress) -> None:
        raise KeyboardInterrupt

    robust = st.defend(VICTIM, "partition")
    with pytest.raises(KeyboardInterrupt):
        st.certify(robust, TEXTS, unlabelled=True, out=tmp_path / "run", observer=stop)
    result = st.certify(robust, TEXTS, unlabelled=True, out=tmp_path / "run", resume=True)
    assert result.complete
    assert not result.labelled


def test_what_needs_labels_is_refused() -> None:
    robust = st.defend(VICTIM, "ranmask")
    with pytest.raises(OptionError, match="choose=label gives the method the true class"):
        st.certify(robust, TEXTS, "ranmask-gap:choose=label", unlabelled=True)
    with pytest.raises(DataError, match="Put a label beside each text"):
        st.certify(robust, TEXTS)
    with pytest.raises(OptionError, match="leave out --label-column"):
        st.certify(robust, TEXTS, unlabelled=True, data_options=st.DataOptions(label_column="label"))
    with pytest.raises(OptionError, match="--limit is 0"):
        st.certify(robust, TEXTS, unlabelled=True, limit=0)


def test_data_that_change_while_they_are_read_are_noticed() -> None:
    source = load_data([{"text": text} for text in TEXTS], needs_labels=False)
    texts = prepare_texts(source)
    source._table.items.pop()  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="has changed since it was checked"):
        list(texts)
