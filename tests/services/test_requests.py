"""Requests and answers: places for texts, paths to scores, URLs, addresses, secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from stockade.core.errors import ModelError, OptionError
from stockade.models.addresses import Endpoint, addresses_of, is_public
from stockade.models.json_paths import RequestTemplate, parse_path, value_at
from stockade.models.secrets import Secrets
from stockade.models.settings import read_settings

ANSWER = {"results": [{"scores": [0.1, 0.9]}, {"scores": [0.2, 0.8]}], "model": {"name": "m"}}


def test_a_path_leads_to_what_it_names() -> None:
    assert value_at(ANSWER, parse_path("results[*].scores")) == [[0.1, 0.9], [0.2, 0.8]]
    assert value_at(ANSWER, parse_path("results[1].scores[0]")) == 0.2
    assert value_at(ANSWER, parse_path("model.name")) == "m"
    assert value_at([1, 2], parse_path(".")) == [1, 2]
    assert value_at([[1], [2]], parse_path("[*][0]")) == [1, 2]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("outputs", r'a table with results, model where "outputs" is expected'),
        ("model[0]", r"where \[0\] is expected"),
        ("results[2]", r"a list of 2 where \[2\] is expected"),
        ("model[*]", r"where \[\*\] expects a list"),
        ("results[0].scores.a", r'a list of 2 where "a" is expected'),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(path: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        value_at(ANSWER, parse_path(path))


@pytest.mark.parametrize("path", ["", "a[", "a]", "[x]", "a..b", "[-1]"])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(OptionError, match="path"):
        parse_path(path)


def test_texts_go_to_their_places() -> None:
    batched = RequestTemplate('{"inputs": "{texts}", "options": {"wait": true}, "n": [1, "{texts}"]}')
    assert batched.batched
    assert batched.filled(["a", ("p", "h")]) == {
        "inputs": ["a", ["p", "h"]],
        "options": {"wait": True},
        "n": [1, ["a", ["p", "h"]]],
    }
    single = RequestTemplate({"prompt": "Rate: {text}", "pair": ["{premise}", "{hypothesis}"]})
    assert single.filled([("p", "h")]) == {"prompt": "Rate: h", "pair": ["p", "h"]}
    assert single.filled(["{premise} ${HOME}"])["prompt"] == "Rate: {premise} ${HOME}"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{", "is no JSON"),
        ('{"a": 1}', "no place for a text"),
        ('{"a": "{texts}", "b": "{text}"}', "leave out one of the two"),
        ('{"a": "all {texts}"}', "no place for a text"),
    ],
)
def test_a_request_without_a_place_is_refused(template: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RequestTemplate(template)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://user:hunter2@host/x", "has a user or password in it"),
        ("https://host/x?api_key=hunter2", r'has a value for "api_key".*environment variable'),
        ("https://host/x?access_token=hunter2", "would be recorded"),
        ("ftp://host/x", "no URL of a service"),
        ("https:///x", "no URL of a service"),
        ("https://host:port/x", "is no URL"),
    ],
)
def test_a_url_that_cannot_be_asked_or_holds_a_secret_is_refused(url: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        Endpoint.parse(url)
    assert "hunter2" not in str(caught.value)


def test_redirects_stay_within_the_host() -> None:
    start = Endpoint.parse("https://host.example/predict?v=1")
    assert str(start) == "https://host.example/predict?v=1"
    for location, target in {
        "/v2/predict": "https://host.example/v2/predict",
        "https://host.example/v2": "https://host.example/v2",
        "https://host.example:443/v2?x=1": "https://host.example/v2?x=1",
    }.items():
        assert str(start.redirected(location)) == target
    for location in (
        "https://other.example/",
        "http://host.example/",
        "https://host.example:8443/",
        "//other/x",
        "",
        "x",
    ):
        assert start.redirected(location) is None, location


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
     "::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::"],
)  # fmt: skip
def test_addresses_that_are_not_of_the_internet(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:2800:220:1::1"])
def test_addresses_of_the_internet(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1"])
def test_this_machine_is_not_asked_unasked_however_it_is_written(host: str) -> None:
    with pytest.raises(ModelError, match=r"this machine or of a private network.*--allow-private|cannot be found"):
        addresses_of(Endpoint.parse(f"http://{host}:9/"), allow_private=False)


def test_secrets_are_put_in_and_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "hunter2-and-more")
    monkeypatch.setenv("B_TOKEN", "hunter2")
    secrets = Secrets()
    assert secrets.expand({"h": ["Bearer ${A_TOKEN}", "${B_TOKEN}"], "n": 1}) == {
        "h": ["Bearer hunter2-and-more", "hunter2"],
        "n": 1,
    }
    assert secrets.redact("it said hunter2-and-more and hunter2") == "it said ${A_TOKEN} and ${B_TOKEN}"
    monkeypatch.setenv("C", "two\nlines")
    for name, message in (("MISSING_TOKEN", "MISSING_TOKEN is not set"), ("C", "line break")):
        with pytest.raises(ModelError, match=message):
            secrets.expand("${" + name + "}")


@given(some.text(min_size=4, alphabet="abcdefgh"), some.text(alphabet="abcdefgh "))
def test_no_secret_is_left_in_a_text(secret: str, around: str) -> None:
    secrets = Secrets()
    secrets._values["X_NAME"] = secret
    assert secret not in secrets.redact(around + secret + around).replace("${X_NAME}", "")


def test_settings_are_read_from_options_and_files(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "s.toml").write_text('batch_size = 4\nscores = "a"\n[headers]\nX = "${A}"\n')
    (folder / "s.json").write_text('{"request": {"q": "{texts}"}}')
    assert read_settings([f"@{folder / 's.toml'}", "scores=b=c", "headers.Y=${B}", f"@{folder / 's.json'}"]) == {
        "batch_size": 4,
        "scores": "b=c",
        "headers": {"X": "${A}", "Y": "${B}"},
        "request": {"q": "{texts}"},
    }
    (folder / "bad.toml").write_text("= 3")
    (folder / "list.json").write_text("[1]")
    for item, message in {
        "batch_size": "not of the form NAME=VALUE",
        "=3": "not of the form NAME=VALUE",
        f"@{folder / 'none.toml'}": "cannot be read",
        f"@{folder / 'bad.toml'}": "cannot be read",
        f"@{folder / 'list.json'}": "holds a list",
    }.items():
        with pytest.raises(OptionError, match=message):
            read_settings([item])
