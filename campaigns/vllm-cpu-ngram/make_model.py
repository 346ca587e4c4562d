"""Trains the tiny Llama that the CPU campaign serves, and writes its folder and manifest.

Run it with an interpreter that has torch, transformers and tokenizers, such as the serving environment's:

    /srv/labctl/serving/bin/python campaigns/vllm-cpu-ngram/make_model.py --out DIR --manifest FILE

Seeds and thread count are fixed, so the same machine, Python and torch give the same bytes; other machines give a
model of the same kind. The committed model is what counts: its manifest pins it.
"""

import argparse
import hashlib
import itertools
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tales import ASSISTANT, END, SPECIAL_TOKENS, USER, docstring_sentences, draw_example
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

VOCABULARY = 1024
MAX_POSITIONS = 1024
TRAINED_TOKENS = 672
# Every eighth batch has long prompts, so that late positions are learnt too.
SENTENCES_OF_BATCH = (2, 3, 4, 3, 2, 3, 4, 20)
CHAT_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}{{ message['content'] + '<|end|>' }}"
    "{% else %}{{ '<|user|>' + message['content'] + '<|assistant|>' }}{% endif %}{% endfor %}"
)
IGNORED = -100


@dataclass(frozen=True)
class Training:
    """How long and how fast to train."""

    steps: int
    batch: int
    peak_rate: float
    seed: int


def train_tokenizer(sentences: list[str], chance: random.Random) -> Tokenizer:
    """Returns a byte-level BPE tokenizer over prompts and tales; every byte string has a tokenization."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    answers = [draw_example(sentences, 2, chance)[1].removesuffix(END) for _ in range(400)]
    tokenizer.train_from_iterator([*sentences, *answers], trainer)
    return tokenizer


def make_network(tokenizer: Tokenizer) -> LlamaForCausalLM:
    """Returns an untrained Llama of about 0.9 million weights."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=344,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(END),
        dtype="float32",
    )
    return LlamaForCausalLM(config)  # type: ignore[no-untyped-call]  # transformers leaves it untyped


def draw_batches(
    tokenizer: Tokenizer, sentences: list[str], training: Training
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields token ids and labels without end; only the answer's tokens are learnt."""
    chance = random.Random(training.seed + 1)  # noqa: S311 - reproducible text, not a secret
    for most in itertools.cycle(SENTENCES_OF_BATCH):
        rows, labels = [], []
        for _ in range(training.batch):
            prompt, answer = draw_example(sentences, most, chance)
            ids = tokenizer.encode(prompt).ids
            answer_ids = tokenizer.encode(answer).ids
            rows.append((ids + answer_ids)[:TRAINED_TOKENS])
            labels.append(([IGNORED] * len(ids) + answer_ids)[:TRAINED_TOKENS])
        width = max(map(len, rows))
        end = tokenizer.token_to_id(END)
        yield (
            torch.tensor([row + [end] * (width - len(row)) for row in rows]),
            torch.tensor([row + [IGNORED] * (width - len(row)) for row in labels]),
        )


def train_network(
    network: LlamaForCausalLM, batches: Iterator[tuple[torch.Tensor, torch.Tensor]], training: Training
) -> float:
    """Trains in place and returns the mean loss of the last fifty steps."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=training.peak_rate, betas=(0.9, 0.98), weight_decay=0.01)
    losses: list[float] = []
    started = time.monotonic()
    for step in range(training.steps):
        warm, cool = min(1.0, (step + 1) / 100), 0.5 * (1 + math.cos(math.pi * step / training.steps))
        for group in optimizer.param_groups:
            group["lr"] = training.peak_rate * warm * max(cool, 0.02)
        ids, labels = next(batches)
        loss = network(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 0:
            sys.stderr.write(f"step {step} loss {losses[-1]:.4f} seconds {time.monotonic() - started:.0f}\n")
    return sum(losses[-50:]) / len(losses[-50:])


def write_model(network: LlamaForCausalLM, tokenizer: Tokenizer, folder: Path) -> None:
    """Writes weights, configuration and tokenizer as an engine loads them."""
    folder.mkdir(parents=True, exist_ok=True)
    network.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        eos_token_id=network.config.eos_token_id, do_sample=False
    )
    network.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    tokenizer.save(str(folder / "tokenizer.json"))
    description = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_POSITIONS,
        "eos_token": END,
        "pad_token": END,
        "additional_special_tokens": [USER, ASSISTANT],
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def write_manifest(folder: Path, manifest: Path) -> None:
    """Writes one `sha256sum` line a file, sorted by the bytes of its path."""
    paths = sorted(
        (p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.relative_to(folder).as_posix().encode()
    )
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(folder).as_posix()}\n" for p in paths]
    manifest.write_text("".join(lines), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    """Returns the command line's options."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Train the tiny model of the CPU campaign.")
    parser.add_argument("--out", type=Path, default=here / "model", help="model folder to write")
    parser.add_argument("--manifest", type=Path, default=here.parent / "models" / "tiny-llama.sha256")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--peak-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Makes tokenizer, model and manifest."""
    options = parse_arguments()
    training = Training(options.steps, options.batch, options.peak_rate, options.seed)
    torch.set_num_threads(1)
    torch.manual_seed(training.seed)
    torch.use_deterministic_algorithms(mode=True)
    sentences = docstring_sentences()
    tokenizer = train_tokenizer(sentences, random.Random(training.seed))  # noqa: S311 - reproducible text, not a secret
    network = make_network(tokenizer)
    loss = train_network(network, draw_batches(tokenizer, sentences, training), training)
    write_model(network, tokenizer, options.out)
    write_manifest(options.out, options.manifest)
    weights = sum(parameter.numel() for parameter in network.parameters())
    text_digest = hashlib.sha256("\n".join(sentences).encode()).hexdigest()
    sys.stdout.write(
        json.dumps({"sentences": len(sentences), "text_sha256": text_digest, "weights": weights, "last_loss": loss})
        + "\n"
    )


if __name__ == "__main__":
    main()
