# SPDX-License-Identifier: Apache-2.0
"""Optimizers in the styles in which people write them, each small, none of torch.optim."""

import torch
from torch.optim import Optimizer


class Own(Optimizer):
    """Calls update(group, parameter) for each parameter."""

    def __init__(self, parameters, lr=1e-2, **options):
        super().__init__(parameters, {"lr": lr, **options})
        self.steps = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.begin()
        for group in self.param_groups:
            self.begin_group(group)
            for parameter in group["params"]:
                self.update(group, parameter, self.state[parameter])

    def begin(self):
        pass

    def begin_group(self, group):
        pass


class Lion(Own):
    def update(self, group, parameter, state):
        if not state:
            state["exp_avg"] = torch.zeros_like(parameter)
        change = state["exp_avg"].clone().mul_(0.9).add(parameter.grad, alpha=0.1).sign_()
        parameter.mul_(1 - group["lr"] * 0.1).add_(change, alpha=-group["lr"])
        state["exp_avg"].mul_(0.99).add_(parameter.grad, alpha=0.01)


class InBytes(Own):
    """State of other types, as 8-bit optimizers keep it."""

    def update(self, group, parameter, state):
        if "codes" not in state:
            state["codes"] = torch.zeros(parameter.shape, dtype=torch.uint8)
            state["scale"] = torch.ones(1)
            state["mean"] = torch.zeros_like(parameter, dtype=torch.bfloat16)
        state["mean"].mul_(0.9).add_(parameter.grad.to(torch.bfloat16), alpha=0.1)
        square = state["codes"].float() * state["scale"] * 0.9 + parameter.grad**2 * 0.1
        state["scale"].zero_().add_((square.max() / 255).clamp_min(1e-12))
        state["codes"].copy_((square / state["scale"]).round().clamp(0, 255).to(torch.uint8))
        parameter.addcdiv_(state["mean"].float(), square.sqrt() + 1e-8, value=-group["lr"])


class OddKeys(Own):
    """Numbers, lists and tensors under keys that are no names."""

    def update(self, group, parameter, state):
        if not state:
            state.update({0: torch.zeros_like(parameter), ("a", 1): 1.0, "seen": []})
        state[("a", 1)] *= 0.9
        state["seen"].append(len(state["seen"]))
        state[0].mul_(0.9).add_(parameter.grad)
        factor = sum(state["seen"]) + 1 - state[("a", 1)]
        parameter.add_(state[0], alpha=-group["lr"] / (1 + factor))


class InContainers(Own):
    def update(self, group, parameter, state):
        if not state:
            state["both"] = {"mean": torch.zeros_like(parameter),
                             "list": [torch.ones_like(parameter)]}
        mean, square = state["both"]["mean"], state["both"]["list"][0]
        mean.lerp_(parameter.grad, 0.1)
        square.lerp_(parameter.grad.square(), 0.01)
        parameter.sub_(mean / (square.sqrt() + 1e-6) * group["lr"])


class WholeEntries(Own):
    """Puts a dictionary into the state, and counts what it does not compute with."""

    def update(self, group, parameter, state):
        if not state:
            self.state[parameter] = {"step": 0, "mean": torch.zeros_like(parameter)}
        state = self.state[parameter]
        state["step"] += 1
        state["mean"].lerp_(parameter.grad, 0.1)
        parameter.sub_(state["mean"] * group["lr"])


class CountsFromNothing(Own):
    def update(self, group, parameter, state):
        if "mean" not in state:
            state["mean"] = torch.zeros_like(parameter)
        state["step"] = state.get("step", 0) + 1
        state["other"] = (state["other"] if "other" in state else 0) + 1
        state["mean"].lerp_(parameter.grad, 0.1)
        parameter.sub_(state["mean"] * group["lr"])


class InAttributes(Own):
    """Momenta and counters beside its state, which state_dict() does not know."""

    def __init__(self, parameters):
        super().__init__(parameters)
        self.momenta = {}

    def begin(self):
        self.steps += 1
        self.decay = getattr(self, "decay", 1.0) * 0.9

    def update(self, group, parameter, state):
        momentum = self.momenta.setdefault(id(parameter), torch.zeros_like(parameter))
        momentum.mul_(self.decay).add_(parameter.grad)
        parameter.add_(momentum, alpha=-group["lr"] / self.steps)


class InGroups(Own):
    def begin_group(self, group):
        group["count"] = group.get("count", 0) + 1
        group["sum"] = group.get("sum", 0.0) + group["lr"] ** 2

    def update(self, group, parameter, state):
        rate = group["lr"] / group["count"] / (1 + group["sum"])
        parameter.add_(parameter.grad, alpha=-rate)


class UnderOneKey(Own):
    """State of all parameters together."""

    def begin(self):
        state = self.state["all"]
        if "norm" not in state:
            state["norm"] = torch.zeros(4)
        state["count"] = state.get("count", 0) + 1
        norms = [one.grad.norm() for one in self.param_groups[0]["params"]]
        state["norm"].mul_(0.9).add_(torch.stack(norms).mean())

    def update(self, group, parameter, state):
        shared = self.state["all"]
        parameter.sub_(parameter.grad / (1 + shared["norm"][0]) / shared["count"] * 0.1)


