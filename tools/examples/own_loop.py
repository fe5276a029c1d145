# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch model in a loop of one's own: two optimizers, evaluation, saving and resuming.

    python own_loop.py --device cpu --steps 20 --folder /tmp/own_loop
    python own_loop.py --device cpu --steps 40 --folder /tmp/own_loop    # goes on after step 20

Muon trains the matrices, AdamW the rest. A resumed training gives the bits of one that never
stopped. The data are sums of sines, made here.
"""

import argparse
import pathlib

import torch

import stowage


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="60%peak", help="device memory: 24GiB, 60%%peak")
    parser.add_argument("--device", help="cuda or cpu")
    parser.add_argument("--steps", type=int, default=20, help="in all, with those before a resume")
    parser.add_argument("--evaluate-every", type=int, default=10)
    parser.add_argument("--folder", help="checkpoint: resumed if there, written at the end")
    return parser.parse_args()


class Net(torch.nn.Module):
    def __init__(self, width=128, depth=6):
        super().__init__()
        self.first = torch.nn.Linear(32, width)
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width),
                                torch.nn.GELU(), torch.nn.Dropout(0.1),
                                torch.nn.Linear(4 * width, width))
            for _ in range(depth))
        self.last = torch.nn.Linear(width, 1)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.last(x)


def make_batch(number):
    """The batch of a step: the same whenever the step is taken. Number 0 is for evaluation."""
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(256, 32, generator=generator)
    return x, torch.sin(x).sum(dim=1, keepdim=True)


def make_training(budget, device):
    model = Net()
    matrices = [one for one in model.layers.parameters() if one.dim() == 2]
    rest = [one for one in model.parameters() if not any(one is other for other in matrices)]
    muon = torch.optim.Muon(matrices, lr=2e-3)
    adamw = torch.optim.AdamW(rest, lr=2e-3)

    @stowage.step(model, [muon, adamw], budget=budget, device=device)
    def train_step(x, y):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        muon.step()
        adamw.step()
        muon.zero_grad()
        adamw.zero_grad()
        return loss

    schedulers = [torch.optim.lr_scheduler.CosineAnnealingLR(one, T_max=1000)
                  for one in (muon, adamw)]
    return train_step, schedulers


def evaluate(train_step):
    """On the CPU, with the values that the training has come to."""
    x, y = make_batch(0)
    with train_step.live() as model, torch.no_grad():
        model.eval()
        return torch.nn.functional.mse_loss(model(x), y).item()


def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    train_step, schedulers = make_training(arguments.budget, arguments.device)
    print(train_step.plan(*make_batch(1)))
    done = 0
    if arguments.folder and pathlib.Path(arguments.folder).exists():
        done = train_step.load(arguments.folder, *make_batch(1), schedulers=schedulers)
        print(f"goes on after step {done}")
    for step in range(done + 1, arguments.steps + 1):
        loss = train_step(*make_batch(step))
        for scheduler in schedulers:
            scheduler.step()
        print(f"step {step}: loss {loss.item():.4f}")
        if step % arguments.evaluate_every == 0:
            print(f"evaluation after step {step}: loss {evaluate(train_step):.4f}")
    if arguments.folder and arguments.steps > done:
        train_step.save(arguments.folder, schedulers=schedulers)
        print(f"wrote {arguments.folder}")


if __name__ == "__main__":
    main()
