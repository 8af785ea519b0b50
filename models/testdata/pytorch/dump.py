#!/usr/bin/env python3
"""Writes mlp.safetensors, resnet.safetensors and gpt.safetensors: ten training
steps of three small networks in PyTorch, with the weights before each step, the
batch, the logits, the loss and every gradient. Run it in this directory with any
PyTorch of 1.13 or later; the files in the repository came from Debian's
python3-torch 1.13.1.

The networks are written out here and share nothing with the ones under test
but the names of their parameters."""
import json
import struct

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS, BATCH, CLASSES = 10, 8, 10


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = None
        if stride != 1 or i != o:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(Block(8, 8, 1))
        self.layer2 = nn.Sequential(Block(8, 16, 2))
        self.layer3 = nn.Sequential(Block(16, 32, 2))
        self.fc = nn.Linear(32, CLASSES)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class Transformer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def attention(self, x):
        n, length, width = x.shape
        heads = [part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in self.attn.c_attn(x).split(width, 2)]
        q, k, v = heads
        scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        shares = scores.masked_fill(later, -torch.inf).softmax(3)
        return self.attn.c_proj((shares @ v).transpose(1, 2).reshape(n, length, width))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(length, width),
            "h": nn.ModuleList(Transformer(width, heads) for _ in range(layers)), "ln_f": nn.LayerNorm(width)})
        for p in self.parameters():  # not GPT-2's start, from which attention is nearly even
            nn.init.normal_(p, p.mean().item(), 0.2)

    def forward(self, tokens):
        t = self.transformer
        x = t.wte(tokens) + t.wpe.weight[: tokens.shape[1]]
        for block in t.h:
            x = block(x)
        return (t.ln_f(x) @ t.wte.weight.T).flatten(0, 1)


def save(path, tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        n = t.numel() * t.element_size()
        header[name] = {"dtype": {torch.float32: "F32", torch.int32: "I32"}[t.dtype],
                        "shape": list(t.shape), "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.contiguous().numpy().tobytes())


def images(*shape):
    return lambda: (torch.randn(BATCH, *shape), torch.randint(CLASSES, (BATCH,)))


def windows(vocabulary, length):
    """Tokens and those that follow them."""
    def draw():
        text = torch.randint(vocabulary, (BATCH, length + 1))
        return text[:, :-1], text[:, 1:].flatten()
    return draw


def dump(path, net, batch):
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    out = {}
    for step in range(STEPS):
        x, y = batch()
        for name, p in net.named_parameters():
            out[f"{step}/weight/{name}"] = p.detach().clone()
        optimizer.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        for name, p in net.named_parameters():
            out[f"{step}/grad/{name}"] = p.grad.clone()
        optimizer.step()
        out[f"{step}/x"], out[f"{step}/y"] = x if x.is_floating_point() else x.to(torch.int32), y.to(torch.int32)
        out[f"{step}/logits"], out[f"{step}/loss"] = logits.detach(), loss.detach().reshape(1)
    save(path, out)


torch.manual_seed(1)
torch.set_num_threads(1)
dump("mlp.safetensors", MLP(), images(1, 8, 8))
dump("resnet.safetensors", ResNet(), images(3, 16, 16))
dump("gpt.safetensors", GPT(vocabulary=13, length=9, width=16, heads=2, layers=2), windows(13, 9))