class MakesAnew(Own):
    def update(self, group, parameter, state):
        if not state:
            state["mean"] = torch.zeros_like(parameter)
        state["mean"] = state["mean"] * 0.9 + parameter.grad * 0.1
        parameter.sub_(state["mean"] * group["lr"])


class Foreach(Own):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            parameters = group["params"]
            for one in parameters:
                if not self.state[one]:
                    self.state[one].update(mean=torch.zeros_like(one), step=torch.tensor(0.0))
            means = [self.state[one]["mean"] for one in parameters]
            torch._foreach_add_([self.state[one]["step"] for one in parameters], 1)
            torch._foreach_lerp_(means, [one.grad for one in parameters], 0.1)
            norms = [one.clamp_min(1e-6) for one in torch._foreach_norm(means)]
            torch._foreach_add_(parameters, torch._foreach_div(means, norms), alpha=-group["lr"])


class Lamb(Own):
    def update(self, group, parameter, state):
        if not state:
            state["mean"], state["step"] = torch.zeros_like(parameter), 0
        state["step"] += 1
        state["mean"].lerp_(parameter.grad, 0.1)
        change = state["mean"] / (1 - 0.9 ** state["step"])
        parameter.sub_(change * self.trust(parameter, change) * group["lr"])

    def trust(self, parameter, change):
        weight, size = parameter.norm(), change.norm()
        return torch.where((weight > 0) & (size > 0), weight / size, torch.ones(()))


class LambOnHost(Lamb):
    def trust(self, parameter, change):
        weight, size = parameter.norm().item(), change.norm().item()
        return weight / size if weight > 0 and size > 0 else 1.0


class ScheduleFree(Own):
    """Weights of training and of evaluation, as facebookresearch/schedule_free has them."""

    def __init__(self, parameters):
        super().__init__(parameters, k=0, weights=0.0, trains=False)

    @torch.no_grad()
    def train(self):
        self._move(True, 0.1)

    @torch.no_grad()
    def eval(self):
        self._move(False, -1 / 9)

    def _move(self, trains, weight):
        for group in self.param_groups:
            for one in group["params"] if group["trains"] != trains else ():
                if "z" in self.state[one]:
                    one.lerp_(end=self.state[one]["z"], weight=weight)
            group["trains"] = trains

    def begin_group(self, group):
        assert group["trains"]
        group["k"] += 1
        group["weights"] += group["lr"] ** 2

    def update(self, group, parameter, state):
        if "z" not in state:
            state["z"] = torch.clone(parameter)
        share = group["lr"] ** 2 / group["weights"]
        parameter.lerp_(end=state["z"], weight=share)
        parameter.add_(parameter.grad, alpha=group["lr"] * (0.9 * (1 - share) - 1))
        state["z"].sub_(parameter.grad, alpha=group["lr"])


class AroundAdamW(torch.optim.AdamW):
    def step(self, closure=None):
        self.calls = getattr(self, "calls", 0) + 1
        for group in self.param_groups:
            for one in group["params"]:
                one.grad.div_(self.calls)
        returned = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for one in group["params"]:
                    one.mul_(1 - 0.01 / self.calls)
        return returned


class KeepsGradient(Own):
    def update(self, group, parameter, state):
        before = state.get("gradient")
        if before is not None:
            parameter.sub_((parameter.grad - before) * group["lr"])
        state["gradient"] = parameter.grad


class Swaps(Own):
    def update(self, group, parameter, state):
        if not state:
            state.update(a=torch.zeros_like(parameter), b=torch.zeros_like(parameter))
        state["a"].mul_(0.9).add_(parameter.grad)
        state["a"], state["b"] = state["b"], state["a"]
        parameter.sub_(state["a"] * group["lr"])


class EachThirdStep(Own):
    def update(self, group, parameter, state):
        if not state:
            state.update(step=0, scale=torch.ones_like(parameter))
        state["step"] += 1
        if state["step"] % 3 == 0:
            state["scale"].lerp_(parameter.grad.abs(), 0.5)
        parameter.sub_(parameter.grad / state["scale"] * group["lr"])


class NumberOfDevice(Own):
    """A value of the step in a tensor that looks like a step count."""

    def update(self, group, parameter, state):
        if not state:
            state["norm"] = torch.tensor(0.0)
        state["norm"].mul_(0.9).add_(parameter.grad.norm())
        parameter.sub_(parameter.grad / (1 + state["norm"]) * group["lr"])


class ClonesAfterUpdate(Own):
    """Its state begins with what the first update gives."""

    def update(self, group, parameter, state):
        parameter.sub_(parameter.grad * group["lr"])
        if not state:
            state["slow"] = parameter.clone()
        state["slow"].lerp_(parameter, 0.5)
