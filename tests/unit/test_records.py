"""Records on disk: whole lines, nothing repeated, nothing lost, nothing mixed."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from made_runs import make_run, manifest, sample

from semanticspec import records
from semanticspec.errors import UserError
from semanticspec.records.manifest import git_state
from semanticspec.types import Counts, SampleRecord, Step


def read_back(line: str) -> SampleRecord:
    values = json.loads(line)
    values.pop("process")
    values["steps"] = tuple(Step(**step) for step in values["steps"])
    values["counts"] = Counts(**values["counts"])
    return SampleRecord(**values)


def samples_file(folder: Path) -> Path:
    return folder / "samples.jsonl"


def test_a_line_reads_back_as_the_record_it_was(tmp_path: Path) -> None:
    # Line ends of Unicode's own are text, not ends of records.
    text = "one\n\ntwo\r\nthree\u2028four\x85five\x0bsix → ≥ 7"
    steps = (
        Step("target", text, 5),
        Step("target", "again", 3, False, 0.25, 0.5, "dropped\u2029", 4),
    )
    first = replace(sample("a", steps=steps, n_steps_proposed=1), text=text, metadata={"level": 3})
    second = sample("b", error="RuntimeError: out of luck")
    folder = make_run(tmp_path, manifest(), [first, second])
    lines = samples_file(folder).read_bytes().decode("utf-8").split("\n")
    assert [read_back(line) for line in lines[:-1]] == [first, second]
    assert lines[-1] == ""
    with records.open_run(tmp_path, manifest()) as store:
        assert store.done() == {("a", 0), ("b", 0)}
    assert records.load(folder)["text"].iloc[0] == text


def test_loaded_samples_carry_their_runs_names_counts_and_phases(tmp_path: Path) -> None:
    made = sample("a", wall_s=2.0, n_tokens=9, phase_s={"draft": 0.5}, n_target_passes=4)
    folder = make_run(tmp_path, manifest("specsampling", seed=3), [made])
    row = records.load(str(tmp_path)).iloc[0]
    assert (row["model"], row["method"], row["benchmark"]) == ("toy", "specsampling", "sums")
    assert (row["run"], row["process"]) == (folder.name, "launch-1")
    assert (row["n_tokens"], row["n_target_passes"]) == (9, 4)
    assert (row["draft_s"], row["target_s"], row["wall_s"]) == (0.5, 1.5, 2.0)


def test_a_sample_keeps_the_launch_that_made_it(tmp_path: Path) -> None:
    make_run(tmp_path, manifest(process="monday"), [sample("a")])
    make_run(tmp_path, manifest(process="tuesday"), [sample("b")])
    assert list(records.load(tmp_path)["process"]) == ["monday", "tuesday"]


def test_a_torn_last_line_is_cut_off_and_only_that(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_run(tmp_path, manifest(), [sample("a"), sample("b")])
    whole = samples_file(folder).read_bytes()
    torn = '{"problem_id": "c", "text": "→ and'.encode()[:30]
    assert torn.endswith(b"\xe2")  # inside a character
    samples_file(folder).write_bytes(whole + torn)
    assert len(records.load(folder)) == 2  # reading repairs nothing and trips over nothing
    assert samples_file(folder).read_bytes() == whole + torn
    with caplog.at_level(logging.WARNING), records.open_run(tmp_path, manifest()) as store:
        assert store.done() == {("a", 0), ("b", 0)}
        store.append(sample("c"))
    assert "torn last line of 30 bytes" in caplog.text
    assert samples_file(folder).read_bytes().startswith(whole)
    assert list(records.load(folder)["problem_id"]) == ["a", "b", "c"]


def test_what_is_not_json_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    with records.open_run(tmp_path, manifest()) as store:
        with pytest.raises(ValueError, match="JSON"):
            store.append(sample("a", wall_s=float("nan")))
        store.append(sample("a"))
    assert len(records.load(tmp_path)) == 1


def test_no_sample_is_recorded_twice(tmp_path: Path) -> None:
    with records.open_run(tmp_path, manifest()) as store:
        store.append(sample("a", error="ValueError: bad luck"))
        with pytest.raises(ValueError, match="on record already"):
            store.append(sample("a"))
        store.append(sample("a", seed=1))
    assert len(records.load(tmp_path)) == 2


def test_another_configuration_has_another_folder_and_no_hits(tmp_path: Path) -> None:
    first = make_run(tmp_path, manifest(), [sample("a")])
    others = [manifest(seed=1), manifest(model="other"), manifest("draft_only")]
    others.append(manifest(settings={"generation": {"temperature": 0.0}}))
    for other in others:
        with records.open_run(tmp_path, other) as store:
            assert store.folder != first
            assert store.done() == set()


def test_a_folder_of_another_configuration_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path, manifest(), [sample("a")])
    written = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(written | {"config_hash": "feedbeef"}))
    before = samples_file(folder).read_bytes()
    with pytest.raises(UserError, match=r"another configuration \(feedbeef\)"):
        records.open_run(tmp_path, manifest())
    assert samples_file(folder).read_bytes() == before


def test_simultaneous_launches_have_folders_of_their_own(tmp_path: Path) -> None:
    with records.open_run(tmp_path, manifest()) as first:
        first.append(sample("a"))
        with records.open_run(tmp_path, manifest()) as second:
            assert second.folder.name == first.folder.name + "-2"
            assert second.done() == set()
            with records.open_run(tmp_path, manifest()) as third:
                assert third.folder.name == first.folder.name + "-3"
    with records.open_run(tmp_path, manifest()) as again:
        assert again.folder == first.folder
        assert again.done() == {("a", 0)}


def test_the_manifest_tells_the_run(tmp_path: Path) -> None:
    about = manifest()
    with records.open_run(tmp_path, about) as store:
        running = records.load_manifest(store.folder)
    assert running == asdict(about)
    ended = records.load_manifest(store.folder)
    assert ended.pop("ended") >= ended["started"]
    with records.open_run(tmp_path, replace(about, started="2027-01-01", git={"sha": "other"})):
        pass
    again = records.load_manifest(store.folder)
    assert (again["started"], again["git"]) == (about.started, about.git)


def test_git_that_is_missing_is_told_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert git_state() == {"sha": None, "dirty": None}


def test_damaged_files_are_told_in_one_line(tmp_path: Path) -> None:
    folder = make_run(tmp_path, manifest(), [sample("a"), sample("b")])
    text = samples_file(folder).read_text(encoding="utf-8")
    samples_file(folder).write_text(text.replace("{", "[", 1), encoding="utf-8")
    with pytest.raises(UserError, match=r"samples.jsonl: line 1 is not JSON"):
        records.load(folder)
    for damage in ('{"schema": 1', '{"schema": 0}', "[]"):
        (folder / "manifest.json").write_text(damage, encoding="utf-8")
        with pytest.raises(UserError, match=r"manifest.json: "):
            records.open_run(tmp_path, manifest())


def test_folders_that_are_not_there_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        records.load(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        records.open_run(tmp_path / "file", manifest())


WRITER = """
import sys, time
from pathlib import Path
from made_runs import manifest, sample
from semanticspec import records
with records.open_run(Path(sys.argv[1]), manifest()) as store:
    for number in range(1000):
        if (str(number), 0) not in store.done():
            store.append(sample(str(number)))
            time.sleep(0.01)
"""


def test_kill_minus_9_loses_nothing_and_frees_the_folder(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent / "src")])
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}
    )
    deadline = time.monotonic() + 60
    while sum(f.read_bytes().count(b"\n") for f in tmp_path.glob("*/samples.jsonl")) < 3:
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.01)
    (folder,) = tmp_path.iterdir()
    with records.open_run(tmp_path, manifest()) as beside:  # the child's folder is taken
        assert beside.folder.name == folder.name + "-2"
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = list(records.load(folder)["problem_id"])
    assert len(kept) >= 3
    assert kept == [str(number) for number in range(len(kept))]
    with records.open_run(tmp_path, manifest()) as store:
        assert store.folder == folder
        assert store.done() == {(problem, 0) for problem in kept}
        assert records.load_manifest(folder)["ended"] is None
        store.append(sample("new"))
    assert list(records.load(folder)["problem_id"]) == [*kept, "new"]
