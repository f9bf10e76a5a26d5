"""Publisher confirms for a batch: RabbitMQ says of each message that it has it, and all are waited for at once.

kombu's own `confirm_publish` waits after each message, one round trip each. Here the messages of a batch go out one
after the other, and their confirms are counted when all are out.
"""

from __future__ import annotations

from time import monotonic
from typing import Any


class Confirms:
    """The confirms of one AMQP channel; everything that is published on it counts.

    Args:
        channel: just opened, of py-amqp.
    """

    def __init__(self, channel: Any) -> None:  # noqa: ANN401 - kombu is untyped
        self._channel = channel
        self._publish = channel.basic_publish
        self._open: set[int] = set()
        self._refused: set[int] = set()
        self.newest = 0
        """The number of the message that was published last."""
        channel.confirm_select()
        channel.events["basic_ack"].add(self._hear_ack)
        channel.events["basic_nack"].add(self._hear_nack)
        channel.basic_publish = self._count

    def wait(self, seconds: float) -> None:
        """Wait until nothing is open any more, or for as long as that.

        Raises:
            OSError, TimeoutError: the broker is silent, or gone.
        """
        until = monotonic() + seconds
        while self._open:
            left = until - monotonic()
            if left <= 0:
                raise TimeoutError("the broker confirmed only some of the messages in time")
            self._channel.connection.drain_events(timeout=left)

    def has(self, number: int) -> bool:
        """Whether the broker has said that it has this message."""
        return number not in self._open and number not in self._refused

    def is_refused(self, number: int) -> bool:
        """Whether it has said that it has not."""
        return number in self._refused

    def forget(self) -> None:
        """Begin a new batch."""
        self._open.clear()
        self._refused.clear()

    def _count(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        answer = self._publish(*args, **kwargs)
        self.newest += 1
        self._open.add(self.newest)
        return answer

    def _hear_ack(self, number: int, multiple: bool) -> None:  # noqa: FBT001 - as py-amqp calls it
        self._open -= self._meant(number, multiple=multiple)

    def _hear_nack(self, number: int, multiple: bool) -> None:  # noqa: FBT001
        meant = self._meant(number, multiple=multiple)
        self._refused |= meant
        self._open -= meant

    def _meant(self, number: int, *, multiple: bool) -> set[int]:
        return {each for each in self._open if each <= number} if multiple else {number}
