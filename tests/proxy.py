"""A TCP proxy in front of a server: it forwards, or swallows, delays, resets, refuses, as a broken network would."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, Self


class Proxy:
    """Forwards to a port of this machine until told otherwise. It lives in a thread; usable as a context manager.

    Args:
        port: of the server.
    """

    def __init__(self, port: int) -> None:
        self.resets = 0
        """How many connections it has reset because of what they said."""
        self._target = port
        self._is_swallowing = self._is_refusing = self._is_dropping_replies = False
        self._delay = self._reply_delay = 0.0
        self._forbidden = b""
        self._open: set[asyncio.StreamWriter] = set()
        self._towards_server: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The URL of database 0 of the server, through here."""
        return f"redis://127.0.0.1:{self.port}/0"

    def lead_to(self, port: int) -> None:
        """Forward to another server from now on, and reset every connection to the one before."""
        self._target = port
        self._do(self._reset_all())

    def forward(self) -> None:
        """Be a good network again, for new connections; the old ones may have lost something."""
        self._is_swallowing = self._is_refusing = self._is_dropping_replies = False
        self._delay, self._forbidden = 0.0, b""

    def swallow(self) -> None:
        """Be a black hole: connections are accepted and stay, nothing comes back."""
        self._is_swallowing = True

    def refuse(self) -> None:
        """Reset every connection, and each new one."""
        self._is_refusing = True
        self._do(self._reset_all())

    def cut_over(self, port: int) -> None:
        """Reset every connection; new ones go to another server, as after a failover behind one address."""
        self._target = port
        self._do(self._reset_all())

    def aim(self, port: int) -> None:
        """Let new connections go to another server; the old ones stay where they are."""
        self._target = port

    def delay(self, seconds: float) -> None:
        """Let everything that clients say arrive later."""
        self._delay = seconds

    def delay_replies(self, seconds: float) -> None:
        """Let everything that the server says arrive later; a good network for clients does not change that."""
        self._reply_delay = seconds

    def reset_whoever_says(self, words: str) -> None:
        """Reset each connection whose client says this; the server never hears it."""
        self._forbidden = words.encode()

    def drop_replies(self) -> None:
        """Let everything that clients say arrive, and reset each connection whose server answers."""
        self._is_dropping_replies = True

    def half_close(self) -> None:
        """Tell the server of every connection that its client says nothing more, and the client nothing at all."""
        self._loop.call_soon_threadsafe(self._half_close_all)

    def _half_close_all(self) -> None:
        for writer in self._towards_server:
            if writer.can_write_eof():
                writer.write_eof()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _reset_all(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        await self._reset_all()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, there_writer}
        self._open |= both
        self._towards_server.add(there_writer)
        pumps = [
            asyncio.ensure_future(self._pump(reader, there_writer, is_request=True)),
            asyncio.ensure_future(self._pump(there_reader, writer, is_request=False)),
        ]
        try:
            with contextlib.suppress(asyncio.CancelledError):  # the proxy ends, which no log needs to know
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            for each in both:
                each.transport.abort()
            self._open -= both
            self._towards_server.discard(there_writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if is_request and self._forbidden and self._forbidden in data:
                    self.resets += 1
                    return
                if not is_request and self._is_dropping_replies:
                    return
                if delay := self._delay if is_request else self._reply_delay:
                    await asyncio.sleep(delay)
                if not self._is_swallowing:
                    writer.write(data)
                    await writer.drain()
