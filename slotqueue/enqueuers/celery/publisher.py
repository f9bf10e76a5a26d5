"""Publishes task messages by name on one connection of its own; blocking, and always at an end within seconds.

A broker that refuses is not tried again here: whoever asks releases the slot, and any replica sends it again. Every
wait is bounded, since a broker behind a dead route would otherwise hold the ticker for ever: kombu waits without a
limit where Redis stops to answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from time import monotonic, sleep
from typing import Any

from kombu.exceptions import OperationalError

from slotqueue.enqueuers.celery.confirms import Confirms
from slotqueue.enqueuers.celery.message import headers_of
from slotqueue.enqueuers.celery.options import sending_options
from slotqueue.enqueuers.celery.sending import sending
from slotqueue.messages import Accepted, Delivery, Message, Refused

CONNECT_SECONDS = 1.5
ANSWER_SECONDS = 2.5
_BATCH = 200
"""Messages in one pipeline: what is at stake when its answer is lost."""
_LONGEST_SECONDS = 2.0
"""No further pipeline is begun after this."""
_LONGEST_IDLE_SECONDS = 20.0
"""A connection that rested longer is not trusted: firewalls forget such, and say nothing."""
_CLOSE_SECONDS = 0.5

_UNREADABLE = ("Port could not be cast", "Port out of range", "IPv6", "IPv4", "netloc")
"""What urllib says of a URL that it cannot take apart."""

_LIMITS: dict[str, dict[str, Any]] = {
    "redis": {"socket_connect_timeout": CONNECT_SECONDS, "socket_timeout": ANSWER_SECONDS},
    "amqp": {"confirm_publish": False, "read_timeout": ANSWER_SECONDS, "write_timeout": ANSWER_SECONDS},
}


class Publisher:
    """The broker, as one thread at a time sees it.

    Args:
        app: the Celery application; only its configuration is used, no task is imported.
    """

    def __init__(self, app: Any) -> None:  # noqa: ANN401 - Celery is untyped
        self._app = app
        self._connection: Any = None
        self._producer: Any = None
        self._send: Any = None
        self._confirms: Confirms | None = None
        self._used_at = 0.0

    def connect(self) -> None:
        """Do what the first message would have to wait for. A broker that is away is met again by that message."""
        try:
            self._connected()
            _ = self._app.amqp.router, self._app.backend  # loaded at their first use
        except Exception:  # noqa: BLE001 - each transport raises what it likes
            self.close()

    def publish(self, messages: Sequence[Message]) -> list[Delivery]:
        """Send messages, in order, one answer each. Raises nothing for a broker that refuses.

        A pipeline with messages that are not to be there yet waits for their time, ready-made where that is possible.
        """
        answers: list[Delivery] = []
        until = monotonic() + _LONGEST_SECONDS
        for at in range(0, len(messages), _BATCH):
            if monotonic() > until:
                answers += [Refused("not tried: Celery's broker is slow")] * (len(messages) - at)
                break
            chunk = messages[at : at + _BATCH]
            try:
                producer = self._connected()
            except Exception as error:  # noqa: BLE001 - each transport raises what it likes; the answer is for these slots
                self.close()
                answers += [Refused(f"Celery's broker: {_text(error)}")] * (len(messages) - at)
                break
            sent, is_broken = self._publish_chunk(producer, chunk)
            answers += sent
            if is_broken:
                self.close()
                answers += [Refused("not tried: Celery's broker failed just before")] * (len(messages) - len(answers))
                break
            self._used_at = monotonic()
        return answers

    def close(self) -> None:
        """Drop the connection without waiting for the broker."""
        connection, self._connection, self._producer, self._confirms = self._connection, None, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.collect(socket_timeout=_CLOSE_SECONDS)

    def _publish_chunk(self, producer: Any, chunk: Sequence[Message]) -> tuple[list[Delivery], bool]:  # noqa: ANN401
        """Send one pipeline; whether the broker failed meanwhile."""
        sent: list[tuple[Delivery, int]] = []
        confirms, problem = self._confirms, ""
        is_batch = bool(getattr(producer, "supports_batch_publish", False))
        try:
            if not is_batch:
                _wait_for(chunk)
            with _batch(producer) if is_batch else contextlib.nullcontext():
                for message in chunk:
                    number = confirms.newest + 1 if confirms else 0
                    sent.append((self._publish_one(producer, message), number))
                if is_batch:
                    _wait_for(chunk)
            if confirms:
                confirms.wait(ANSWER_SECONDS)
        except Exception as error:  # noqa: BLE001 - as above
            problem = f"Celery's broker: {_text(error)}"
        lost = Refused(problem, is_sent_possible=True)
        # Of a pipeline that failed nobody knows how much was heard.
        fallback: Delivery = lost if problem and is_batch else Accepted()
        answers = [_settled(answer, number, confirms, fallback, lost) for answer, number in sent]
        if problem and len(answers) < len(chunk):
            answers.append(lost)
        if confirms:
            confirms.forget()
        return answers, bool(problem)

    def _publish_one(self, producer: Any, message: Message) -> Delivery:  # noqa: ANN401
        """Send one message, or put it into the pipeline.

        Raises:
            Exception: the broker's, never one that is about this message alone.
        """
        headers = {**(message.options.get("headers") or {}), **headers_of(message.slip)}
        try:
            self._send(
                message.task,
                args=message.args,
                kwargs=dict(message.kwargs),
                task_id=message.slip.key,
                producer=producer,
                headers=headers,
                retry=False,
                ignore_result=None,  # a truth value would override the task's own setting
                add_to_parent=False,
                **sending_options(message),
            )
        except Exception as error:
            if self._is_the_brokers(error):
                raise
            return Refused(_text(error))
        return Accepted()

    def _is_the_brokers(self, error: Exception) -> bool:
        connection = self._connection
        kinds = (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors)
        return isinstance(error, kinds)

    def _connected(self) -> Any:  # noqa: ANN401
        if self._producer is not None and monotonic() - self._used_at > _LONGEST_IDLE_SECONDS:
            self.close()
        if self._producer is None:
            self._connection = connection = self._app.connection_for_write(connect_timeout=CONNECT_SECONDS)
            driver = getattr(connection.transport, "driver_type", "")
            connection.transport_options = {**connection.transport_options, **_LIMITS.get(driver, {})}
            connection.ensure_connection(
                max_retries=max(1, len(connection.alt) - 1),
                interval_start=0,
                interval_step=0,
                interval_max=0,
                timeout=CONNECT_SECONDS / 2,
            )
            channel = connection.default_channel  # Redis is asked only now
            self._confirms = Confirms(channel) if driver == "amqp" else None
            self._send = sending(self._app, channel)
            self._producer = self._app.amqp.Producer(connection, auto_declare=False)
            self._used_at = monotonic()
        return self._producer


def _wait_for(chunk: Sequence[Message]) -> None:
    """Wait until it is time for every message of a pipeline."""
    at = max((message.not_before.monotonic for message in chunk if message.not_before), default=0.0)
    while (left := at - monotonic()) > 0:
        sleep(left)


@contextlib.contextmanager
def _batch(producer: Any) -> Iterator[None]:  # noqa: ANN401
    with producer.batch(max_size=_BATCH):
        yield


def _settled(answer: Delivery, number: int, confirms: Confirms | None, fallback: Delivery, lost: Refused) -> Delivery:
    """What became of a message that was sent: RabbitMQ says it of each."""
    if isinstance(answer, Refused):
        return answer
    if confirms is None or confirms.has(number):
        return fallback
    return Refused("RabbitMQ refused it") if confirms.is_refused(number) else lost


def _text(error: BaseException) -> str:
    said = str(error)
    if isinstance(error, ValueError) and any(word in said for word in _UNREADABLE):
        # urllib quotes what it took for the port, which is a part of the password where that has a "/" in it.
        return "its URL cannot be read: is the port a number, and are /, @, # and ? escaped in the password (%2F, %40)?"
    return f"{type(error).__name__}: {said}".strip(": ")
