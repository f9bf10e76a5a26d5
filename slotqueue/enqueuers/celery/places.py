"""Where messages go and where a worker listens, in texts without a password: `check` compares the two."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

_SHOWN = ("redis", "amqp")


def place_of(connection: Any) -> str:  # noqa: ANN401 - kombu is untyped
    """Say where a broker is: "host:port/database" or "host:port/virtual host"; "" where nobody can tell.

    Args:
        connection: kombu's; it need not be connected.
    """
    driver = getattr(connection.transport, "driver_type", "")
    if driver not in _SHOWN or connection.alt or "sentinel" in str(connection.transport_cls):
        return ""
    host = str(connection.hostname or "localhost")
    if host.startswith("socket://"):
        parts = urlsplit(host)
        return f"{parts.path}/{parse_qs(parts.query).get('virtual_host', ['0'])[0].strip('/')}"
    where, port = str(connection.virtual_host or "/"), connection.port or connection.info()["port"]
    return f"{host}:{port}/{where.strip('/') or '0' if driver == 'redis' else quote(where, safe='')}"


def queue_for(app: Any, task: str, options: dict[str, Any], args: Any, kwargs: Any) -> str | None:  # noqa: ANN401
    """The name of the queue that a message is sent to; None where an exchange decides that.

    Args:
        app: the Celery application, whose routes count.
        task: the task's name.
        options: as the message says them.
        args, kwargs: of the task; a router may look at them.
    """
    said = {name: options[name] for name in ("queue", "exchange", "routing_key") if options.get(name) is not None}
    if said and "queue" not in said:
        return None
    queue = app.amqp.router.route(said, task, args, dict(kwargs)).get("queue")
    return None if queue is None else str(queue.name)


def queues_listened_to(app: Any) -> list[str]:  # noqa: ANN401
    """The names of the queues that a worker of the application takes messages from."""
    return sorted(app.amqp.queues.consume_from)
