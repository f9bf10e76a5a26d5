"""What an application's configuration says, and what every wrong word in it is answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import celery
import pytest

from slotqueue import ConfigurationError, Policy
from slotqueue.beat.settings import Settings, settings_of


def app_with(broker: Any = "redis://broker:6379/1", **conf: Any) -> celery.Celery:
    app = celery.Celery(set_as_current=False)
    app.conf.update(broker_url=broker, **conf)
    return app


def refusal(**conf: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        settings_of(app_with(**conf))
    return str(caught.value)


def test_nothing_need_be_said_where_the_broker_is_redis() -> None:
    assert settings_of(app_with()) == Settings("redis://broker:6379/1", "ran", Policy(on_crash="skip"))


@pytest.mark.parametrize(
    "broker, url",
    [
        ("rediss://:secret@broker/2?ssl_cert_reqs=CERT_REQUIRED", "rediss://:secret@broker/2?ssl_cert_reqs=required"),
        ("redis+socket:///run/redis.sock?virtual_host=3", "unix:///run/redis.sock?db=3"),
        ("redis+socket:///run/redis.sock", "unix:///run/redis.sock?db=0"),
    ],
)
def test_the_brokers_url_is_said_in_the_words_of_redis_py(broker: str, url: str) -> None:
    assert settings_of(app_with(broker)).url == url


def test_what_is_said_counts() -> None:
    said = app_with(
        slotqueue_url="unix:///run/other.sock",
        slotqueue_namespace="billing",
        slotqueue_defaults={"on_crash": "complete", "lookback": 0},
    )
    expected = Settings("unix:///run/other.sock", "billing", Policy(on_crash="complete", lookback=0))
    assert settings_of(said) == expected


def test_a_crash_is_skipped_unless_it_is_said_otherwise() -> None:
    assert settings_of(app_with(slotqueue_defaults={"lookback": 1})).defaults == Policy(on_crash="skip", lookback=1)
    assert settings_of(app_with(slotqueue_defaults=Policy(coalesce=True))).defaults.on_crash == "skip"
    assert settings_of(app_with(slotqueue_defaults=Policy(on_crash="complete"))).defaults.on_crash == "complete"


def test_djangos_settings_have_a_prefix() -> None:
    django = SimpleNamespace(
        CELERY_BROKER_URL="amqp://broker",
        CELERY_SLOTQUEUE_URL="redis://here/4",
        CELERY_SLOTQUEUE_NAMESPACE="shop",
        CELERY_SLOTQUEUE_DEFAULTS={"on_crash": "complete"},
    )
    app = celery.Celery(set_as_current=False)
    app.config_from_object(django, namespace="CELERY")
    assert settings_of(app) == Settings("redis://here/4", "shop", Policy(on_crash="complete"))


def test_a_configuration_in_capitals_is_read_too() -> None:
    app = celery.Celery(set_as_current=False)
    app.config_from_object(SimpleNamespace(BROKER_URL="redis://here", SLOTQUEUE_NAMESPACE="shop"))
    assert settings_of(app).namespace == "shop"


SET_IT = "set slotqueue_url to the URL of the Redis that all beats share, such as redis://host:6379/0"


def test_a_broker_that_is_no_redis_needs_a_url_and_keeps_its_password() -> None:
    said = refusal(broker="amqp://user:secret@rabbit//")
    assert said == f"slotqueue_url: the broker amqp://user:***@rabbit// is no plain Redis; {SET_IT}"
    assert refusal(broker="sentinel://a:26379").endswith(SET_IT)


@pytest.mark.parametrize("broker", ["redis://a;redis://b", ["redis://a", "redis://b"]])
def test_several_brokers_need_a_url(broker: Any) -> None:
    assert refusal(broker=broker) == f"slotqueue_url: the application names several brokers; {SET_IT}"


@pytest.mark.parametrize("url, shown", [("http://:x@host", "http://:***@host"), (5, "5"), ("", "the given text")])
def test_a_url_that_is_no_redis_is_refused(url: Any, shown: str) -> None:
    assert refusal(slotqueue_url=url) == f"slotqueue_url: {shown} is no URL of a Redis; {SET_IT}"


def test_a_namespace_that_cannot_begin_a_key_is_refused() -> None:
    assert refusal(slotqueue_namespace="a:b").startswith("slotqueue_namespace: 'a:b' cannot begin a key; use 1 to 100")


def test_defaults_that_are_no_policy_are_refused() -> None:
    assert refusal(slotqueue_defaults=["skip"]).startswith(
        'slotqueue_defaults: [\'skip\'] is no policy; right is a dictionary such as {"on_crash": "complete"'
    )
    assert refusal(slotqueue_defaults={"on_crush": "skip"}).startswith(
        "slotqueue_defaults['on_crush']: there is no such argument; did you mean 'on_crash'?"
    )
    assert refusal(slotqueue_defaults={1: 2}).startswith("slotqueue_defaults: {1: 2} is no dictionary of policy fields")
