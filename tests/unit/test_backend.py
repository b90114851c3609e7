"""The engine against transformers' own generate and against fresh, uncached passes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from models import tiny_llama, tiny_model, tiny_sliding, word_tokenizer
from transformers import Qwen2Config, Qwen2ForCausalLM

from semanticspec.backends import HFModel, HFSequence, Need, Pair, StopRule
from semanticspec.backends.load import load_model
from semanticspec.config import ModelSpec
from semanticspec.sampling import Sampling, seeded

GREEDY = Sampling(temperature=0)
ALL_TEXT = StopRule(64, steps=False)


def fresh_logits(model: HFModel, ids: list[int]) -> torch.Tensor:
    """Next-token logits at every position, without a cache."""
    with torch.inference_mode():
        return model.model(input_ids=torch.tensor([ids]), use_cache=False).logits[
            0, :, : model.vocab_size
        ]


@pytest.mark.parametrize("seed", range(4))
def test_greedy_writing_equals_generate(seed: int) -> None:
    model = tiny_model(seed=seed)
    prompt = [seed % 5, 1, 2, 3]
    sequence = model.start_ids(prompt)
    written = sequence.write(ALL_TEXT, sampling=GREEDY, generator=seeded(0))
    ids = torch.tensor([prompt])
    wanted = model.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=64, do_sample=False
    )
    assert written.token_ids == wanted[0, len(prompt) :].tolist()


@settings(max_examples=40, deadline=None)
@given(
    actions=st.lists(
        st.tuples(
            st.sampled_from(["append", "forward", "all", "hidden", "write", "crop"]),
            st.integers(1, 6),
        ),
        max_size=12,
    ),
    seed=st.integers(0, 1_000),
)
def test_cache_always_equals_the_text(actions: list[tuple[str, int]], seed: int) -> None:
    model = tiny_model(seed=7)
    model.feature_layers = (0, -1)
    sequence = model.start_ids([0, 1, 2])
    tokens = torch.Generator().manual_seed(seed)
    for action, n in actions:
        before = len(sequence.token_ids)
        ids = torch.randint(0, 6, (n,), generator=tokens).tolist()
        if action == "append":
            sequence.append(ids)
        elif action == "forward":
            logits = sequence.forward(ids, need=Need.LAST).logits
            assert logits.shape[0] == 1
        elif action == "all":
            logits = sequence.forward(ids, need=Need.ALL).logits
            wanted = fresh_logits(model, sequence.token_ids)[before - 1 :]
            torch.testing.assert_close(logits, wanted, atol=1e-4, rtol=1e-4)
        elif action == "hidden":
            hidden = sequence.forward(ids, need=Need.HIDDEN).hidden
            assert hidden is not None and hidden.shape == (2, n, 16)
        elif action == "write":
            sequence.write(StopRule(n, steps=False), sampling=Sampling(1.0), generator=tokens)
        else:
            sequence.crop(max(1, before - n))
        assert sequence.n_cached <= len(sequence.token_ids)
    sequence.check()
    wanted = fresh_logits(model, sequence.token_ids)[-1]
    torch.testing.assert_close(sequence.next_logits(), wanted, atol=1e-4, rtol=1e-4)
    sequence.check()


def test_a_dropped_step_costs_no_pass() -> None:
    sequence = tiny_model(seed=1).start_ids([0, 1, 2])
    sequence.append([3])
    sequence.forward([1, 1, 4], need=Need.LAST)
    passes = sequence.n_passes
    sequence.crop(4)
    sequence.next_logits()
    assert sequence.n_passes == passes


def test_the_check_notices_a_wrong_cache() -> None:
    sequence = tiny_model(seed=1).start_ids([0, 1, 2])
    sequence.token_ids[1] = 4
    with pytest.raises(AssertionError, match="off by"):
        sequence.check()


def test_crop_with_a_sliding_window() -> None:
    tokenizer = word_tokenizer()
    model = HFModel(tiny_sliding(len(tokenizer), seed=3, window=8), tokenizer)
    sequence = model.start_ids([0, 1, 2, 3, 4, 5])
    sequence.forward([1, 2, 3, 4], need=Need.ALL)
    sequence.crop(6)
    logits = sequence.forward([5], need=Need.LAST).logits[-1]
    wanted = fresh_logits(model, [0, 1, 2, 3, 4, 5, 5])[-1]
    torch.testing.assert_close(logits, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("n_pending", [0, 3])
def test_hidden_states_have_one_row_a_token_and_the_right_values(n_pending: int) -> None:
    model = tiny_model(seed=5)
    model.feature_layers = (0, 1)
    step = [4, 5, 6, 7]
    sequence = model.start_ids([0, 1, 2])
    sequence.append([3] * n_pending)
    hidden = sequence.forward(step, need=Need.HIDDEN).hidden
    with torch.inference_mode():
        wanted = model.model(
            input_ids=torch.tensor([sequence.token_ids]), output_hidden_states=True
        ).hidden_states
    assert hidden is not None and hidden.shape == (2, len(step), 16)
    # hidden_states[1] is the first block's output; the last entry is taken after the final norm.
    torch.testing.assert_close(hidden[0], wanted[1][0, -len(step) :], atol=1e-4, rtol=1e-4)
    norm = model.model.model.norm
    torch.testing.assert_close(norm(hidden[1]), wanted[2][0, -len(step) :], atol=1e-4, rtol=1e-4)


def test_writing_and_reading_a_step_show_the_same_hidden_states() -> None:
    model = tiny_model(seed=6)
    model.feature_layers = (-1,)
    first, second = model.start_ids([0, 1]), model.start_ids([0, 1])
    written = first.write(StopRule(9), sampling=Sampling(1.0), generator=seeded(1), hidden=True)
    read = second.forward(written.token_ids, need=Need.HIDDEN)
    assert written.hidden is not None and read.hidden is not None
    torch.testing.assert_close(written.hidden, read.hidden, atol=1e-4, rtol=1e-4)


def test_branches_equal_single_writing_and_leave_the_text_alone() -> None:
    model = tiny_model(seed=8)
    model.feature_layers = (0,)
    sequence = model.start_ids([0, 1, 2])
    rule = StopRule(12)
    rows = sequence.branch(4).write(
        rule, sampling=Sampling(1.0), generators=[seeded(0, i) for i in range(4)], hidden=True
    )
    for index, row in enumerate(rows):
        alone = model.start_ids([0, 1, 2]).write(
            rule, sampling=Sampling(1.0), generator=seeded(0, index), hidden=True
        )
        assert row.token_ids == alone.token_ids and row.ended == alone.ended
        assert row.hidden is not None and alone.hidden is not None
        assert row.hidden.shape[1] == len(row.token_ids)
        torch.testing.assert_close(row.hidden, alone.hidden, atol=1e-4, rtol=1e-4)
    read = sequence.branch(4).read([row.token_ids for row in rows])
    for row, hidden in zip(rows, read, strict=True):
        assert row.hidden is not None
        torch.testing.assert_close(row.hidden, hidden, atol=1e-4, rtol=1e-4)
    assert sequence.token_ids == [0, 1, 2]
    sequence.check()


def test_a_padded_vocabulary_is_never_sampled() -> None:
    model = tiny_model(seed=2, padding=20)
    assert model.model.config.vocab_size == model.vocab_size + 20
    logits = model.start_ids([0, 1]).next_logits()
    assert logits.shape == (model.vocab_size,)


def test_where_a_step_ends() -> None:
    model = tiny_model(seed=0)
    ids = model.tokenizer.get_vocab()
    ends = model.step_ends
    assert ends.reason(ids["\n\n"], None, steps=True) == "step_end"
    assert ends.reason(ids["\n"], ids["\n"], steps=True) == "step_end"
    assert ends.reason(ids["\n"], ids["a"], steps=True) is None
    assert ends.reason(ids["</think>"], None, steps=True) == "think_end"
    assert ends.reason(ids["<end>"], None, steps=False) == "end_of_text"
    assert ends.reason(ids["\n\n"], None, steps=False) is None


def test_text_passes_between_unlike_vocabularies() -> None:
    target = tiny_model(seed=1)
    draft = tiny_model(seed=2, words=["x", "b", "a", " ", "\n\n"])
    pair = Pair("unlike", target, draft)
    assert not pair.same_vocabulary
    ids = draft.encode("a  b\n\n")
    assert target.decode(pair.to_target(ids)) == "a  b\n\n"
    end = draft.tokenizer.eos_token_id
    assert pair.to_target([*ids, end])[-1] == target.tokenizer.eos_token_id


def test_the_cost_of_a_crop_does_not_touch_the_buffers() -> None:
    sequence = HFSequence(tiny_model(seed=1))
    sequence.forward([0, 1, 2, 3], need=Need.LAST)
    before = [layer.stored()[0].data_ptr() for layer in sequence._cache.layers]
    sequence.crop(2)
    sequence.forward([1], need=Need.LAST)
    assert [layer.stored()[0].data_ptr() for layer in sequence._cache.layers] == before


def test_a_saved_tokenizer_comes_back_as_it_was(tmp_path: Path) -> None:
    # A Qwen model with a generic tokenizer: its type must not decide how words are split.
    tokenizer = word_tokenizer(["12", "34"])
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
    )
    Qwen2ForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_model(ModelSpec(path=str(tmp_path)), key="model.target")
    assert loaded.encode("1234") == tokenizer("1234").input_ids == [0, 1]


def test_llama_without_an_end_writes_to_the_limit() -> None:
    tokenizer = word_tokenizer()
    tokenizer.eos_token = None
    model = HFModel(tiny_llama(len(tokenizer), seed=0, end=None), tokenizer)
    written = model.start_ids([0]).write(StopRule(5), sampling=GREEDY, generator=seeded(0))
    assert len(written.token_ids) <= 5
