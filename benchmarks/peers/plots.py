"""The plots of docs/benchmarks.md: `python -m benchmarks.peers.plots`, in an environment with matplotlib."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks.peers.results import RESULTS, Results, Subject

FOLDER = RESULTS.parent
_OURS, _OTHERS = "#0b6e99", "#b0b7bd"
_CAP_S = 60


def main() -> None:
    """Draw all, from the results."""
    mpl.rcParams.update(
        {
            "svg.hashsalt": "slotqueue",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    results = Results.load()
    _bars(
        results, "lateness", "Message behind its instant, a job each second, three replicas (median; line: p99), ms",
        lambda subject: _middle(subject, "second", "late p50"), lambda subject: _middle(subject, "second", "late p99"),
    )  # fmt: skip
    _bars(
        results, "burst", "10,000 jobs at one instant, three replicas: until the last is in the queue, s",
        lambda subject: _middle(subject, "burst 10,000", "seconds"), _never(_CAP_S),
    )  # fmt: skip
    _growth(results)


def _middle(subject: Subject, scenario: str, figure: str) -> float | None:
    values = subject.figures.get(scenario, {}).get(figure)
    return statistics.median(values) if values else None


def _never(cap: float) -> Callable[[Subject], float | None]:
    return lambda subject: cap if _middle(subject, "burst 10,000", "missing") else None


def _bars(
    results: Results,
    name: str,
    title: str,
    value: Callable[[Subject], float | None],
    edge: Callable[[Subject], float | None],
) -> None:
    subjects = [each for each in results.subjects.values() if value(each) is not None or edge(each) is not None]
    if not subjects:
        return
    figure, axes = plt.subplots(figsize=(7.5, 0.4 + 0.3 * len(subjects)), layout="constrained")
    for row, subject in enumerate(subjects):
        colour = _OURS if subject.name.startswith("slotqueue") else _OTHERS
        most, middle = edge(subject), value(subject)
        if middle is not None:
            axes.barh(row, max(middle, 0.02), color=colour)
            axes.text(
                max(middle, most or 0, 0.02) * 1.15,
                row,
                f"{middle:.2g}" if middle < 10 else f"{middle:.0f}",
                va="center",
            )
        elif most:
            axes.text(0.025, row, f"not all in {most:.0f} s", va="center", color="#a33")
        if most and middle is not None:
            axes.plot([middle, most], [row, row], color="#444", linewidth=1)
    axes.set_yticks(range(len(subjects)), [each.name for each in subjects])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(left=0.02)
    axes.set_title(title, loc="left", fontsize=9)
    _save(figure, name)


def _growth(results: Results) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for number, subject in enumerate(results.subjects.values()):
        ours = subject.name.startswith("slotqueue")
        wide = (
            {"linewidth": 2.5, "color": _OURS, "linestyle": "-" if number else "--"}
            if ours
            else {"color": f"C{number}"}
        )
        for axes, scenario, what in ((left, "growth of replicas", "commands "), (right, "growth of jobs", "cpu ")):
            found = subject.figures.get(scenario, {})
            points = {int(key.removeprefix(what)): values[0] for key, values in found.items() if key.startswith(what)}
            if scenario == "growth of jobs" and (cpu := _middle(subject, "idle", "cpu")) is not None:
                points[10_000] = cpu
            if len(points) > 1:
                axes.plot(*zip(*sorted(points.items()), strict=True), marker=".", label=subject.name, **wide)
    left.set(xlabel="replicas", xscale="log", yscale="log")
    left.set_title("Commands of the server for 1,000 jobs at one instant", loc="left", fontsize=9)
    right.set(xlabel="jobs", xscale="log", yscale="log")
    right.set_title("CPU of an idle replica, % of a core", loc="left", fontsize=9)
    if left.lines or right.lines:
        handles, labels = (left if left.lines else right).get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=7, frameon=False, loc="outside right upper")
    _save(figure, "growth")


def _save(figure: plt.Figure, name: str) -> None:
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
