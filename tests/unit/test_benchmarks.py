"""Loading: files, fields, ids, golds, and one line for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import datasets
import datasets.exceptions
import pandas as pd
import pytest

from semanticspec.benchmarks import chain_problem, load
from semanticspec.config import BenchmarkConfig
from semanticspec.errors import UserError
from semanticspec.proxies.problems import BENCHMARKS
from semanticspec.types import Problem

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
ROWS = [{"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(6)]


@pytest.fixture
def local(tmp_path: Path) -> Callable[..., BenchmarkConfig]:
    """A configuration for a file with this content."""

    def make(content: str, name: str = "rows.jsonl", **fields: object) -> BenchmarkConfig:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        config = BenchmarkConfig(name="mine", kind="math", source="hub", path=str(path))
        return replace(config, **fields)  # type: ignore[arg-type]

    return make


def jsonl(rows: list[dict[str, object]] | list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def one_line(error: pytest.ExceptionInfo[UserError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


# --- synthetic


def synthetic(name: str, **fields: object) -> BenchmarkConfig:
    kind = "choice" if name == "chain_choice" else "math"
    return BenchmarkConfig(name=name, kind=kind, source="synthetic", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_synthetic_problems_know_their_truth(name: str) -> None:
    problems = load(synthetic(name, prompt_template="Solve: {problem}"), limit=20)
    assert len({p.id for p in problems}) == 20
    for problem in problems:
        stored = json.loads(json.dumps(problem.metadata))  # metadata must survive the records
        chain = chain_problem(replace(problem, metadata=stored))
        assert chain is not None and chain == chain_problem(problem)
        assert problem.prompt == "Solve: " + chain.text
        assert (problem.gold, chain.split) == (chain.answer, "test")
        assert problem.kind == ("choice" if name == "chain_choice" else "math")


def test_synthetic_problems_are_stable() -> None:
    config = synthetic("chain_long")
    problems = load(config)
    assert len(problems) == 500
    assert load(config, limit=7) == problems[:7]
    assert load(replace(config, skip=3), limit=4) == problems[3:7]
    other = load(replace(config, seed=1), limit=7)
    assert not {p.id for p in other} & {p.id for p in problems}
    assert not {p.prompt for p in other} & {p.prompt for p in problems[:7]}


def test_unknown_synthetic_names_are_told() -> None:
    with pytest.raises(UserError) as error:
        load(BenchmarkConfig(name="chain_lung", kind="math", source="synthetic"))
    assert "chain_lung" in one_line(error) and "chain_long" in one_line(error)
    with pytest.raises(UserError) as error:
        load(synthetic("chain_long", split="dev"))
    assert "benchmark.split=dev" in one_line(error)


def test_other_problems_have_no_chain() -> None:
    assert chain_problem(Problem("a", "b", "c")) is None


# --- local files


def test_the_formats_agree(local: Callable[..., BenchmarkConfig], tmp_path: Path) -> None:
    table = pd.DataFrame(ROWS)
    table.to_parquet(tmp_path / "rows.parquet")
    parquet = replace(local(""), path=str(tmp_path / "rows.parquet"))
    expected = [(row["problem"], row["answer"]) for row in ROWS]
    for config in (
        local(jsonl(ROWS)),
        local(json.dumps(ROWS), "rows.json"),
        local(table.to_csv(index=False), "rows.csv"),
        parquet,
    ):
        problems = load(config)
        assert [(p.prompt, p.gold) for p in problems] == expected
        assert load(config, limit=2) == problems[:2]


def test_relative_paths_start_at_the_working_directory(
    local: Callable[..., BenchmarkConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = local(jsonl(ROWS), path="rows.jsonl")
    monkeypatch.chdir(tmp_path)
    assert len(load(config)) == len(ROWS)


def test_values_stay_as_written(local: Callable[..., BenchmarkConfig]) -> None:
    assert load(local("problem,answer\na,025\nb,27.0\n", "r.csv"))[0].gold == "025"
    mixed = load(local(jsonl([{"problem": "a", "answer": 27.0}, {"problem": "b", "answer": 3}])))
    assert [p.gold for p in mixed] == ["27.0", "3"]
    separator = "line\u2028separator"
    written = json.dumps({"problem": separator, "answer": "1"}, ensure_ascii=False)
    assert load(local(written + "\n"))[0].prompt == separator


def test_fields_prompt_and_metadata(local: Callable[..., BenchmarkConfig]) -> None:
    row = {"q": "Is {x} a set?", "a": 1, "uid": "t/1", "level": 3, "solution": "long", "tags": []}
    config = local(
        jsonl([row]), problem_field="q", answer_field="a", id_field="uid",
        prompt_template="{problem}\nUse \\boxed{}.",
    )  # fmt: skip
    (problem,) = load(config)
    assert problem == Problem("t/1", "Is {x} a set?\nUse \\boxed{}.", "1", "math", {"level": 3})


def test_ids_by_content_do_not_move(local: Callable[..., BenchmarkConfig]) -> None:
    everything = load(local(jsonl(ROWS)))
    assert load(local(jsonl(ROWS[1:]))) == everything[1:]


def test_worked_solutions_are_reduced_to_their_value(local: Callable[..., BenchmarkConfig]) -> None:
    answer = "She pays 4 * 300 = $<<4*300=1200>>1,200.\n#### 1,200"
    assert load(local(jsonl([{"problem": "a", "answer": answer}])))[0].gold == "1,200"


def test_another_number_of_rows_is_worth_a_warning(
    local: Callable[..., BenchmarkConfig], caplog: pytest.LogCaptureFixture
) -> None:
    load(local(jsonl(ROWS), expected_rows=6), limit=2)
    assert not caplog.records
    load(local(jsonl(ROWS), expected_rows=7))
    assert "6 rows" in caplog.text and "7" in caplog.text


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        ("", "rows.jsonl", "no rows"),
        ("problem,answer\n", "rows.csv", "no rows"),
        ("{oops\n", "rows.jsonl", "not readable"),
        ('"text"\n', "rows.jsonl", "not an object"),
        ('{"problem": "a"}', "rows.json", "not a list"),
        ("PAR1 not really", "rows.parquet", "not readable"),
        ("a", "rows.txt", "unknown ending"),
        ('{"question": "a", "answer": "1"}\n', "rows.jsonl", "no field 'problem'"),
        ('{"problem": "a", "answer": null}\n', "rows.jsonl", "empty 'answer'"),
        ('{"problem": "a", "answer": "1"}\n' * 2, "rows.jsonl", "more than once"),
    ],
)
def test_bad_files_are_told_in_one_line(
    local: Callable[..., BenchmarkConfig], content: str, name: str, told: str
) -> None:
    with pytest.raises(UserError) as error:
        load(local(content, name))
    message = one_line(error)
    assert told in message
    assert "benchmark." in message


def test_a_missing_file_is_told(local: Callable[..., BenchmarkConfig]) -> None:
    with pytest.raises(UserError) as error:
        load(local("", path="nowhere.jsonl"))
    assert "benchmark.path=nowhere.jsonl: no such file" in one_line(error)


def test_skipping_everything_is_told(local: Callable[..., BenchmarkConfig]) -> None:
    with pytest.raises(UserError) as error:
        load(local(jsonl(ROWS), skip=6))
    assert "benchmark.skip" in one_line(error)


# --- the hub, without it

HUB = BenchmarkConfig(
    name="somebench", kind="math", source="hub", hub_name="some/bench",
    hub_config="main", split="test", revision="abc",
)  # fmt: skip


def test_the_hub_is_asked_for_the_pinned_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def load_dataset(*args: object, **kwargs: object) -> datasets.Dataset:
        asked.append((args, kwargs))
        return datasets.Dataset.from_list(ROWS)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert [p.gold for p in load(HUB, limit=2)] == ["1", "2"]
    assert asked == [(("some/bench", "main"), {"split": "test", "revision": "abc"})]


@pytest.mark.parametrize(
    "failure",
    [
        ConnectionError("Couldn't reach 'some/bench'\nwith details"),
        datasets.exceptions.DatasetNotFoundError("gated"),
        ValueError("Unknown split"),
        TimeoutError(),
    ],
)
def test_a_hub_out_of_reach_is_told(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    def load_dataset(*args: object, **kwargs: object) -> None:
        raise failure

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(UserError) as error:
        load(HUB)
    assert "benchmark.path=FILE" in one_line(error) and "some/bench" in one_line(error)


# --- the real files, where they are at hand


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("math_500.jsonl", {"id_field": "unique_id", "expected_rows": 500}),
        ("gsm8k_test.jsonl", {"problem_field": "question", "expected_rows": 1319}),
        ("aime_2024.jsonl", {"id_field": "id", "expected_rows": 30}),
        ("amc_2023.jsonl", {"id_field": "id", "expected_rows": 40}),
    ],
)
def test_real_files(file: str, fields: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
    if not (DATA / file).exists():
        pytest.skip(f"{file} is not at hand")
    config = BenchmarkConfig(name="real", kind="math", source="hub", path=str(DATA / file))
    problems = load(replace(config, **fields))  # type: ignore[arg-type]
    assert len(problems) == fields["expected_rows"] == len({p.id for p in problems})
    assert not caplog.records
    assert all("####" not in p.gold and p.gold for p in problems)


def test_loading_needs_no_torch() -> None:
    code = (
        "import sys, semanticspec.benchmarks, semanticspec.grading\n"
        "print([m for m in ('torch', 'transformers', 'datasets', 'sympy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
