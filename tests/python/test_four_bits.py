# SPDX-License-Identifier: Apache-2.0
"""Frozen weights in 4 bits behind an op of others, as bitsandbytes has it: a custom op with a fake
kernel, called in a layer's forward and again in its backward."""

from collections.abc import Sequence

import planned_training as tools
import torch


@torch.library.custom_op("stowage_tests::dequantise_4bit", mutates_args=())
def dequantise(codes: torch.Tensor, scales: torch.Tensor, blocksize: int, kind: str,
               shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    assert kind == "linear"
    shares = torch.stack([codes >> 4, codes & 15], 1).float() / 7.5 - 1
    return (shares.view(-1, blocksize) * scales).view(shape).to(dtype)


@dequantise.register_fake
def _(codes, scales, blocksize, kind, shape, dtype):
    return torch.empty(shape, dtype=dtype, device=codes.device)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, scales, shape):
        ctx.save_for_backward(codes, scales)
        ctx.shape = shape
        return x @ dequantise(codes, scales, 8, "linear", shape, x.dtype).t()

    @staticmethod
    def backward(ctx, gradient):
        codes, scales = ctx.saved_tensors
        weight = dequantise(codes, scales, 8, "linear", ctx.shape, gradient.dtype)
        return gradient @ weight, None, None, None


class FourBits(torch.nn.Module):
    """Its scales are no parameter and no buffer, like bitsandbytes' quant_state."""

    def __init__(self, rows, columns):
        super().__init__()
        codes = torch.randint(0, 256, (rows * columns // 2,), dtype=torch.uint8)
        self.weight = torch.nn.Parameter(codes, requires_grad=False)
        self.scales = torch.rand(rows * columns // 8, 1)
        self.shape = [rows, columns]

    def forward(self, x):
        return Product.apply(x, self.weight, self.scales, self.shape)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 16)
        self.frozen = FourBits(16, 16)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, x):
        return self.last(torch.relu(self.frozen(self.first(x))))


def test_an_op_of_others_makes_weights_of_four_bits():
    tools.check_equal(
        lambda model: tools.simple(model, torch.optim.AdamW(
            [one for one in model.parameters() if one.requires_grad], lr=1e-2)),
        net=Net)
