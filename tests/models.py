"""Tiny random models and tokenizers for tests: made in milliseconds, no download."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
)

from semanticspec.backends import HFModel, Pair

WORDS = ["a", "b", "c", "d", "e", "f", ".", "\n\n", " ", "  ", "\n"]
END, THINK_END = "<end>", "</think>"


def word_tokenizer(words: list[str] | None = None) -> PreTrainedTokenizerFast:
    """A tokenizer with one token a word: the words, ``</think>`` and the end of text."""
    vocabulary = [*(WORDS if words is None else words), THINK_END, END, "<unk>"]
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern=word, behavior="isolated") for word in vocabulary[:-1][::-1]]
    )
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, unk_token="<unk>")


def tiny_llama(
    vocab_size: int, *, seed: int, end: int | None, layers: int = 2, width: int = 16
) -> LlamaForCausalLM:
    """A random model whose distributions are far from uniform."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.5,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def tiny_sliding(vocab_size: int, *, seed: int, window: int) -> MistralForCausalLM:
    """The same with a sliding window."""
    torch.manual_seed(seed)
    config = MistralConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.5,
        sliding_window=window,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    return MistralForCausalLM(config).eval()


def tiny_model(
    *, seed: int, words: list[str] | None = None, padding: int = 0, layers: int = 2
) -> HFModel:
    """A random model over ``words``; ``padding`` adds embedding rows that mean nothing."""
    tokenizer = word_tokenizer(words)
    model = tiny_llama(
        len(tokenizer) + padding, seed=seed, end=tokenizer.get_vocab()[END], layers=layers
    )
    return HFModel(model, tokenizer)


def tiny_pair(*, padding: int = 0, draft_words: list[str] | None = None) -> Pair:
    """A target of three layers and a draft of one."""
    return Pair(
        "tiny",
        tiny_model(seed=1, layers=3),
        tiny_model(seed=2, layers=1, padding=padding, words=draft_words),
    )
