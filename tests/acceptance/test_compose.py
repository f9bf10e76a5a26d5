"""`docker-compose.yml` without Docker: it fits the specification, and its commands work together as local processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
from ruamel.yaml import YAML

from tests.acceptance.test_examples import needs
from tests.acceptance.test_readme import BIN, Printing
from tests.fleet.fleet import eventually
from tests.rabbitmq import RabbitMQ
from tests.servers import Server, free_port

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
FOLDER = ROOT / "examples" / "compose"


class Service(NamedTuple):
    """A service that runs slotqueue's image."""

    name: str
    command: list[str]
    environment: dict[str, str]
    health: list[str]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(FILE)
    return found


def ours() -> dict[str, Service]:
    """The services of our own image, by name."""
    image = (ROOT / "Dockerfile").read_text()
    checked = re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", image, re.MULTILINE)
    health = YAML(typ="safe").load(checked[1]) if checked else []
    found = {}
    for name, said in compose()["services"].items():
        if said.get("build") == ".":
            is_checked = not said.get("healthcheck", {}).get("disable")
            found[name] = Service(name, said["command"], said["environment"], health if is_checked else [])
    return found


def test_it_fits_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_three_tickers_and_more_may_be_asked_for() -> None:
    services = compose()["services"]
    assert services["ticker"]["deploy"]["replicas"] == 3
    assert {"redis", "rabbitmq", "arq-worker", "celery-worker"} < services.keys()
    for name, said in services.items():
        assert "container_name" not in said, f"{name} could not be scaled"
        for port in said.get("ports", []):
            is_one = not re.search(r"\d-\d", str(port))
            assert not (is_one and name in ours()), f"{name}: a second one would find the port taken"


def test_workers_come_first_and_servers_before_them() -> None:
    services = compose()["services"]
    assert {"arq-worker", "celery-worker"} <= services["ticker"]["depends_on"].keys()
    for name in ("arq-worker", "celery-worker"):
        for needed, how in services[name]["depends_on"].items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in services[needed]


def test_every_image_of_others_has_a_version() -> None:
    for name, said in compose()["services"].items():
        if "build" not in said:
            assert re.search(r":v?\d", said["image"]), name


def test_the_image_is_built_from_what_is_there_and_runs_as_nobody_special() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    last = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    (user,) = (line.split()[1] for line in last if line.startswith("USER "))
    assert user.partition(":")[0] not in {"0", "root"}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored, f"{source} is not sent to the builder"


@pytest.fixture
def addresses(server: Server, redis_url: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Where on loopback a service of the file is, by "host:port"."""
    del redis_url  # it empties the server
    needs("arq")
    needs("celery")
    rabbitmq: RabbitMQ = request.getfixturevalue("rabbitmq")
    return {"redis:6379": server.url.split("/")[2], "rabbitmq:5672": f"127.0.0.1:{rabbitmq.port}"}


def here(text: str, addresses: dict[str, str]) -> str:
    """A text of the file, with every host on loopback and every port of its own free here."""
    for there, address in addresses.items():
        text = text.replace(there, address)
    if found := re.fullmatch(r"0\.0\.0\.0:(\d+)", text):
        text = addresses.setdefault(f"ours:{found[1]}", f"127.0.0.1:{free_port()}")
    return text


def start(service: Service, addresses: dict[str, str]) -> Printing:
    environment = {name: here(value, addresses) for name, value in service.environment.items()}
    program, *words = service.command
    command = [str(BIN / program), *(here(word, addresses) for word in words)]
    return Printing(command, FOLDER, {**os.environ, **environment, "SLOTQUEUE_APP": "app:slots"})


@pytest.mark.processes
@pytest.mark.timeout(180)  # RabbitMQ takes its time to start
async def test_its_commands_bring_slots_to_their_end_in_both_worker_systems(addresses: dict[str, str]) -> None:
    services, started = ours(), dict[str, Printing]()
    try:
        for name in ("celery-worker", "arq-worker"):
            started[name] = start(services[name], addresses)
        started["celery-worker"].await_line("enlisted, ")
        started["arq-worker"].await_line("Starting worker")
        started["ticker"] = start(services["ticker"], addresses)
        started["ticker"].await_line("ready: 2 jobs")
        with redis.Redis.from_url(f"redis://{addresses['redis:6379']}/0", decode_responses=True) as client:

            def done() -> set[str]:
                ended: set[str] = set()
                for job in ("rollup", "mail"):
                    tails: Any = client.zrange(f"ran:{job}:slots", 0, -1)
                    states = [client.hget(f"ran:{job}:{tail}:record", "state") for tail in tails]
                    ended |= {job} if "done" in states else set()
                return ended

            await eventually(lambda: done() == {"rollup", "mail"}, within=30)
    finally:
        codes = {name: each.stop() for name, each in reversed(started.items())}
    assert set(codes.values()) == {0}, codes
