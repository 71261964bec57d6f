"""Chat models as classifiers: labels, log-probabilities, cost; the service is a real one on this machine."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import ModelError, ModelGone, OptionError
from stockade.models.adapters import load_model
from stockade.models.chat_answers import label_probabilities, parse_label
from tests.services.server import VICTIM, Reply, Server, chat_answer, serving

LABELS = ["negative", "positive"]
QUICK = {"backoff": 0.01, "max_wait": 0.05, "cooldown": 0.05, "retries": 1}


def reference(server: Server) -> str:
    return f"chat:{server.url.removesuffix('/predict')}/v1#small"


def load(server: Server, **options: Any) -> Any:
    settings = {**QUICK, **options.pop("settings", {})}
    return load_model(reference(server), **{"labels": LABELS, "allow_private": True, "settings": settings, **options})


@pytest.mark.parametrize(
    ("answer", "index"),
    [
        ("positive", 1),
        (" Positive. ", 1),
        ("**Negative**", 0),
        ('"positive"', 1),
        ("Label: negative", 0),
        ("The answer is positive", 1),
        ("Positive - because it says so", 1),
        ("not positive", None),
        ("It is hardly positive", None),
        ("positively", None),
        ("", None),
        ("I cannot help with that.", None),
    ],
)
def test_a_label_is_what_an_answer_is_or_begins_with(answer: str, index: int | None) -> None:
    assert parse_label(answer, LABELS) == index


def test_the_longest_label_counts() -> None:
    assert parse_label("not spam", ["spam", "not spam"]) == 1
    assert parse_label("Spam Filter", ["spam", "spam filter"]) == 1


def choice(tokens: dict[str, float]) -> dict[str, Any]:
    top = [{"token": token, "logprob": math.log(chance)} for token, chance in tokens.items()]
    quote = {"token": '"', "top_logprobs": [{"token": '"', "logprob": 0.0}]}
    return {"logprobs": {"content": [quote, {"token": next(iter(tokens)), "top_logprobs": top}]}}


def test_probabilities_are_those_of_the_first_tokens() -> None:
    row = label_probabilities(choice({"pos": 0.5, "Pos": 0.25, "neg": 0.15, "the": 0.1}), LABELS)
    assert row == pytest.approx([0.15 / 0.9, 0.75 / 0.9])
    unlisted = label_probabilities(choice({"pos": 0.9, "the": 0.04}), LABELS)  # 0.06 is not listed; 0.04 is the least
    assert unlisted == pytest.approx([0.04 / 0.94, 0.9 / 0.94])
    assert label_probabilities(choice({"Sorry": 0.9, "pos": 0.1}), LABELS) == []
    assert label_probabilities({"logprobs": None}, LABELS) is None
    with pytest.raises(ModelError, match="begin with the same token"):
        label_probabilities(choice({"ne": 0.9, "p": 0.1}), ["negative", "neutral", "positive"])


def test_scores_are_the_models_where_it_shows_them() -> None:
    texts = ["a great film", "a bad film"]
    with serving(chat_answer(logprobs=True)) as server:
        model = load(server)
        np.testing.assert_allclose(model.predict_proba(texts), VICTIM.predict_proba(texts), atol=1e-9)
        assert not model.label_only
        asked = server.requests[-1]
        assert asked.path == "/v1/chat/completions"
        assert asked.body["temperature"] == 0.0
        assert asked.body["messages"][-1]["content"].endswith(
            "negative, positive. Answer with the class alone.\n\nText: a bad film"
        )
        assert model.deterministic
        assert not load(server, settings={"temperature": 0.7}).deterministic


def test_without_log_probabilities_it_is_a_model_of_labels() -> None:
    def strict(body: Any) -> Any:
        return Reply(400, b"unknown field logprobs") if "logprobs" in body else chat_answer(logprobs=False)(body)

    for answer in (chat_answer(logprobs=False), strict):
        with serving(answer) as server:
            model = load(server)
            assert model.predict_proba(["great", "bad"]).tolist() == [[0.0, 1.0], [1.0, 0.0]]
            assert model.label_only
    with serving(chat_answer(logprobs=True)) as server:
        assert load(server, outputs="labels").label_only
        assert "logprobs" not in [name for request in server.requests for name in request.body]


def test_answers_that_name_no_class() -> None:
    with serving(chat_answer(logprobs=False, say=lambda label: "I cannot say.")) as server:
        with pytest.raises(
            ModelError, match=r'answered "I cannot say\.", which names none of the classes.*unparsed=CLASS'
        ):
            load(server).predict_proba(["great"])
        assert load(server, settings={"unparsed": "negative"}).predict_proba(["great"]).tolist() == [[1.0, 0.0]]


def test_pairs_need_a_place_in_the_prompt() -> None:
    with serving(chat_answer(logprobs=False)) as server:
        with pytest.raises(ModelError, match=r"reads single texts, and the data are pairs.*write \{premise\}"):
            load(server).predict_proba([("a", "b")])
        model = load(server, settings={"prompt": "{premise} / Text: {text}", "system": "Be brief."})
        assert model.predict_proba([("a {text}", "great")]).tolist() == [[0.0, 1.0]]
        assert [m["content"] for m in server.requests[-1].body["messages"]] == ["Be brief.", "a {text} / Text: great"]


def test_tokens_and_cost_are_counted_and_a_limit_ends_the_run(tmp_path: Path) -> None:
    """A request costs 100 × 2 + 1 × 10 per million: 0.00021. A limit of 0.0042 is reached after 20 of them."""
    data = tmp_path / "d.csv"
    data.write_text("text,label\n" + "".join(f"a great film number{n} was great,positive\n" for n in range(8)))
    prices = {**QUICK, "price_in": 2.0, "price_out": 10.0, "concurrency": 1}
    folder = tmp_path / "run"

    def attacked(max_cost: float | None, resume: bool = False) -> Any:
        options = st.ModelOptions(labels=LABELS, allow_private=True, settings=prices, max_cost=max_cost)
        shared: dict[str, Any] = {"preset": "textattack", "similarity": False, "concurrency": 1, "resume": resume}
        return st.attack(reference(server), data, "deepwordbug", out=folder, model_options=options, **shared)

    with serving(chat_answer(logprobs=True)) as server:
        with pytest.raises(
            ModelGone, match=r"--max-cost 0\.0042 is reached: 20 requests have cost 0\.0042.*resume with a larger"
        ):
            attacked(0.0042)
        assert len(server.requests) == 20
        run = attacked(None, resume=True)
        total = len(server.requests)
        plain = st.attack(VICTIM, data, "deepwordbug", preset="textattack", similarity=False)
    assert run.summary["complete"]
    assert [r.adversarial for r in run.records()] == [r.adversarial for r in plain.records()]
    usage = run.summary["usage"]
    assert usage["backends"] == ["fp_1"]
    assert usage["requests"] == total
    assert usage["cost"] == pytest.approx(usage["requests"] * 0.00021)
    assert json.loads((folder / "summary.json").read_text())["usage"] == usage
    assert "The model was asked" in run._repr_html_()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"labels": None}, ModelError, "name them with --labels"),
        ({"labels": ["Yes", "yes "]}, ModelError, "two or more different classes"),
        ({"outputs": "logits"}, OptionError, "no meaning for a chat model"),
        ({"max_cost": 1.0}, OptionError, "needs prices"),
        ({"settings": {"prompt": "Hello"}}, OptionError, "no place for the text"),
        ({"settings": {"unparsed": "other"}}, OptionError, "none of negative, positive"),
        ({"settings": {"temperature": 3}}, OptionError, "temperature 3"),
        ({"settings": {"price_in": -1}}, OptionError, "price is below 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with serving(chat_answer(logprobs=True)) as server, pytest.raises(error, match=message):
        load(server, **options)


def test_answers_that_are_no_completions_and_services_that_do_not_count() -> None:
    with serving(lambda body: {"error": "no"}) as server, pytest.raises(ModelError, match="answered without choices"):
        load(server).predict_proba(["great"])
    with serving(chat_answer(logprobs=True, usage=False)) as server:
        assert load(server).predict_proba(["great"]).shape == (1, 2)
        prices = {"price_in": 1.0, "price_out": 1.0}
        with pytest.raises(ModelGone, match="does not say how many tokens"):
            load(server, settings=prices, max_cost=1.0).predict_proba(["great"])
    with pytest.raises(ModelError, match="expected chat:URL#MODEL"):
        load_model("chat:https://host.example/v1", labels=LABELS)
    with pytest.raises(
        OptionError, match=r"--max-cost is for models whose queries have a price; builtin:sentiment-cnn is none"
    ):
        load_model("builtin:sentiment-cnn", max_cost=1.0)
