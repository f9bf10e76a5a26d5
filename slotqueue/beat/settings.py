"""What a Celery application says about slotqueue in its configuration.

- `slotqueue_url`: the coordinating Redis. Default: the broker, if it is Redis.
- `slotqueue_namespace`: begins every key and message id. Default "ran".
- `slotqueue_defaults`: the policy of entries that do not say otherwise: a `Policy`, or a dictionary of its fields.
  `on_crash` is "skip" unless it is said: what beat sends has never been repeated after a crash.

Under `config_from_object(..., namespace="CELERY")`, as Django projects do, they are `CELERY_SLOTQUEUE_URL` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from slotqueue.errors import ConfigurationError
from slotqueue.policy import Policy
from slotqueue.slots import DEFAULT_NAMESPACE, check_namespace
from slotqueue.store.connections import safe_url

_REDIS_SCHEMES = ("redis", "rediss", "unix")
_SET_IT = "set slotqueue_url to the URL of the Redis that all beats share, such as redis://host:6379/0"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one Celery application, checked."""

    url: str
    namespace: str
    defaults: Policy


def settings_of(app: Any) -> Settings:  # noqa: ANN401 - Celery is untyped
    """Read the settings of a Celery application.

    Raises:
        ConfigurationError: names the setting and what would be right.
    """
    namespace = _said(app, "slotqueue_namespace") or DEFAULT_NAMESPACE
    try:
        check_namespace(namespace)
    except ConfigurationError as error:
        raise ConfigurationError(error.problem, argument="slotqueue_namespace") from None
    return Settings(_url(app), namespace, _defaults(_said(app, "slotqueue_defaults")))


def _said(app: Any, name: str) -> Any:  # noqa: ANN401 - as above
    """The value of a setting that Celery does not know, whichever spelling the application uses."""
    value = app.conf.get(name)
    return app.conf.get(name.upper()) if value is None else value


def _url(app: Any) -> str:  # noqa: ANN401 - as above
    url = _said(app, "slotqueue_url")
    if url is not None:
        if not isinstance(url, str) or urlsplit(url).scheme not in _REDIS_SCHEMES:
            shown = safe_url(url) if isinstance(url, str) else repr(url)
            raise ConfigurationError(f"{shown} is no URL of a Redis; {_SET_IT}", argument="slotqueue_url")
        return url
    return _redis_of(app.conf.broker_write_url or app.conf.broker_url)


def _redis_of(broker: object) -> str:
    """The broker's URL in the form of redis-py.

    Raises:
        ConfigurationError: it is not one Redis.
    """
    if broker is None:
        raise ConfigurationError(f"the application names no broker; {_SET_IT}", argument="slotqueue_url")
    if not isinstance(broker, str) or ";" in broker:
        raise ConfigurationError(f"the application names several brokers; {_SET_IT}", argument="slotqueue_url")
    parts = urlsplit(broker)
    query = dict(parse_qsl(parts.query))
    if parts.scheme == "redis+socket":
        database = query.pop("virtual_host", "0").strip("/")
        return f"unix://{parts.netloc}{parts.path}?{urlencode({**query, 'db': database})}"
    if parts.scheme not in _REDIS_SCHEMES:
        raise ConfigurationError(
            f"the broker {safe_url(broker)} is no plain Redis; {_SET_IT}", argument="slotqueue_url"
        )
    if "ssl_cert_reqs" in query:  # Celery wants CERT_REQUIRED, redis-py wants required
        query["ssl_cert_reqs"] = query["ssl_cert_reqs"].removeprefix("CERT_").lower()
        parts = parts._replace(query=urlencode(query))
    return urlunsplit(parts)


def _defaults(said: object) -> Policy:
    if said is None:
        policy = Policy()
    elif isinstance(said, Policy):
        policy = said
    elif isinstance(said, Mapping):
        policy = policy_with(Policy(), said, argument="slotqueue_defaults")
    else:
        raise ConfigurationError(
            f'{said!r} is no policy; right is a dictionary such as {{"on_crash": "complete", "lookback": 0}}',
            argument="slotqueue_defaults",
        )
    return policy if policy.on_crash is not None else replace(policy, on_crash="skip")


def policy_with(policy: Policy, said: object, *, argument: str, entry: str | None = None) -> Policy:
    """Return a policy with the fields that a dictionary names.

    Raises:
        ConfigurationError: no dictionary, or a name that is no field of a policy.
    """
    if not isinstance(said, Mapping) or not all(isinstance(name, str) for name in said):
        raise ConfigurationError(
            f'{said!r} is no dictionary of policy fields such as {{"on_crash": "complete"}}',
            job=entry,
            argument=argument,
        )
    try:
        return policy.with_fields("", said)
    except ConfigurationError as error:
        raise ConfigurationError(error.problem, job=entry, argument=f"{argument}[{error.argument!r}]") from None
