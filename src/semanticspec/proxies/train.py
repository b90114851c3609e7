"""Train the embedded pair from scratch on a CPU: ``python -m semanticspec.proxies.train --help``.

Retrieval (copying the right name and number), not arithmetic, is what a small model finds hard. A
short-to-long curriculum makes it learnable: the cap on a chain's length rises from two facts to the
longest over the first 40 % of the tokens. Free-running accuracy is printed on the way; accuracy
under the reference text says little.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from .accuracy import free_running
from .corpus import END, LONGEST, PAD, build_tokenizer, example
from .language import Style

CURRICULUM_SHARE = 0.4
# Wrong steps come in once copying is learnt; before, they are only noise.
WRONG_FROM, WRONG_RAMP = 0.3, 0.2
BATCH_TOKENS = 1_536
TRAINING = "training.json"


@dataclass(frozen=True)
class Recipe:
    """Size and training budget of one model; ``n_tokens`` counts prompts too."""

    n_layers: int
    width: int
    mlp_width: int
    n_heads: int
    learning_rate: float
    n_tokens: int


RECIPES: dict[Style, Recipe] = {
    "target": Recipe(12, 192, 512, 3, 1.5e-3, 5_500_000),
    "draft": Recipe(2, 128, 384, 4, 3e-3, 12_000_000),
}


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, seed: int) -> Qwen2ForCausalLM:
    """An untrained model; the weights depend on the seed alone."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        num_hidden_layers=recipe.n_layers,
        intermediate_size=recipe.mlp_width,
        num_attention_heads=recipe.n_heads,
        num_key_value_heads=recipe.n_heads,
        tie_word_embeddings=True,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=_id(tokenizer, END),
        pad_token_id=_id(tokenizer, PAD),
    )
    model = Qwen2ForCausalLM(config)
    # transformers' fixed 0.02 is far too small for narrow models: copying was not learnt after a
    # million tokens. By fan-in (and by depth, where a block writes to the residual stream) it is
    # learnt within a few hundred thousand.
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            std = 0.05 if "embed" in name else weight.shape[1] ** -0.5
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                std /= (2 * recipe.n_layers) ** 0.5
            torch.nn.init.normal_(weight, std=std)
    return model


def _id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    found = tokenizer.convert_tokens_to_ids(token)
    assert isinstance(found, int)
    return found


def batches(
    author: Style,
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    seed: int,
    *,
    curriculum: bool = True,
) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
    """Endless (ids [B, T], labels [B, T], tokens so far); a batch's rows are about as long."""
    rng = random.Random(f"train/{author}/{seed}")
    n_seen = 0
    while True:
        progress = n_seen / recipe.n_tokens if curriculum else 1.0
        cap = 2 + int((LONGEST - 1) * progress / CURRICULUM_SHARE)
        wrong = min(1.0, max(0.0, (progress - WRONG_FROM) / WRONG_RAMP))
        rows = [_encode(author, tokenizer, rng, cap, wrong) for _ in range(128)]
        rows.sort(key=lambda row: len(row[0]))
        groups: list[list[tuple[list[int], list[int]]]] = [[]]
        for row in rows:
            if groups[-1] and len(row[0]) * (len(groups[-1]) + 1) > BATCH_TOKENS:
                groups.append([])
            groups[-1].append(row)
        rng.shuffle(groups)
        for group in groups:
            longest = len(group[-1][0])
            ids = torch.full((len(group), longest), _id(tokenizer, PAD))
            labels = torch.full((len(group), longest), -100)
            for index, (row_ids, row_labels) in enumerate(group):
                ids[index, : len(row_ids)] = torch.tensor(row_ids)
                labels[index, : len(row_ids)] = torch.tensor(row_labels)
            n_seen += sum(len(row_ids) for row_ids, _ in group)
            yield ids, labels, n_seen


def _encode(
    author: Style, tokenizer: PreTrainedTokenizerFast, rng: random.Random, cap: int, wrong: float
) -> tuple[list[int], list[int]]:
    """One example as ids and labels (-100 where the author does not learn)."""
    prompt, pieces = example(author, rng, cap=cap, wrong=wrong)
    encoded = tokenizer([prompt, *(piece.text for piece in pieces)]).input_ids
    ids, labels = list(encoded[0]), [-100] * len(encoded[0])
    for piece, piece_ids in zip(pieces, encoded[1:], strict=True):
        ids += piece_ids
        labels += piece_ids if piece.learn else [-100] * len(piece_ids)
    return ids, labels


def train(
    author: Style,
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
    *,
    recipe: Recipe,
    start: Qwen2ForCausalLM | None = None,
) -> Qwen2ForCausalLM:
    """Train one of the two models; bf16 autocast, AdamW, warm-up and cosine decay.

    With ``start``, a trained model goes on, on problems of full length.
    """
    model = start or new_model(recipe, tokenizer, seed)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=recipe.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=0.05,
        fused=True,
    )
    bar = tqdm(total=recipe.n_tokens, unit="tok", unit_scale=True, desc=author, mininterval=10)
    source = batches(author, tokenizer, recipe, seed, curriculum=start is None)
    smooth, next_report = None, recipe.n_tokens // 5
    for step, (ids, labels, n_seen) in enumerate(source):
        progress = min(1.0, n_seen / recipe.n_tokens)
        rate = min(1.0, (step + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate * recipe.learning_rate
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
            learn = labels[:, 1:] != -100
            logits = model.lm_head(hidden[learn])
        loss = torch.nn.functional.cross_entropy(logits.float(), labels[:, 1:][learn])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()
        bar.update(n_seen - bar.n)
        bar.set_postfix(loss=f"{smooth:.3f}", refresh=False)
        if n_seen >= next_report or progress >= 1:
            next_report += recipe.n_tokens // 5
            scores = free_running(model, tokenizer, n=32, split="probe")
            bar.write(
                f"{author} {n_seen / 1e6:.1f}M tokens, loss {smooth:.3f}, right: {scores.right}"
            )
        if progress >= 1:
            bar.close()
            return model
    raise AssertionError("the batches never end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("author", choices=sorted(RECIPES), help="which model to train")
    parser.add_argument("--out", type=Path, required=True, help="folder that gets the model")
    parser.add_argument("--seed", type=int, default=0, help="of the data and of the weights")
    parser.add_argument("--start", type=Path, help="go on from the model in this folder")
    parser.add_argument("--tokens", type=int, help="train on this many, not the recipe's number")
    parser.add_argument("--threads", type=int, default=2, help="of the processor")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.start:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(arguments.start)
        model = Qwen2ForCausalLM.from_pretrained(arguments.start, dtype=torch.float32)
    else:
        tokenizer, model = build_tokenizer(arguments.seed), None
    started = time.perf_counter()
    recipe = RECIPES[arguments.author]
    if arguments.tokens:
        recipe = replace(recipe, n_tokens=arguments.tokens)
    model = train(arguments.author, tokenizer, arguments.seed, recipe=recipe, start=model)
    minutes = (time.perf_counter() - started) / 60
    model.bfloat16().save_pretrained(arguments.out)
    tokenizer.save_pretrained(arguments.out)
    facts = {
        "seed": arguments.seed,
        "minutes": round(minutes, 1),
        "threads": arguments.threads,
        **asdict(recipe),
    }
    file = arguments.out / TRAINING
    before = json.loads((arguments.start / TRAINING).read_text()) if arguments.start else []
    file.write_text(json.dumps([*before, facts], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
