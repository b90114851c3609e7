"""The main table: as Markdown for people, as CSV for programs, and as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, fields

import pandas as pd
from tabulate import tabulate

from ..metrics.summary import StepTheory, Summary
from ..metrics.uncertainty import Estimate
from .runs import Comparison, Report, Run

MISSING = "–"  # noqa: RUF001
ABOUT = ("model", "benchmark", "method")
LEGEND = (
    "Brackets hold 95 % intervals over problems. *speedup*: autoregressive's seconds over the "
    "method's, on the same problems and seeds; below 1 the method is slower. *length ratio*: its "
    "tokens over autoregressive's. *tokens a pass*: of the target. *cut off*: no answer, because "
    "the text reached its limit."
)
THEORY_LEGEND = (
    "Speedup a token, predicted as 1 / (c + v/L + 1 - a). *c*: the draft's seconds a token, *v*: "
    "seconds to read and judge a step, both in the target's seconds a token. *L*: tokens a "
    "proposed step. *a*: share of steps accepted. It pays only if a > c + v/L. The prediction "
    "leaves out the prompt, and what the target always writes (first steps, answer)."
)


def _number(value: float | None, digits: int, scale: float = 1.0) -> str:
    return MISSING if value is None or math.isnan(value) else f"{scale * value:.{digits}f}"


def _interval(estimate: Estimate | None, digits: int, scale: float = 1.0) -> str:
    """``1.23 [1.10, 1.35]``; without brackets where nothing is uncertain, or nothing is known."""
    if estimate is None:
        return MISSING
    text = _number(estimate.value, digits, scale)
    if math.isnan(estimate.low) or estimate.low == estimate.high:
        return text
    low, high = (_number(side, digits, scale) for side in (estimate.low, estimate.high))
    return f"{text} [{low}, {high}]"


# A line break in a header is for the terminal.
COLUMNS: dict[str, Callable[[Summary], str]] = {
    "n": lambda s: str(s.n),
    "pass@1\n%": lambda s: _interval(s.pass_at_1, 1, 100),
    "seconds\na problem": lambda s: _number(s.seconds_per_problem.value, 3),
    "speedup": lambda s: _interval(s.speedup, 2),
    "length\nratio": lambda s: _number(s.length_ratio and s.length_ratio.value, 2),
    "ms a\ntoken": lambda s: _number(s.ms_per_token, 2),
    "tokens\na second": lambda s: _number(s.tokens_per_second, 1),
    "steps\naccepted %": lambda s: _number(s.step_acceptance_rate, 1, 100),
    "tokens\naccepted %": lambda s: _number(s.token_acceptance_rate, 1, 100),
    "tokens\na pass": lambda s: _number(s.block_efficiency, 2),
    "by draft\n%": lambda s: _number(s.draft_share, 1, 100),
    "cut off\n%": lambda s: _number(s.truncation_rate, 1, 100),
    "failed": lambda s: str(s.n_failed),
}
NARROW = ("method", "pass@1\n%", "speedup", "length\nratio", "ms a\ntoken", "cut off\n%")
THEORY: dict[str, Callable[[StepTheory], str]] = {
    "c": lambda t: _number(t.c, 2),
    "v": lambda t: _number(t.v, 1),
    "L": lambda t: _number(t.step_length, 1),
    "a": lambda t: _number(t.a, 2),
    "predicted": lambda t: _number(t.speedup, 2),
    "measured": lambda t: _number(t.measured, 2),
    "most lost in": lambda t: {"c": "drafting", "v/L": "verifying", "1 - a": "rejecting"}[
        max(t.terms, key=lambda name: t.terms[name])
    ],
}
Rows = list[list[str]]


def _cells(comparison: Comparison) -> Rows:
    return [
        [result.method, *(cell(result.summary) for cell in COLUMNS.values())]
        for result in comparison.results
    ]


def limits(report: Report) -> Rows:
    """What limits each step-level method: its costs, and the speedup a token that follows."""
    return [
        [
            comparison.model,
            comparison.benchmark,
            result.method,
            *(cell(result.theory) for cell in THEORY.values()),
        ]
        for comparison in report.comparisons
        for result in comparison.results
        if result.theory is not None
    ]


def _github(headers: list[str], rows: Rows) -> str:
    """A Markdown table: model, benchmark and method to the left, numbers to the right."""
    return tabulate(
        rows,
        [header.replace("\n", " ") for header in headers],
        tablefmt="github",
        disable_numparse=True,
        colalign=["left" if header in ABOUT else "right" for header in headers],
    )


def markdown(report: Report) -> str:
    """The whole document: table, what limits the step-level methods, notes, and the runs."""
    rows = [
        [comparison.model, comparison.benchmark, *cells]
        for comparison in report.comparisons
        for cells in _cells(comparison)
    ]
    parts = [_github([*ABOUT, *COLUMNS], rows), LEGEND]
    limited = limits(report)
    if limited:
        parts += [
            "**What limits the step-level methods**",
            _github([*ABOUT, *THEORY], limited),
            THEORY_LEGEND,
        ]
    if report.notes:
        parts += ["**Notes**", _bullets(report.notes)]
    parts += ["**Made from**", _bullets(_origins(report.runs))]
    return "\n\n".join(parts) + "\n"


def text(report: Report, width: int) -> str:
    """A table a benchmark for a terminal; fewer columns where ``width`` does not hold all."""
    parts = []
    for comparison in report.comparisons:
        headers, rows = ["method", *COLUMNS], _cells(comparison)
        table = _plain(headers, rows)
        if len(table.partition("---")[0].splitlines()[0]) > width:
            kept = [headers.index(header) for header in NARROW]
            table = _plain(list(NARROW), [[row[i] for i in kept] for row in rows])
        parts += [f"{comparison.model} / {comparison.benchmark}", table]
    limited = limits(report)
    if limited:
        headers = [*ABOUT, *(key.replace(" ", "\n", 1) for key in THEORY)]
        first = 0 if len({row[0] for row in limited}) > 1 else 1
        parts += [
            "Step by step, speedup a token = 1 / (c + v/L + 1 - a)",
            _plain(headers[first:], [row[first:] for row in limited]),
        ]
    if report.notes:
        parts.append(_bullets(report.notes))
    return "\n\n".join(parts)


def _plain(headers: list[str], rows: Rows) -> str:
    """Numbers to the right; columns in which no row has anything are left out."""
    columns = [
        (header, column)
        for header, column in zip(headers, zip(*rows, strict=True), strict=True)
        if set(column) != {MISSING}
    ]
    return tabulate(
        list(zip(*(column for _, column in columns), strict=True)),
        [header for header, _ in columns],
        disable_numparse=True,
        colalign=["left" if header in ABOUT else "right" for header, _ in columns],
    )


def csv(report: Report) -> str:
    """Unrounded; an interval becomes three columns, a share stays between 0 and 1."""
    rows = []
    for comparison in report.comparisons:
        for result in comparison.results:
            row: dict[str, object] = {
                "model": comparison.model,
                "benchmark": comparison.benchmark,
                "method": result.method,
            }
            for field in fields(Summary):
                value = getattr(result.summary, field.name)
                if "Estimate" in str(field.type):
                    estimate = value or Estimate(math.nan, math.nan, math.nan)
                    for suffix, number in asdict(estimate).items():
                        row[field.name + ("" if suffix == "value" else f"_{suffix}")] = number
                else:
                    row[field.name] = value
            for name in ("c", "v", "step_length", "a"):
                row[name] = getattr(result.theory, name, None)
            row["config_hash"] = " ".join(result.hashes)
            rows.append(row)
    return pd.DataFrame(rows).to_csv(index=False)


def _origins(runs: tuple[Run, ...]) -> list[str]:
    """When, from which code and on which machine the runs were made, those alike in one line."""
    made: dict[str, list[str]] = {}
    for run in runs:
        git, machine = run.manifest["git"], run.manifest["hardware"]
        code = f"commit {git['sha'][:8]}" if git["sha"] else "no commit known"
        if git["dirty"]:
            code += " with changes"
        devices = ", ".join([f"{machine['n_threads']} threads", *machine["accelerators"]])
        origin = f"{run.manifest['started'][:10]}, {code}, {machine['cpu']}, {devices}"
        made.setdefault(origin, []).append(f"`{run.folder.name}`")
    return [f"{origin}: {', '.join(names)}" for origin, names in made.items()]


def _bullets(lines: list[str] | tuple[str, ...]) -> str:
    return "\n".join(f"- {line}" for line in lines)
