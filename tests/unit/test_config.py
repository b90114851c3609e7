"""Every choice of ``conf/`` composes; every mistake is one line that says how to mend it."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from semanticspec.compose import ROOT, compose, compose_probing
from semanticspec.config import METHODS, SemanticSpecConfig, as_json, config_hash
from semanticspec.errors import UserError


def choices(group: str) -> list[str]:
    return sorted(file.stem for file in (ROOT / "conf" / group).glob("*.yaml"))


@pytest.mark.parametrize(
    "override",
    [
        f"{group}={choice}"
        for group in ("model", "method", "benchmark", "tracker", "experiment")
        for choice in choices(group)
    ],
)
def test_every_choice_composes(override: str) -> None:
    config = compose([override])
    assert config.methods
    assert config.benchmarks


def test_the_methods_on_file_are_those_that_the_code_knows() -> None:
    assert choices("method") == sorted(METHODS)


def test_nothing_of_omegaconf_gets_through() -> None:
    def check(value: Any) -> None:
        assert not OmegaConf.is_config(value)
        if is_dataclass(value):
            for item in fields(value):
                check(getattr(value, item.name))
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                check(item)

    check(compose(["experiment=quickstart", "model.target.quantization={load_in_4bit: true}"]))
    check(compose_probing())


def test_one_method_and_one_benchmark_unless_a_recipe_names_several() -> None:
    alone = compose(["method=specsampling", "benchmark=chain_short"])
    assert list(alone.methods) == ["specsampling"]
    assert list(alone.benchmarks) == ["chain_short"]
    recipe = compose(["experiment=proxy_table", "methods.semanticspec.tau=0.7"])
    assert set(recipe.methods) == set(METHODS)
    assert [len(recipe.benchmarks), recipe.limit] == [4, 200]
    semantic = recipe.methods["semanticspec"]
    assert isinstance(semantic, SemanticSpecConfig)
    assert semantic.tau == 0.7


def test_a_model_brings_its_sampling_and_a_person_has_the_last_word() -> None:
    paper = compose(["model=qwq"]).generation
    assert (paper.temperature, paper.top_p, paper.max_new_tokens) == (0.6, 0.95, 14_000)
    assert compose(["model=qwq", "generation.temperature=0"]).generation.temperature == 0


def test_the_paper_pairs_are_pinned_and_have_no_system_prompt() -> None:
    for name in ("deepseek-r1", "qwq"):
        model = compose([f"model={name}"]).model
        for spec in (model.target, model.draft):
            assert spec.revision is not None
            assert len(spec.revision) == 40
            assert spec.system_prompt is None
            assert (spec.dtype, spec.think_prefix) == ("bfloat16", "<think>\n")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["fooo=1"], "fooo: no such key; choose one of benchmark, "),
        (["generation.temp=1"], "generation.temp: no such key; choose one of max_new_tokens, "),
        (["method.gamma=3"], "method.gamma: no such key; choose one of answer_by, "),
        (["method=nope"], "method=nope: no such choice; choose one of autoregressive, "),
        (["experiment=nope"], "experiment=nope: no such choice; choose one of proxy_table, "),
        (["x y"], "x y: not understood"),
        (["limit=few"], "limit: Value 'few' of type 'str' could not be converted"),
        (["limit=0"], "limit=0: must be 1 or more"),
        (["threads=0"], "threads=0: must be 1 or more"),
        (["method.tau=-0.1"], "method.tau=-0.1: must be 0 or more"),
        (["method.answer_by=me"], "method.answer_by=me: unknown; choose one of target, draft"),
        (["method=specsampling", "method.gamma=0"], "method.gamma=0: must be 1 or more"),
        (["method=random_accept", "method.rate=2"], "method.rate=2.0: must be from 0 to 1"),
        (["method.name=specsampling"], "method.name=specsampling: has other settings"),
        (["generation.temperature=-1"], "generation.temperature=-1.0: must be 0 or more"),
        (["generation.top_p=0"], "generation.top_p=0.0: must be above 0"),
        (["generation.top_p=1.1"], "generation.top_p=1.1: must be above 0"),
        (["generation.top_p=nan"], "generation.top_p=nan: must be above 0"),
        (["generation.top_k=-1"], "generation.top_k=-1: must be 0 or more"),
        (["generation.max_new_tokens=0"], "generation.max_new_tokens=0: must be 1 or more"),
        (["model.draft.quantization=4"], "model.draft.quantization=4: must be a mapping"),
        (["model.draft.dtype=int3"], "model.draft.dtype=int3: unknown; choose one of auto, "),
        (["benchmark.prompt_template=hello"], "benchmark.prompt_template: must contain {problem}"),
        (["benchmark=math500", "benchmark.hub_name=null"], "benchmark.hub_name: needed"),
        (["tracker.mode=loud"], "tracker.mode=loud: unknown; choose one of offline, online"),
        (["experiment=quickstart", "methods.semanticspec.tau=-1"], "methods.semanticspec.tau=-1.0"),
    ],
)
def test_a_mistake_is_one_clear_line(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        compose(overrides)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_mistakes_in_probing_too() -> None:
    with pytest.raises(UserError, match=r"^collect\.n_samples=1: must be 2 or more"):
        compose_probing(["collect.n_samples=1"])
    with pytest.raises(UserError, match=r"^judge=oracle: unknown; choose one of exact, numeric"):
        compose_probing(["judge=oracle"])


def test_probes_are_looked_for_here_first_then_beside_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert compose(["probe.path=mine"]).probe.path == "mine"
    assert Path(str(compose(["model=qwq"]).probe.path)) == Path("probes/qwq")
    (tmp_path / "probes" / "proxy").mkdir(parents=True)
    assert Path(str(compose().probe.path)) == Path("probes/proxy")


def test_settings_hash_by_content() -> None:
    one, same, other = compose(), compose(), compose(["method.tau=0.6"])
    assert config_hash(as_json(one)) == config_hash(as_json(same))
    assert config_hash(as_json(one)) != config_hash(as_json(other))
    turned = dict(reversed(asdict(one.generation).items()))
    assert config_hash(turned) == config_hash(asdict(one.generation))
    assert as_json(compose(["method.tau=inf"]).method)["tau"] == "Infinity"
