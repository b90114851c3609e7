"""transformers' causal language models, with a cache that is only ever cropped.

A sequence's ``token_ids`` are the accepted text. The cache holds a prefix of them; the few tokens
behind it are *pending* and ride along with the next forward pass, so that no pass is spent on a
token alone when more tokens follow anyway (the last token of a step, a speculative bonus token).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence as Items
from typing import Any

import torch
from torch import Tensor

from ..sampling import Sampling, draw_rows
from .base import Forward, Need, StepEnds, StopRule, Written
from .cache import InPlaceCache, InPlaceLayer


class HFModel:
    """One loaded model and its tokenizer. See ``load.py`` for how it comes to be."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        system_prompt: str | None = None,
        think_prefix: str = "",
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.system_prompt = system_prompt
        self.think_prefix = think_prefix
        # Some embeddings are padded beyond the vocabulary; those rows must never be sampled.
        self.vocab_size = max(tokenizer.get_vocab().values()) + 1
        self.n_layers = model.config.get_text_config().num_hidden_layers
        self.hidden_size = model.config.get_text_config().hidden_size
        self.device = model.get_output_embeddings().weight.device
        self.step_ends = StepEnds(tokenizer, _end_ids(model, tokenizer))
        self._input_device = model.get_input_embeddings().weight.device
        parameters = inspect.signature(type(model).forward).parameters
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self._feature_layers: tuple[int, ...] = ()
        self._captured: dict[int, Tensor] = {}
        self._capturing = False
        self._hooks: list[Any] = []
        self.feature_layers = (-1,)

    @property
    def feature_layers(self) -> tuple[int, ...]:
        """Decoder blocks whose outputs ``Need.HIDDEN`` returns; set it to change them.

        Block i's output is the residual stream before any final norm; -1 is the last block.
        """
        return self._feature_layers

    @feature_layers.setter
    def feature_layers(self, layers: Items[int]) -> None:
        for hook in self._hooks:
            hook.remove()
        blocks = _decoder_blocks(self.model, self.n_layers)
        self._feature_layers = tuple(range(self.n_layers)[layer] for layer in layers)
        self._hooks = [
            blocks[layer].register_forward_hook(self._capture(layer))
            for layer in self._feature_layers
        ]

    def _capture(self, layer: int) -> Any:
        def hook(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            if self._capturing:
                self._captured[layer] = output[0] if isinstance(output, tuple) else output

        return hook

    def prompt_text(self, prompt: str) -> str:
        """The user's message in the model's chat format, thinking opened."""
        if self.tokenizer.chat_template is None:
            text = prompt + "\n"
        else:
            messages = [{"role": "user", "content": prompt}]
            if self.system_prompt is not None:
                messages.insert(0, {"role": "system", "content": self.system_prompt})
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        if self.think_prefix and not text.endswith(self.think_prefix):
            text += self.think_prefix
        return text

    def start(self, prompt: str) -> HFSequence:
        """A new sequence that begins with the prompt, already read."""
        # A chat template writes its own first token; plain text gets the tokenizer's.
        special = self.tokenizer.chat_template is None
        ids = self.tokenizer(self.prompt_text(prompt), add_special_tokens=special).input_ids
        return self.start_ids(ids)

    def start_ids(self, ids: list[int]) -> HFSequence:
        """A new sequence that begins with these ids, already read."""
        sequence = HFSequence(self)
        sequence.forward(ids, need=Need.LAST)
        return sequence

    def encode(self, text: str) -> list[int]:
        """Ids of text that continues another: without special tokens."""
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def decode(self, ids: Items[int]) -> str:
        return self.tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    @torch.inference_mode()
    def run(
        self, ids: Tensor, cache: InPlaceCache, keep: int | Tensor, *, hidden: bool
    ) -> tuple[Tensor, Tensor | None]:
        """One pass. Shapes: ids [B, T] -> logits [B, kept, V], hidden [n_layers, B, T, H]."""
        self._capturing = hidden
        output = self.model(
            input_ids=ids.to(self._input_device),
            use_cache=True,
            logits_to_keep=keep,
            **{self._cache_argument: cache},
        )
        self._capturing = False
        logits = output.logits[..., : self.vocab_size]
        if not hidden:
            return logits, None
        rows = [self._captured[layer].to(self.device) for layer in self._feature_layers]
        self._captured.clear()
        return logits, torch.stack(rows)

    def new_cache(self) -> InPlaceCache:
        return InPlaceCache([InPlaceLayer() for _ in range(self.n_layers)])


class HFSequence:
    """One text being written, with its cache; never copied, only cropped."""

    def __init__(self, model: HFModel) -> None:
        self.model = model
        self.token_ids: list[int] = []
        self.n_passes = 0
        self._cache = model.new_cache()
        # Next-token logits [V] by text length: those of the last pass and those just before it, so
        # that dropping what the last pass read costs nothing.
        self._next: dict[int, Tensor] = {}

    @property
    def n_cached(self) -> int:
        """How many of ``token_ids`` the cache holds; the rest is pending."""
        return self._cache.get_seq_length()

    @property
    def is_float32(self) -> bool:
        return self.model.model.dtype == torch.float32

    def append(self, ids: Items[int]) -> None:
        """Add text that will be read with the next pass."""
        self.token_ids += ids

    def crop(self, length: int) -> None:
        """Roll back to the first ``length`` tokens."""
        del self.token_ids[length:]
        self._cache.crop_to(length)
        self._next = {n: logits for n, logits in self._next.items() if n <= length}

    def forward(self, ids: Items[int], *, need: Need) -> Forward:
        """Read new tokens in one pass, pending ones first."""
        before = len(self.token_ids)
        known = self._next.get(before)
        if before and self.n_cached == before and known is None:
            self._cache.crop_to(before - 1)  # its logits were not kept: read the last token again
        n_pending = before - self.n_cached
        if known is not None and not n_pending and not ids:
            return Forward(known[None])
        self.token_ids += ids
        fresh = self.token_ids[self.n_cached :]
        keep: int | Tensor = 1
        if need is Need.ALL:
            keep = len(ids) + min(n_pending, 1)
        elif n_pending and ids:
            keep = torch.tensor([n_pending - 1, len(fresh) - 1], device=self.model.device)
        logits, hidden = self.model.run(
            torch.tensor([fresh]), self._cache, keep, hidden=need is Need.HIDDEN
        )
        self.n_passes += 1
        logits = logits[0]
        if known is not None and not n_pending and need is Need.ALL:
            logits = torch.cat([known[None], logits])
        if n_pending and ids:
            known = logits[0]
        self._next = {len(self.token_ids): logits[-1]}
        if known is not None:
            self._next[before] = known
        if hidden is not None:
            hidden = hidden[:, 0, n_pending:]
        return Forward(logits if need is Need.ALL else logits[-1:], hidden)

    def next_logits(self) -> Tensor:
        """Logits [V] of the token after ``token_ids``; reads what is pending."""
        if len(self.token_ids) not in self._next:
            self.forward([], need=Need.LAST)
        return self._next[len(self.token_ids)]

    def write(
        self,
        until: StopRule,
        *,
        sampling: Sampling,
        generator: torch.Generator,
        hidden: bool = False,
    ) -> Written:
        """Write token by token. The last token stays pending, unless its hidden state is asked."""
        ends, ids, states = self.model.step_ends, [], []
        ended: str | None = "limit" if until.max_tokens < 1 else None
        previous = None
        logits = self.next_logits() if ended is None else None
        while ended is None:
            assert logits is not None
            token = sampling.pick(logits, generator)
            ids.append(token)
            ended = ends.reason(token, previous, steps=until.steps)
            if ended is None and len(ids) >= until.max_tokens:
                ended = "limit"
            previous = token
            if hidden:
                forward = self.forward([token], need=Need.HIDDEN)
                states.append(forward.hidden)
                logits = forward.logits[-1]
            elif ended is None:
                logits = self.forward([token], need=Need.LAST).logits[-1]
            else:
                self.append([token])
        assert ended is not None
        return Written(ids, ended, torch.cat(states, dim=1) if states else None)

    def branch(self, n: int) -> HFBranches:
        """``n`` continuations of this text to be written in one batch; this text stays as it is."""
        return HFBranches(self, n)

    def check(self, *, tolerance: float = 1e-4) -> None:
        """Compare the cache with a fresh pass over the text; for debugging and tests.

        Raises ``AssertionError`` when they differ by more than ``tolerance`` (of the largest
        entry), or when the cache holds more than the text.
        """
        length = self.n_cached
        assert length <= len(self.token_ids), "the cache holds more than the accepted text"
        fresh = self.model.new_cache()
        self.model.run(torch.tensor([self.token_ids[:length]]), fresh, 1, hidden=False)
        for index, (mine, other) in enumerate(zip(self._cache.layers, fresh.layers, strict=True)):
            assert mine.length == length, f"layer {index} holds {mine.length}, not {length}"
            for have, want in zip(mine.stored(), other.stored(), strict=True):
                error = float((have - want).abs().max())
                scale = max(1.0, float(want.abs().max()))
                assert error <= tolerance * scale, f"layer {index} is off by {error:.2g}"


class HFBranches:
    """Several continuations of one text in one batch: written, or read. Good for one call."""

    def __init__(self, sequence: HFSequence, n: int) -> None:
        self.model = sequence.model
        self._n = n
        self._first = sequence.next_logits()
        self._cache = sequence._cache.branch(n)

    def write(
        self,
        until: StopRule,
        *,
        sampling: Sampling,
        generators: Items[torch.Generator],
        hidden: bool = False,
    ) -> list[Written]:
        """One step (or text) a row, each from its own generator.

        A row that has ended is fed on until all have; what it is fed is never returned.
        """
        ends = self.model.step_ends
        ids: list[list[int]] = [[] for _ in range(self._n)]
        ended: list[str | None] = [None] * self._n
        states: list[Tensor] = []
        logits = self._first.expand(self._n, -1)
        while True:
            tokens = draw_rows(sampling.probabilities(logits), generators)
            for row, token in enumerate(tokens):
                if ended[row] is None:
                    previous = ids[row][-1] if ids[row] else None
                    ids[row].append(token)
                    ended[row] = ends.reason(token, previous, steps=until.steps)
                    if ended[row] is None and len(ids[row]) >= until.max_tokens:
                        ended[row] = "limit"
            done = all(reason is not None for reason in ended)
            if done and not hidden:
                break
            fed = torch.tensor(tokens)[:, None]
            new_logits, new_states = self.model.run(fed, self._cache, 1, hidden=hidden)
            if new_states is not None:
                states.append(new_states)
            if done:
                break
            logits = new_logits[:, -1]
        return [
            Written(
                ids[row],
                ended[row] or "limit",
                torch.cat([s[:, row] for s in states[: len(ids[row])]], dim=1) if hidden else None,
            )
            for row in range(self._n)
        ]

    def read(self, rows: Items[list[int]]) -> list[Tensor]:
        """Hidden states of given continuations, one a row. Shapes: [n_layers, T of the row, H].

        Rows are padded on the right: under causal attention nothing looks at what follows it.
        """
        longest = max(len(row) for row in rows)
        padded = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
        _, hidden = self.model.run(padded, self._cache, 1, hidden=True)
        assert hidden is not None
        return [hidden[:, index, : len(row)] for index, row in enumerate(rows)]


def _end_ids(model: Any, tokenizer: Any) -> set[int]:
    """Every id that ends a text: the generation config's and the tokenizer's."""
    ids = model.generation_config.eos_token_id
    listed = ids if isinstance(ids, list) else [ids]
    return {i for i in (*listed, tokenizer.eos_token_id) if i is not None}


def _decoder_blocks(model: Any, n_layers: int) -> Any:
    """The list of decoder blocks, wherever an architecture keeps it."""
    for _, module in model.named_modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layers:
            return module
    raise ValueError(f"{type(model).__name__} has no list of {n_layers} decoder blocks")
