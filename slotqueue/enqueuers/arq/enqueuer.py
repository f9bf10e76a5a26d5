"""`ArqEnqueuer`: puts messages on arq's queues, a thousand in one round trip."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from math import inf
from time import time
from typing import NamedTuple
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.constants import (
    abort_jobs_ss,
    default_queue_name,
    in_progress_key_prefix,
    job_key_prefix,
    result_key_prefix,
    retry_key_prefix,
)
from arq.jobs import Deserializer, Serializer
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError, ResponseError

from slotqueue.enqueuers.arq.payload import check_arguments, payload_of, why_given_up
from slotqueue.enqueuers.arq.places import place_of, tls_options
from slotqueue.errors import ConfigurationError
from slotqueue.jobs import Job
from slotqueue.messages import Accepted, Delivery, Message, Refused, Waiting
from slotqueue.policy import Terms
from slotqueue.wire import pack_in_c

BATCH = 1000
"""Messages in one script call: about 10 ms of arq's Redis."""
_PATIENCE_SECONDS = 4.5
"""Every call ends within this, whatever the server does; arq bounds only the time to connect."""
_SHORTEST_TTL_MS = 24 * 3600 * 1000
_PREFIXES = (job_key_prefix, result_key_prefix, retry_key_prefix, in_progress_key_prefix)
_UNREACHABLE = (RedisError, OSError, TimeoutError)

_DELIVERIES: dict[object, Delivery] = {1: Accepted(is_new=True), 0: Accepted(is_new=False)}


class _Packed(NamedTuple):
    """A message that serialised, and its place in the batch."""

    at: int
    message: Message
    payload: bytes


