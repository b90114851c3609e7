"""Reports of run folders: what is told, what is refused, what is drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run, manifest, sample
from matplotlib.container import ErrorbarContainer

from semanticspec.errors import UserError
from semanticspec.reporting import figures, table
from semanticspec.reporting.__main__ import main
from semanticspec.reporting.runs import gather

PROBLEMS = {"a": 1.0, "b": 2.0, "c": 4.0}


def make(results: Path, method: str, *, slower: float = 1.0, seed: int = 0, **about: Any) -> Path:
    """A run on every problem; autoregressive's times are the problems'."""
    made = [
        sample(problem, seed=seed, wall_s=slower * seconds, n_tokens=int(100 * seconds))
        for problem, seconds in PROBLEMS.items()
    ]
    return make_run(results, manifest(method, seed=seed, **about), made)


def test_it_prints_and_writes_tables_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "runs", "autoregressive")
    make(tmp_path / "runs", "specsampling", slower=0.5)
    out = tmp_path / "new" / "out"
    assert main([str(tmp_path / "runs"), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "toy / sums" in printed
    assert "2.00" in printed
    assert {file.name for file in out.iterdir()} == {
        *("main_table.md", "main_table.csv"),
        *("accuracy_speedup.png", "accuracy_speedup.pdf", "time_split.png", "time_split.pdf"),
    }
    assert all(str(file) in printed for file in out.iterdir())
    assert (out / "accuracy_speedup.png").read_bytes().startswith(b"\x89PNG")


def test_by_default_it_writes_beside_what_it_reads(tmp_path: Path) -> None:
    folders = [str(make(tmp_path, "autoregressive")), str(make(tmp_path, "draft_only"))]
    assert main(folders) == 0
    assert (tmp_path / "main_table.md").exists()


@pytest.mark.parametrize("where", ["nowhere", "empty", "unfinished"])
def test_nothing_to_report_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    (tmp_path / "empty").mkdir()
    make_run(tmp_path / "unfinished", manifest(), [])
    assert main([str(tmp_path / where)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert where in printed.err


def test_an_unwritable_place_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    folder = make(tmp_path / "runs", "autoregressive")
    assert main([str(folder), "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.startswith("reporting: --out")


@pytest.mark.parametrize("method", ["autoregressive", "draft_only"])
@pytest.mark.parametrize("seed", [0, 1])
def test_other_settings_are_not_mixed(tmp_path: Path, method: str, seed: int) -> None:
    # Neither in one row, whatever the seed, nor as a baseline of another row.
    make(tmp_path, "autoregressive")
    make(tmp_path, method, seed=seed, settings={"generation": {"temperature": 0.0, "top_p": 1.0}})
    with pytest.raises(UserError, match=r"generation.temperature: 0.* and 0") as error:
        gather([tmp_path])
    assert "\n" not in str(error.value)


def test_seeds_of_one_configuration_are_pooled(tmp_path: Path) -> None:
    for seed in (0, 1):
        make(tmp_path, "autoregressive", seed=seed)
        make(tmp_path, "draft_only", seed=seed, slower=0.25)
    report = gather([tmp_path])
    (comparison,) = report.comparisons
    assert [(r.method, r.summary.n, r.summary.n_paired) for r in comparison.results] == [
        ("autoregressive", 6, 6),
        ("draft_only", 6, 6),
    ]
    assert [len(r.hashes) for r in comparison.results] == [2, 2]
    assert not report.notes


def test_models_and_benchmarks_are_kept_apart_and_methods_in_order(tmp_path: Path) -> None:
    for model in ("one", "two"):
        for method in ("zeta", "random_accept", "semanticspec", "autoregressive"):
            make(tmp_path, method, model=model)
    make(tmp_path, "autoregressive", benchmark="words")
    report = gather([tmp_path])
    assert [(c.model, c.benchmark) for c in report.comparisons] == [
        ("one", "sums"),
        ("toy", "words"),
        ("two", "sums"),
    ]
    methods = [result.method for result in report.comparisons[0].results]
    assert methods == ["autoregressive", "semanticspec", "random_accept", "zeta"]


def test_no_baseline_no_speedup_and_a_note(tmp_path: Path) -> None:
    make(tmp_path, "specsampling")
    report = gather([tmp_path])
    assert report.notes == ("toy / sums: no autoregressive run, so no speedup and no length ratio",)
    assert f"| {table.MISSING} |" in table.markdown(report).replace("  ", " ").replace("  ", "")
    assert "speedup" not in table.text(report, width=200).splitlines()[2]
    assert [file.stem for file in figures.write(report, tmp_path)] == ["time_split"] * 2


def test_a_baseline_on_fewer_problems_is_told(tmp_path: Path) -> None:
    make_run(tmp_path, manifest(), [sample("a")])
    make(tmp_path, "specsampling")
    (note,) = gather([tmp_path]).notes
    assert "specsampling has autoregressive beside it on 1 of 3 samples" in note


def test_times_of_different_launches_are_told(tmp_path: Path) -> None:
    make(tmp_path, "autoregressive", process="monday")
    make(tmp_path, "specsampling", process="tuesday")
    (note,) = gather([tmp_path]).notes
    assert "timed in different launches on 3 of 3 samples" in note


def test_a_sample_that_was_made_twice_counts_once(tmp_path: Path) -> None:
    make(tmp_path / "one", "autoregressive")
    make(tmp_path / "two", "autoregressive")
    report = gather([tmp_path])
    assert report.comparisons[0].results[0].summary.n == 3
    assert "3 samples made more than once" in report.notes[0]


def test_a_narrow_terminal_gets_a_narrow_table(tmp_path: Path) -> None:
    make(tmp_path, "autoregressive")
    make(tmp_path, "specsampling", slower=2.0)
    report = gather([tmp_path])
    wide, narrow = table.text(report, width=200), table.text(report, width=80)
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines()))
    assert "0.50" in narrow


def test_each_benchmark_has_a_panel_and_each_method_its_own_marker(tmp_path: Path) -> None:
    for benchmark in ("sums", "words", "proofs"):
        for method in ("autoregressive", "specsampling", "semanticspec", "unheard_of"):
            make(tmp_path, method, benchmark=benchmark, slower=0.8)
    comparisons = gather([tmp_path]).comparisons
    figure = figures.accuracy_speedup(comparisons)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == ["proofs", "sums", "words"]
    points = [c[0] for c in panels[0].containers if isinstance(c, ErrorbarContainer)]
    assert len({point.get_marker() for point in points}) == 4
    x, y = (float(values[0]) for values in points[0].get_data())
    assert (x, y) == pytest.approx((1.0, 100.0))
    assert len(figure.legends) == 1
    assert len(figures.METHOD_STYLES) == len(set(figures.METHOD_STYLES.values()))


def test_reporting_needs_no_torch() -> None:
    code = "import semanticspec.reporting.__main__, sys; sys.exit('torch' in sys.modules)"
    paths = {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "MPLBACKEND": "Agg"}
    assert subprocess.run([sys.executable, "-c", code], env=paths, check=False).returncode == 0
