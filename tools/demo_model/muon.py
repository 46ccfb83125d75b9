"""Muon: momentum whose matrix updates are made orthogonal by a Newton-Schulz iteration.

Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
"""

from __future__ import annotations

import torch
from torch import Tensor


def orthogonalised(matrix: Tensor, steps: int = 5) -> Tensor:
    """A matrix with the same singular vectors and all singular values near 1."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.t()
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.t()
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x if matrix.shape[0] <= matrix.shape[1] else x.t()


class Muon(torch.optim.Optimizer):
    """For two-dimensional hidden weights only; the rest belongs to AdamW."""

    def __init__(self, params, lr: float, momentum: float = 0.95, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros_like(weight)
                velocity = state["velocity"]
                velocity.lerp_(weight.grad, 1 - group["momentum"])
                update = orthogonalised(weight.grad.lerp(velocity, group["momentum"]))
                scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * scale)
