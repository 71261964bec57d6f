"""A real HTTP server on this machine, with faults on demand: what it serves is a victim whose answers are known."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from tests.toys import WeightVictim

VICTIM = WeightVictim({"great": 2.0, "good": 1.0, "bad": -2.0, "dull": -1.5}, bias=0.1)
Answer = Callable[[Any], Any]


@dataclass
class Request:
    """What a client has sent."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """What the server answers instead of scores."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    cut_short: bool = False
    drip: float = 0.0


@dataclass
class Faults:
    """How often a request goes wrong: shares of errors, hangs, and requests that come too fast."""

    errors: float = 0.0
    hangs: float = 0.0
    busy: float = 0.0
    hang_seconds: float = 1.0
    seed: int = 0

    def reply(self, number: int) -> Reply | None:
        chance = Random(f"{self.seed}:{number}").random()
        if chance < self.errors:
            kinds = (Reply(500), Reply(503), Reply(200, b'{"scores": [', cut_short=True), Reply(502))
            return kinds[number % len(kinds)]
        if chance < self.errors + self.hangs:
            time.sleep(self.hang_seconds)
            return Reply(504)
        if chance < self.errors + self.hangs + self.busy:
            return Reply(429, headers={"Retry-After": "0.01"})
        return None


def scores(body: Any) -> Any:
    """The default answer: class probabilities of the victim."""
    inputs = [item if isinstance(item, str) else tuple(item) for item in body["texts"]]
    return {"scores": VICTIM.predict_proba(inputs).tolist()}


def chat_answer(
    *, logprobs: bool, say: Callable[[str], str] = str, usage: bool = True, price_tokens: int = 100
) -> Answer:
    """Answers like a chat model of OpenAI's API that classifies as the victim does.

    Parameters
    ----------
    logprobs
        Whether it shows log-probabilities when it is asked for them.
    say
        What it says for the name of a class.
    usage, price_tokens
        Whether it counts tokens, and how many a request has.
    """

    def answer(body: Any) -> Any:
        text = body["messages"][-1]["content"].rpartition("Text: ")[2]
        negative, positive = VICTIM.predict_proba([text])[0]
        label = "positive" if positive > negative else "negative"
        choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": say(label)}}
        if logprobs and body.get("logprobs"):
            tokens = {" pos": 0.98 * positive, "neg": 0.98 * negative, "maybe": 0.02}
            top = [{"token": token, "logprob": math.log(max(chance, 1e-30))} for token, chance in tokens.items()]
            choice["logprobs"] = {"content": [{"token": say(label)[:3], "top_logprobs": top}]}
        counted = {"usage": {"prompt_tokens": price_tokens, "completion_tokens": 1}} if usage else {}
        return {"model": body["model"], "choices": [choice], "system_fingerprint": "fp_1", **counted}

    return answer


class Server:
    """A running server.

    Parameters
    ----------
    answer
        Makes the answer of a request's body; a `Reply` is sent as it is.
    faults
        What goes wrong before that.
    """

    def __init__(self, answer: Answer = scores, faults: Faults | None = None) -> None:
        self.answer, self.faults = answer, faults or Faults()
        self.requests: list[Request] = []
        self.most_at_once = self._at_once = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.serve(self)

            do_PUT = do_PATCH = do_POST

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients that do not wait for an answer

        self.http = Quiet(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/predict"

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            self.requests.append(Request(handler.path, {k.lower(): v for k, v in handler.headers.items()}, body))
            number = len(self.requests)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self.faults.reply(number)
            if reply is None:
                answer = self.answer(body)
                reply = answer if isinstance(answer, Reply) else Reply(200, json.dumps(answer).encode())
        finally:
            with self._lock:
                self._at_once -= 1
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.body) + 100 * reply.cut_short))
        handler.end_headers()
        for start in range(0, len(reply.body), 1 if reply.drip else 1 << 20):
            handler.wfile.write(reply.body[start : start + (1 if reply.drip else 1 << 20)])
            handler.wfile.flush()
            time.sleep(reply.drip)
        handler.close_connection = handler.close_connection or reply.cut_short


def running(server: Server) -> Server:
    """The server, started; it ends with the process."""
    threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


@contextmanager
def serving(answer: Answer = scores, faults: Faults | None = None) -> Iterator[Server]:
    """A server for as long as this lasts."""
    server = Server(answer, faults)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()