class ArqEnqueuer:
    """Implements `slotqueue.protocols.Enqueuer` for arq.

    Caveats: a worker with a serializer of its own needs the same one here. With `retry_jobs=False` arq gives up
    whatever cannot run at once, also while the coordinating Redis is away.

    Args:
        redis: where arq's queues are: `RedisSettings`, an `ArqRedis` that the application closes itself, or None for
            the Redis that the `SlotQueue` coordinates with.
        queue_name: for jobs that name none. Default: the pool's, or arq's own.
        job_serializer: as the workers'. Default: the pool's, or pickle.
        job_deserializer: as the workers'. Default: the pool's, or pickle.
    """

    kind = "arq"
    seconds_a_message = 0.0001
    ahead_seconds = inf
    """A message can wait in arq's queue itself: no worker takes it before its time."""

    def __init__(
        self,
        redis: RedisSettings | ArqRedis | None = None,
        *,
        queue_name: str | None = None,
        job_serializer: Serializer | None = None,
        job_deserializer: Deserializer | None = None,
    ) -> None:
        pool = redis if isinstance(redis, ArqRedis) else None
        self._given_pool = pool
        self._settings = redis if isinstance(redis, RedisSettings) else None
        self.queue_name = queue_name or (pool.default_queue_name if pool is not None else default_queue_name)
        self.serializer = job_serializer or (pool.job_serializer if pool is not None else None)
        self.deserializer = job_deserializer or (pool.job_deserializer if pool is not None else None)
        self._own_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ArqRedis] = WeakKeyDictionary()

    def __repr__(self) -> str:
        if self._given_pool is not None:
            where = "a pool of the application"
        elif self._settings is None:
            where = "no Redis yet"
        else:
            where = f"{self._settings.unix_socket_path or self._settings.host}, database {self._settings.database}"
        return f"ArqEnqueuer({where}, queue {self.queue_name!r})"

    def use_default(self, url: str) -> None:
        """Take this Redis where the application named none.

        Raises:
            ConfigurationError: arq cannot read the URL.
        """
        if self._given_pool is not None or self._settings is not None:
            return
        try:
            settings = RedisSettings.from_dsn(url)
        except (RuntimeError, ValueError):
            raise ConfigurationError(
                "arq cannot read the URL of the SlotQueue's Redis; give ArqEnqueuer(RedisSettings(...))",
                argument="enqueuer",
            ) from None
        # arq takes user and password from the URL as they stand there, escapes and all, and leaves the options.
        user, password = _plain(settings.username), _plain(settings.password)
        self._settings = replace(settings, username=user, password=password, **tls_options(url))

    @property
    def place(self) -> str:
        """Where its Redis is, without a password: "host:port/database"."""
        return place_of(self._given_pool or self._settings)

    def queue_of(self, job: Job) -> str:
        """Name the queue that a job is sent to."""
        return job.queue or self.queue_name

    def check(self, job: Job) -> None:
        """See `Enqueuer.check`."""
        check_arguments(job, self.serializer, self.deserializer)

    async def enqueue(self, messages: Sequence[Message]) -> Sequence[Delivery]:
        """See `Enqueuer.enqueue`."""
        answers: list[Delivery] = [Refused("not tried: arq's Redis took too long")] * len(messages)
        packed = list(self._pack(messages, answers))
        sent = 0
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                pool = await self._connected()
                for sent in range(0, len(packed), BATCH):
                    batch = packed[sent : sent + BATCH]
                    for (at, _, _), answer in zip(batch, await self._send(pool, batch), strict=True):
                        answers[at] = _DELIVERIES.get(answer) or _refused(answer)
        except _UNREACHABLE as error:
            problem = f"arq's Redis: {str(error).strip() or 'no answer in time'}"
            is_sent_possible = not _is_before_sending(error) and self._pool_now() is not None
            for at, _, _ in packed[sent : sent + BATCH]:
                answers[at] = Refused(problem, is_sent_possible)
            for at, _, _ in packed[sent + BATCH :]:
                answers[at] = Refused(problem)
        return answers

    async def given_up(self, waiting: Sequence[Waiting]) -> Mapping[str, str]:
        """See `Enqueuer.given_up`; while arq's Redis is away, none."""
        if not waiting:
            return {}
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                pool = await self._connected()
                results = await pool.mget([result_key_prefix + each.key for each in waiting])
        except _UNREACHABLE:
            return {}
        found = {}
        for each, result in zip(waiting, results, strict=True):
            reason = why_given_up(result, each.state, self.deserializer) if result else None
            if reason is not None:
                found[each.key] = reason
        return found

    async def close(self) -> None:
        """Close what this enqueuer opened in this event loop."""
        pool = self._own_pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            with contextlib.suppress(*_UNREACHABLE):
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await pool.aclose(close_connection_pool=True)

    def _pool_now(self) -> ArqRedis | None:
        """The pool of this event loop, if there is one: a socket belongs to the loop that opened it."""
        return self._given_pool or self._own_pools.get(asyncio.get_running_loop())

    async def _connected(self) -> ArqRedis:
        pool = self._pool_now()
        if pool is None:
            # arq would try five times, a second apart: whoever asks here asks again anyway.
            settings = replace(self._settings or RedisSettings(), conn_retries=0)
            pool = await create_pool(settings)
            pack_in_c(pool.connection_pool)
            await pool.connection_pool.disconnect()  # the one that create_pool has opened packs in Python still
            pool.connection_pool.reset()
            self._own_pools[asyncio.get_running_loop()] = pool
        return pool

    def _pack(self, messages: Sequence[Message], answers: list[Delivery]) -> Iterator[_Packed]:
        now_ms = round(time() * 1000)
        for at, message in enumerate(messages):
            try:
                payload = payload_of(message, now_ms, self.serializer)
            except Exception as error:  # noqa: BLE001 - serializers raise what they like; the others shall go out
                answers[at] = Refused(f"its arguments do not serialise: {type(error).__name__}: {error}")
            else:
                yield _Packed(at, message, payload)

    async def _send(self, pool: ArqRedis, batch: Sequence[_Packed]) -> list[object]:
        queues: dict[str, int] = {}
        args: list[str | int | bytes] = [*_PREFIXES]
        for (queue, n, before, not_before, ttl), group in groupby(batch, self._group_of):
            members = list(group)
            args += (queues.setdefault(queue, len(queues) + 2), n, before, not_before, ttl, len(members))
            for _, message, payload in members:
                args += (message.slip.key.encode(), payload)
        answers: list[object] = await pool.register_script(_script())([abort_jobs_ss, *queues], args)
        return answers

    def _group_of(self, packed: _Packed) -> tuple[str, int, str, int, int]:
        """What the messages of a group share, so that it is sent once."""
        message = packed.message
        not_before = message.not_before.ms if message.not_before else 0
        queue, ttl = message.queue or self.queue_name, _ttl_ms(message.slip.terms)
        return queue, message.slip.n, message.before, not_before, ttl


@cache
def _script() -> str:
    return (files("slotqueue.enqueuers.arq") / "enqueue.lua").read_text(encoding="utf-8")


@lru_cache(maxsize=1024)
def _ttl_ms(terms: str) -> int:
    """How long a message of a slot under these terms may be needed: many slots share few terms."""
    return max(Terms.parse(terms).retention, _SHORTEST_TTL_MS)


def _refused(answer: object) -> Refused:
    return Refused(answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer))


def _is_before_sending(error: BaseException) -> bool:
    """Whether arq's Redis certainly did nothing: it refused the connection or the call as a whole."""
    if isinstance(error, ResponseError | AuthenticationError | BusyLoadingError):
        return True
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ConnectionRefusedError | socket.gaierror | FileNotFoundError):
            return True
        if isinstance(seen, OSError) and "Connect call failed" in str(seen):  # asyncio, after several addresses
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _plain(text: str | None) -> str | None:
    return None if text is None else unquote(text)
