"""`docker-compose.yml` without Docker: it fits the specification, and its commands work together as local processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
from ruamel.yaml import YAML

from tests.acceptance.test_examples import needs
from tests.acceptance.test_readme import BIN, Printing
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
    """What tells whether it is well."""


def compose() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(FILE)
    return found


def ours() -> dict[str, Service]:
    """The services of our own image, by name."""
    (checked,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    found = {}
    for name, said in compose()["services"].items():
        if said.get("build") == ".":
            health = said["healthcheck"]["test"][1:] if "healthcheck" in said else json.loads(checked)
            found[name] = Service(name, said["command"], said["environment"], health)
    return found


def test_it_fits_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_three_tickers_and_more_may_be_asked_for() -> None:
    services = compose()["services"]
    assert services["ticker"]["deploy"]["replicas"] == 3
    assert {"redis", "rabbitmq", "arq-worker", "celery-worker", "prometheus"} < services.keys()
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


def test_prometheus_scrapes_every_ticker_and_finds_its_files() -> None:
    services = compose()["services"]
    config = YAML(typ="safe").load(FOLDER / "prometheus.yml")
    (target,) = config["scrape_configs"][0]["dns_sd_configs"]
    assert target["names"] == ["ticker"]
    assert f"0.0.0.0:{target['port']}" in services["ticker"]["command"]
    mounted = dict(volume.split(":")[:2] for volume in services["prometheus"]["volumes"])
    assert all((ROOT / source).is_file() for source in mounted)
    assert {f"/etc/prometheus/{name}" for name in ["prometheus.yml", *config["rule_files"]]} == set(mounted.values())


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
    if found := re.fullmatch(r"(?:0\.0\.0\.0|127\.0\.0\.1):(9\d+)", text):
        text = addresses.setdefault(f"ours:{found[1]}", f"127.0.0.1:{free_port()}")
    return text


def command(words: list[str], addresses: dict[str, str]) -> list[str]:
    program, *rest = words
    return [str(BIN / program), *(here(word, addresses) for word in rest)]


def start(service: Service, addresses: dict[str, str]) -> Printing:
    environment = {name: here(value, addresses) for name, value in service.environment.items()}
    variables = {**os.environ, **environment, "SLOTQUEUE_APP": "app:slots"}
    return Printing(command(service.command, addresses), FOLDER, variables)


class Prometheus:
    """The server of the file's service with the file's configuration; the names of its targets are on loopback."""

    def __init__(self, folder: Path, targets: list[str]) -> None:
        mounted = dict(volume.split(":")[:2] for volume in compose()["services"]["prometheus"]["volumes"])
        for source, place in mounted.items():
            shutil.copy(ROOT / source, folder / Path(place).name)
        config = YAML(typ="safe").load(folder / "prometheus.yml")
        (scrape,) = config["scrape_configs"]
        del scrape["dns_sd_configs"]
        scrape["static_configs"] = [{"targets": targets}]
        YAML(typ="safe").dump(config, folder / "prometheus.yml")
        self.rules = YAML(typ="safe").load(folder / "slotqueue.rules.yml")["groups"][0]["rules"]
        place = f"127.0.0.1:{free_port()}"
        self._url = f"http://{place}/api/v1/"
        words = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        self._process = Printing([str(shutil.which("prometheus")), *words, f"--web.listen-address={place}"], folder)
        self._process.await_line("Server is ready")

    def ask(self, path: str, **words: str) -> Any:
        with urllib.request.urlopen(f"{self._url}{path}?{urllib.parse.urlencode(words)}", timeout=5) as answer:
            return json.load(answer)["data"]

    def await_value(self, query: str, value: str) -> None:
        """Wait until a query has this one value: each target is scraped every 5 s."""
        found: Any = None
        until = time.monotonic() + 60
        while found != [value]:
            assert time.monotonic() < until, f"{query}: {found}; targets: {self.ask('targets')['activeTargets']}"
            time.sleep(0.1)
            found = [sample["value"][1] for sample in self.ask("query", query=query)["result"]]

    def stop(self) -> int:
        return self._process.stop()


@pytest.mark.processes
@pytest.mark.timeout(180)  # RabbitMQ takes its time to start
def test_its_commands_bring_slots_to_their_end_in_both_worker_systems_and_prometheus_watches_every_ticker(
    addresses: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which("prometheus") is None:
        assert not os.environ.get("CI"), "prometheus is missing: Debian has it in the package prometheus"
        pytest.skip("prometheus is not on the PATH: Debian has it in the package prometheus")
    services, started = ours(), dict[str, Printing]()
    places = dict.fromkeys(("celery-worker", "arq-worker"), addresses)
    for number in range(compose()["services"]["ticker"]["deploy"]["replicas"]):
        places[f"ticker-{number}"] = addresses | {"ours:9100": f"127.0.0.1:{free_port()}"}
    tickers = [name for name in places if name.startswith("ticker")]
    prometheus = Prometheus(tmp_path, [places[name]["ours:9100"] for name in tickers])
    try:
        for name in ("celery-worker", "arq-worker"):
            started[name] = start(services[name], places[name])
        started["celery-worker"].await_line("enlisted, ", seconds=50)
        started["arq-worker"].await_line("Starting worker", seconds=50)
        started |= {name: start(services["ticker"], places[name]) for name in tickers}
        for name in tickers:
            started[name].await_line("ready: 2 jobs", seconds=50)
        await_done(f"redis://{addresses['redis:6379']}/0", "rollup", "mail")
        asked = {"celery-worker": "celery-worker", "arq-worker": "arq-worker", "ticker": tickers[0]}
        probes = [subprocess.Popen(command(services[name].health, places[place])) for name, place in asked.items()]
        assert [probe.wait(60) for probe in probes] == [0, 0, 0]
        prometheus.await_value("sum(up)", str(len(tickers)))
        prometheus.await_value("max(slotqueue_replicas)", str(len(tickers)))
        prometheus.await_value('max(slotqueue_slots_ended_total{job="rollup", outcome="done"} > bool 0)', "1")
        (group,) = prometheus.ask("rules")["groups"]
        assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for rule in prometheus.rules]
        assert [rule["name"] for rule in group["rules"] if rule.get("lastError") or rule["health"] == "err"] == []
    finally:
        for each in started.values():
            each.process.terminate()
        codes = {name: each.stop() for name, each in started.items()}
        codes["prometheus"] = prometheus.stop()
    assert set(codes.values()) == {0}, codes


def await_done(url: str, *jobs: str) -> None:
    """Wait until each job has a slot that is done."""
    states: dict[str, set[Any]] = {}
    until = time.monotonic() + 60
    with redis.Redis.from_url(url, decode_responses=True) as client:
        while not all("done" in states.get(job, ()) for job in jobs):
            assert time.monotonic() < until, states
            time.sleep(0.05)
            for job in jobs:
                tails: Any = client.zrange(f"ran:{job}:slots", 0, -1)
                states[job] = {client.hget(f"ran:{job}:{tail}:record", "state") for tail in tails}
