#!/usr/bin/env python3
"""Writes mlp.safetensors and resnet.safetensors: ten training steps of two small
networks in PyTorch, with the weights before each step, the batch, the logits,
the loss and every gradient. Run it in this directory with any PyTorch of 1.13
or later; the files in the repository came from Debian's python3-torch 1.13.1.

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


def dump(path, net, shape):
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    out = {}
    for step in range(STEPS):
        x, y = torch.randn(BATCH, *shape), torch.randint(CLASSES, (BATCH,))
        for name, p in net.named_parameters():
            out[f"{step}/weight/{name}"] = p.detach().clone()
        optimizer.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        for name, p in net.named_parameters():
            out[f"{step}/grad/{name}"] = p.grad.clone()
        optimizer.step()
        out[f"{step}/x"], out[f"{step}/y"] = x, y.to(torch.int32)
        out[f"{step}/logits"], out[f"{step}/loss"] = logits.detach(), loss.detach().reshape(1)
    save(path, out)


torch.manual_seed(1)
torch.set_num_threads(1)
dump("mlp.safetensors", MLP(), (1, 8, 8))
dump("resnet.safetensors", ResNet(), (3, 16, 16))
