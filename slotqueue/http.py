"""`/metrics`, `/livez` and `/readyz`: as an ASGI application, and served from a thread by `slotqueue run --http`.

`/livez` asks whether the ticker's loop turns, whether or not Redis answers: a restart mends a loop that hangs, and no
outage. `/readyz` asks for a pass that ended well within the last 10 s. The thread answers also while the event loop of
the replica is blocked: that is what a liveness probe has to see.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import TimeoutError as NoAnswer
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from slotqueue.app import SlotQueue
from slotqueue.errors import ConfigurationError

if TYPE_CHECKING:
    from slotqueue.metrics import Metrics

HUNG_SECONDS = 60.0
"""A loop that has not turned for so long hangs: no call to Redis takes longer than some seconds."""
_ANSWER_SECONDS = 5.0
_JSON = "application/json"


class Answer(NamedTuple):
    """An answer to an HTTP request."""

    status: int
    content_type: str
    body: bytes


class Endpoint:
    """Answers for one application in this process; an ASGI application.

    Mount it beside your own: `Mount("/slotqueue", Endpoint(slots, Metrics(slots)))`.

    Args:
        slots: whose ticker is judged.
        metrics: None where there are none: then `/metrics` says how to have some.
    """

    def __init__(self, slots: SlotQueue, metrics: Metrics | None = None) -> None:
        self._slots = slots
        self._metrics = metrics

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Answer an ASGI request; other kinds of connections are not for it."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            raise ConfigurationError(f"{scope['type']!r} is not served here; right is http")
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        answer = await self.answer(path) if scope["method"] in ("GET", "HEAD") else _NOT_ALLOWED
        headers = [(b"content-type", answer.content_type.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def answer(self, path: str) -> Answer:
        """Answer a GET."""
        if path == "/metrics" and self._metrics is not None:
            from slotqueue.metrics import CONTENT_TYPE  # noqa: PLC0415 - prometheus-client is an extra

            return Answer(HTTPStatus.OK, CONTENT_TYPE, await self._metrics.exposition())
        return self.probe(path)

    def probe(self, path: str) -> Answer:
        """Answer what needs no event loop."""
        pulse = self._slots.pulse
        facts = {"tick_age": pulse.tick_age, "turn_age": pulse.turn_age}
        match path.rstrip("/"):
            case "/livez":
                age = pulse.turn_age
                is_well = pulse.is_ticking and age is not None and age < HUNG_SECONDS
                return _verdict(is_well=is_well, **facts)
            case "/readyz":
                return _verdict(is_well=self._slots.is_ready, **facts)
            case "/metrics":
                return _said(HTTPStatus.NOT_IMPLEMENTED, "no metrics: pip install 'slotqueue[metrics]'")
        return _said(HTTPStatus.NOT_FOUND, "there are /metrics, /livez and /readyz")


class Server:
    """Serves an endpoint from threads until it is closed.

    Args:
        endpoint: whose answers.
        host, port: where to listen; port 0 for any that is free.

    Raises:
        ConfigurationError: nothing can listen there.
    """

    def __init__(self, endpoint: Endpoint, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = _ask(endpoint, loop, self.path.partition("?")[0])
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.content_type)
                self.send_header("Content-Length", str(len(answer.body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(answer.body)

            do_HEAD = do_GET  # noqa: N815 - the library's name
            timeout = 10

            def log_message(self, *_: object) -> None:
                """Say nothing: a probe a second is no fact worth a line."""

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            address_family = _family(host)

        try:
            self._server = Listener((host, port), Handler)
        except OSError as error:
            raise ConfigurationError(f"cannot listen at {host}:{port}: {error}", argument="http") from error
        self.host = host
        self.port = int(self._server.server_address[1])
        self._thread = Thread(target=self._server.serve_forever, args=(0.1,), name="slotqueue-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2)


def address(text: str) -> tuple[str, int]:
    """Read "HOST:PORT", ":PORT" or "PORT"; without a host all of them are meant.

    Raises:
        ConfigurationError: says what one looks like.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ConfigurationError(f"{text!r} is no place to listen; one looks like 127.0.0.1:9100", argument="http")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - a probe comes from elsewhere


def _ask(endpoint: Endpoint, loop: asyncio.AbstractEventLoop, path: str) -> Answer:
    if path != "/metrics":
        return endpoint.probe(path)
    answer = asyncio.run_coroutine_threadsafe(endpoint.answer(path), loop)
    try:
        return answer.result(_ANSWER_SECONDS)
    except NoAnswer:
        answer.cancel()
        return _said(HTTPStatus.SERVICE_UNAVAILABLE, "the event loop of this process is blocked")


def _family(host: str) -> int:

    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _verdict(*, is_well: bool, **facts: float | None) -> Answer:
    status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, _JSON, json.dumps({"ok": is_well, **facts}).encode() + b"\n")


def _said(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", f"{text}\n".encode())


_NOT_ALLOWED = _said(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")


async def _live(receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Take part in the life of a server that serves nothing else."""
    while True:
        word = (await receive())["type"]
        await send({"type": f"{word}.complete"})
        if word == "lifespan.shutdown":
            return
