# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of tiny-gpt's family as one would write it in eager PyTorch, on one thread: what bench_runtime_speed compares with.

Prints one line of JSON a step: the loss, and the wall and CPU time of the step (data, forward, backward, optimizer) in ms.
Usage: train_gpt.py LAYERS HIDDEN HEADS SEQUENCE BATCH STEPS TEXT
"""
import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden, heads, sequence):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.fc1, self.fc2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.register_buffer("mask", torch.full((sequence, sequence), -math.inf).triu(1))

    def attention(self, x):
        batch, sequence, hidden = x.shape
        parts = self.qkv(x).view(batch, sequence, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        scores = query @ key.transpose(-2, -1) / math.sqrt(hidden // self.heads) + self.mask
        context = functional.softmax(scores, dim=-1) @ value
        return self.projection(context.transpose(1, 2).reshape(batch, sequence, hidden))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, sequence, vocab):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, hidden), nn.Embedding(sequence, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, sequence) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.token.weight)  # tied
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def main():
    layers, hidden, heads, sequence, batch, steps = map(int, sys.argv[1:7])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with open(sys.argv[7], "rb") as file:
        text = torch.tensor(list(file.read()), dtype=torch.long)
    model = Gpt(layers, hidden, heads, sequence, 256)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    for step in range(steps):
        wall, cpu = time.perf_counter(), time.process_time()
        starts = torch.randint(len(text) - sequence - 1, (batch,))
        windows = torch.stack([text[start : start + sequence + 1] for start in starts.tolist()])
        loss = model(windows[:, :-1], windows[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        value = loss.item()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps({"step": step + 1, "loss": value, "wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3}), flush=True)


main()
