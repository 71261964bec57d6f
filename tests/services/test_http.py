"""Services as models, asked over real connections: batches, faults, limits, secrets, trust."""

from __future__ import annotations

import json
import logging
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.cli.main import cli
from stockade.core.errors import ModelError, ModelGone, NoAnswer, OptionError, RunError
from stockade.models.adapters import load_model
from tests.services.server import VICTIM, Faults, Reply, Server, scores, serving

LABELS = ["negative", "positive"]
WORDS = ("great", "good", "bad", "dull", "film", "plot", "actor", "story", "ending", "scene")
QUICK = {"backoff": 0.01, "max_wait": 0.05, "cooldown": 0.05}


def texts(count: int) -> list[tuple[str, str]]:
    """Different labelled texts that the victim gets right."""
    rows = []
    for number in range(count):
        side = number % 2
        words = [WORDS[(number // 2**place + place) % 10] for place in range(5)]
        rows.append(
            (" ".join([*words, f"item{number}", ("dull bad bad bad", "great great great good")[side]]), LABELS[side])
        )
    return rows


def load(server: Server, **options: Any) -> Any:
    settings = {**QUICK, **options.pop("settings", {})}
    return load_model(server.url, labels=LABELS, allow_private=True, settings=settings, **options)


def test_rows_are_those_of_the_model_behind_it() -> None:
    inputs = [text for text, _ in texts(40)]
    with serving() as server:
        model = load(server, settings={"batch_size": 16})
        np.testing.assert_allclose(model.predict_proba(inputs), VICTIM.predict_proba(inputs))
        assert [len(request.body["texts"]) for request in server.requests] == [16, 16, 8]
        pair = ("a film", "a great film")
        np.testing.assert_allclose(model.predict_proba([pair]), VICTIM.predict_proba([pair]))


def test_other_requests_and_answers() -> None:
    def single(body: Any) -> Any:
        row = VICTIM.predict_proba([body["q"].removeprefix("Rate: ")])[0]
        return {"out": [{"label": "positive", "score": row[1]}, {"label": "negative", "score": row[0]}]}

    with serving(single) as server:
        url = f"{server.url}#scores=out&concurrency=2"
        model = load_model(url, allow_private=True, settings={"request": '{"q": "Rate: {text}"}'})
        np.testing.assert_allclose(model.predict_proba(["great", "bad"]), VICTIM.predict_proba(["great", "bad"]))
        assert model.labels == ("negative", "positive")
        assert len(server.requests) == 2
    with serving(lambda body: [2.0 if "great" in text else -2.0 for text in body["texts"]]) as server:
        model = load(server, outputs="logits", settings={"scores": ".", "method": "PUT"})
        assert model.predict_proba(["great"])[0, 1] == pytest.approx(1 / (1 + np.exp(-2.0)))
    with serving(
        lambda body: {"scores": ["positive" if "great" in text else "negative" for text in body["texts"]]}
    ) as server:
        model = load(server, outputs="labels")
        assert model.label_only
        assert model.predict_proba(["great", "bad"]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_faults_cost_no_text_and_change_no_result(count: int, tmp_path: Path) -> None:
    """5 % errors, 1 % hangs, 5 % too busy: every text is accounted for, with the outcome of the in-process model."""
    rows = texts(count)
    here = st.attack(VICTIM, rows, "deepwordbug", preset="textattack", similarity=False, seed=1)
    with serving(faults=Faults(errors=0.05, hangs=0.01, busy=0.05, hang_seconds=3.0)) as server:
        there = st.attack(
            server.url,
            rows,
            "deepwordbug",
            preset="textattack",
            similarity=False,
            seed=1,
            out=tmp_path / "run",
            model_options=st.ModelOptions(
                labels=LABELS, allow_private=True, timeout=1.0, settings={**QUICK, "batch_size": 8, "concurrency": 6}
            ),
        )
        assert server.most_at_once > 1
    numbers = there.summary["attacks"]["deepwordbug"]
    assert numbers["n"] + numbers["errors"] == count
    assert numbers["errors"] == 0
    assert numbers["failed_queries"] == 0
    assert [(r.id, r.status, r.adversarial, r.queries) for r in there.records()] == [
        (r.id, r.status, r.adversarial, r.queries) for r in here.records()
    ]


def test_a_service_that_goes_away_ends_the_run_and_a_resume_completes_it(tmp_path: Path) -> None:
    rows = texts(60)
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    options: dict[str, Any] = {"preset": "textattack", "similarity": False, "concurrency": 4}
    with serving() as server:
        served = 0

        def until_the_hundredth(body: Any) -> Any:
            nonlocal served
            served += 1
            return scores(body) if served <= 40 else Reply(503)

        server.answer = until_the_hundredth
        settings = {**QUICK, "retries": 1, "breaker": 4, "batch_size": 4, "concurrency": 2}
        model_options = st.ModelOptions(labels=LABELS, allow_private=True, settings=settings)
        folder = tmp_path / "run"
        with pytest.raises(ModelGone, match=r"does not answer: it answered 503.*What is finished is kept"):
            st.attack(server.url, data, "deepwordbug", out=folder, model_options=model_options, **options)
        finished = len(list(st.load(folder).records()))
        assert 0 < finished < 60
        server.answer = scores
        with pytest.raises(
            RunError, match=r"asks http://127.*texts and secrets would go to a service named by the folder"
        ):
            st.resume(folder)
        again = st.resume(folder, trust=True)
    assert again.summary["attacks"]["deepwordbug"]["n"] == 60
    here = st.attack(VICTIM, data, "deepwordbug", **options)
    assert [(r.status, r.adversarial) for r in again.records()] == [(r.status, r.adversarial) for r in here.records()]


def test_retry_after_is_heeded() -> None:
    replies = [Reply(429, headers={"Retry-After": "0.4"})]
    with serving(lambda body: replies.pop() if replies else scores(body)) as server:
        model = load(server, settings={"max_wait": 2.0})
        started = time.monotonic()
        model.predict_proba(["great"])
        assert time.monotonic() - started >= 0.4
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (
            Reply(401, b'{"error": "who are you?"}'),
            ModelGone,
            r"answered 401 \(.*who are you.*Check the URL and the headers",
        ),
        (Reply(404), ModelGone, "answered 404"),
        (Reply(422, b"too long"), ModelError, r"answered 422 \(too long\)"),
        (Reply(200, b"<html>hello</html>]"), ModelError, "something that is no JSON"),
        (Reply(200, b'{"other": 1}'), ModelError, r'a table with other where "scores" is expected'),
        (Reply(200, b'{"scores": [[0.5, 0.6]]}'), ModelError, "rows sum to 1.1"),
        (Reply(200, b'{"scores": [[0.5, 0.5], [0.5, 0.5]]}'), ModelError, "given 1 texts and answered with 2 rows"),
        (Reply(200, b"x" * 2000), ModelError, r"more than 1,000 bytes.*max_bytes"),
        (Reply(200, b"\x1f\x8b", {"Content-Encoding": "gzip"}), ModelError, "compressed"),
        (Reply(302, headers={"Location": "/elsewhere"}), ModelGone, "redirects to /elsewhere"),
        (Reply(307, headers={"Location": "http://localhost:1/x"}), ModelGone, "redirects to http://localhost:1/x"),
        (Reply(500, b"oops"), NoAnswer, r"no answer in 2 attempts: it answered 500 \(oops\)"),
        (Reply(200, b'{"scores": [', cut_short=True), NoAnswer, "the connection failed"),
        (Reply(200, b'{"scores": ['), NoAnswer, "its answer broke off"),
        (Reply(200, b'{"scores": [[0.5, 0.5]]}', drip=0.05), NoAnswer, r"did not answer within 0\.3 s"),
    ],
    ids=lambda value: getattr(value, "body", b"").decode("latin-1")[:20] if isinstance(value, Reply) else "",
)
def test_what_a_service_must_not_answer_is_a_sentence(reply: Reply, error: type[Exception], message: str) -> None:
    with serving(lambda body: reply) as server:
        model = load(server, timeout=0.3, settings={"retries": 1, "max_bytes": 1000})
        with pytest.raises(error, match=message):
            model.predict_proba(["great"])


def test_redirects_within_the_host_are_followed() -> None:
    with serving() as server:

        def moved(body: Any) -> Any:
            here = server.requests[-1].path
            return scores(body) if here == "/v2" else Reply(307, headers={"Location": "/v2"})

        server.answer = moved
        assert load(server).predict_proba(["great"])[0, 1] > 0.5
        server.answer = lambda body: Reply(308, headers={"Location": "/predict"})
        with pytest.raises(ModelGone, match="redirects more than 3 times"):
            load(server).predict_proba(["great"])


def test_a_private_address_is_only_asked_when_allowed() -> None:
    with serving() as server:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            with pytest.raises(ModelError, match=r"this machine or of a private network.*--allow-private"):
                load_model(url, labels=LABELS)
        assert not server.requests


def test_the_address_that_was_looked_at_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that changes its address between look and request would lead inside; so the address is what is asked."""
    import socket

    looked = []
    real = socket.getaddrinfo

    def lookup(host: Any, port: Any, *rest: Any, **named: Any) -> Any:
        if host == "model.example":
            looked.append(host)
            return real("127.0.0.1", port, *rest, **named)
        assert host in ("127.0.0.1", b"127.0.0.1"), f"{host} was looked up again"
        return real(host, port, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with serving() as server:
        url = server.url.replace("127.0.0.1", "model.example")
        with pytest.raises(ModelError, match="private network"):
            load_model(url, labels=LABELS)
        model = load_model(url, labels=LABELS, allow_private=True)
        model.predict_proba(["great"])
        assert server.requests[0].headers["host"] == f"model.example:{server.http.server_port}"
    assert looked


SECRET = "sk-hunter2-planted-secret"


def test_secrets_go_to_the_service_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The service repeats the secret in answers and errors; no file, log, stream or error of ours has it."""
    monkeypatch.setenv("PLANTED", SECRET)
    caplog.set_level(logging.DEBUG)
    settings = {**QUICK, "headers": {"Authorization": "Bearer ${PLANTED}"}, "retries": 1, "batch_size": 2}
    settings["request"] = {"texts": "{texts}", "key": "${PLANTED}"}
    errors = []
    with serving() as server:

        def telling(body: Any) -> Any:
            assert body.pop("key") == SECRET
            if any("item3" in text for text in body["texts"]):
                return Reply(400, f"cannot do that for {SECRET}".encode())
            if len(server.requests) % 7 == 0:
                return Reply(500, f"Bearer {SECRET} failed".encode())
            return {**scores(body), "you_sent": SECRET}

        server.answer = telling
        options = st.ModelOptions(labels=LABELS, allow_private=True, settings=settings)
        run = st.attack(
            server.url, texts(12), "deepwordbug", out=tmp_path / "run", model_options=options, similarity=False
        )
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        (tmp_path / "page.html").write_text(run._repr_html_())
        repr(run), str(run.manifest), str(load_model(server.url, labels=LABELS, allow_private=True, settings=settings))
        replies = (
            Reply(401, SECRET.encode()),
            Reply(500, SECRET.encode()),
            Reply(302, headers={"Location": f"/{SECRET}"}),
            Reply(200, json.dumps({SECRET: 1}).encode()),
        )
        for reply in replies:
            server.answer = partial(lambda reply, body: reply, reply)
            with pytest.raises(ModelError) as caught:
                load_model(server.url, labels=LABELS, allow_private=True, settings=settings).predict_proba(["great"])
            errors.append(str(caught.value))
    assert run.summary["attacks"]["deepwordbug"]["errors"] == 1
    assert "${PLANTED}" in (tmp_path / "run" / "manifest.json").read_text()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    captured = capfd.readouterr()
    assert SECRET.encode() not in written
    for place in ("".join(errors), caplog.text, captured.out, captured.err):
        assert SECRET not in place


def test_secrets_are_not_written_into_settings_or_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", SECRET)
    with pytest.raises(
        OptionError, match=r"header Authorization has its value in the settings.*environment variable"
    ) as e:
        load_model("https://host.example/x", labels=LABELS, settings={"headers.Authorization": f"Bearer {SECRET}"})
    assert SECRET not in str(e.value)
    with pytest.raises(ModelError, match="without encryption: use https"):
        load_model("http://host.example/x", labels=LABELS, settings={"headers.Authorization": "Bearer ${PLANTED}"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0, expected 1 or more"),
        ({"concurrency": "0"}, "concurrency is 0"),
        ({"rate": -1}, "rate is -1"),
        ({"timeouts": 3}, 'no option of services "timeouts"'),
        ({"method": "GET"}, "method of services cannot be 'GET'"),
        ({"cooldown": 1e9}, "cooldown is 1e\\+09"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with serving() as server, pytest.raises(OptionError, match=message):
        load(server, settings=settings)


def test_the_command_line(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in texts(6)))
    (tmp_path / "service.toml").write_text('scores = "scores"\nbatch_size = 4\n')
    out = tmp_path / "run"
    with serving() as server:
        command = [
            "attack",
            server.url,
            str(data),
            "--attack",
            "deepwordbug",
            "--labels",
            ",".join(LABELS),
            "--out",
            str(out),
        ]
        command += ["--no-similarity", "--setting", f"@{tmp_path / 'service.toml'}", "--setting", "concurrency=3"]
        with pytest.raises(ModelError, match="--allow-private"):
            cli.main(command, standalone_mode=False)
        assert cli.main([*command, "--allow-private"], standalone_mode=False) == 0
        assert max(len(request.body["texts"]) for request in server.requests) <= 4
    recorded = json.loads((out / "manifest.json").read_text())["spec"]["model_options"]
    assert recorded["settings"] == {"scores": "scores", "batch_size": 4, "concurrency": "3"}
    assert recorded["allow_private"] is True


def test_a_folder_of_somebody_else_makes_nobody_ask_a_service(tmp_path: Path) -> None:
    """The manifest names a service and a variable of the user's: without the user's word nothing is sent."""
    data = tmp_path / "d.csv"
    data.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in texts(4)))
    with serving() as server:
        options = st.ModelOptions(labels=LABELS, allow_private=True)
        st.attack(server.url, data, "deepwordbug", out=tmp_path / "run", model_options=options, similarity=False)
        manifest = tmp_path / "run" / "manifest.json"
        content = json.loads(manifest.read_text())
        content["spec"]["model_options"]["settings"] = {"request": {"texts": "{texts}", "home": "${HOME}"}}
        manifest.write_text(json.dumps(content))
        before = len(server.requests)
        for use in (st.resume, lambda folder: st.load(folder).verify()):
            with pytest.raises(RunError, match="texts and secrets would go to a service named by the folder"):
                use(tmp_path / "run")
        assert len(server.requests) == before


def test_nothing_is_read_from_netrc_or_proxies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    os.chmod(tmp_path / ".netrc", 0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving() as server:
        load(server).predict_proba(["great"])
        assert "authorization" not in server.requests[0].headers
