# SPDX-License-Identifier: Apache-2.0
"""What Python adds to a checkpoint of the library: numbers of optimizers and schedulers.

The library writes tensors, step counts and the generator's state, and keeps one text of ours beside
them: options of the optimizers' groups, numbers in their state, what schedulers hold, and, for a
step on a GPU, the state of the CPU's generator.
"""

import base64
import io

import torch

from . import _errors, _library
from ._optimizer import OptimizerView

_VERSION = 1


def pack(captured, steps, outside):
    """The text for a checkpoint of a training that has done so many steps."""
    inside = captured.schedulers()
    if outside is None:
        _require_schedulers(captured, inside)
    kept = {
        "version": _VERSION,
        "steps": steps,
        "optimizers": [_numbers_of(view) for view in captured.views],
        "inside": [one.state_dict() for one in inside],
        "outside": [one.state_dict() for one in outside or []],
        "cpu_generator": None if captured.device == "cpu" else torch.get_rng_state(),
    }
    written = io.BytesIO()
    torch.save(kept, written)
    text = base64.b64encode(written.getvalue()).decode()
    try:
        _unpack(text)
    except Exception as error:
        raise _errors.InvalidArgument(
            "an optimizer's options or a scheduler hold what a checkpoint cannot keep (numbers, "
            f"texts, tensors and containers of them): {error}") from None
    return text


class Loaded:
    """A checkpoint's numbers, on their way to the objects. Raises before it changes any."""

    def __init__(self, folder, optimizers, outside):
        self.folder = folder
        self._text = _note_of(folder)
        self._kept = _unpack(self._text)
        self._views = [OptimizerView(one) for one in optimizers]
        self._outside = outside
        self.steps = self._kept["steps"]
        self._check()

    def put_options(self):
        """What the user may look at, or change, before the next step."""
        for view, numbers in zip(self._views, self._kept["optimizers"], strict=True):
            _put_options(view.optimizer, numbers["options"])
        for scheduler, state in zip(self._outside or [], self._kept["outside"], strict=True):
            scheduler.load_state_dict(state)

    def load(self, captured, runner):
        """All the rest. Options stay as they are now."""
        if _note_of(self.folder) != self._text:
            raise _errors.FileError(
                f"the checkpoint '{self.folder}' was replaced since load() read it: load it again")
        options = [numbers.options for numbers in (view.take_numbers() for view in captured.views)]
        captured.advance = lambda steps: self._put_numbers(captured)
        try:
            captured.call(runner.load, self.folder)
        finally:
            captured.advance = None
        for view, before in zip(captured.views, options, strict=True):
            _put_options(view.optimizer, before)
        if self._kept["cpu_generator"] is not None:
            torch.set_rng_state(self._kept["cpu_generator"])

    def _put_numbers(self, captured):
        for view, numbers in zip(captured.views, self._kept["optimizers"], strict=True):
            for parameter, kept in zip(view.parameters, numbers["state"], strict=True):
                _put_state(view.optimizer.state.get(parameter), kept)
        inside = captured.schedulers()
        if len(inside) != len(self._kept["inside"]):
            raise _errors.InvalidArgument(
                f"the step steps {len(inside)} schedulers, the checkpoint '{self.folder}' has "
                f"{len(self._kept['inside'])}")
        for scheduler, state in zip(inside, self._kept["inside"], strict=True):
            scheduler.load_state_dict(state)

    def _check(self):
        found = [_sizes_of(view.optimizer) for view in self._views]
        saved = [numbers["sizes"] for numbers in self._kept["optimizers"]]
        if found != saved:
            raise _errors.InvalidArgument(
                f"the optimizers have groups of {found} parameters, those of the checkpoint "
                f"'{self.folder}' have {saved}")
        has, given = len(self._kept["outside"]), len(self._outside or [])
        if has != given:
            raise _errors.InvalidArgument(
                f"the checkpoint '{self.folder}' has {has} schedulers from outside of the step, "
                f"found {given}: name as many as save() was given, load(folder, schedulers=[...])")


def _numbers_of(view):
    return {
        "sizes": _sizes_of(view.optimizer),
        "options": view.take_numbers().options,
        "state": [_state_numbers(view, parameter) for parameter in view.parameters],
    }


def _state_numbers(view, parameter):
    kept = {}
    for key, value in view.optimizer.state.get(parameter, {}).items():
        if view.is_host_number(value):
            kept[key] = value.item()
        elif isinstance(value, (int, float, bool)):
            kept[key] = value
    return kept


def _put_state(state, kept):
    for key, value in kept.items():
        if state is None:
            return
        if isinstance(state.get(key), torch.Tensor):
            state[key].fill_(value)
        else:
            state[key] = value


def _put_options(optimizer, options):
    for group, kept in zip(optimizer.param_groups, options, strict=True):
        for key, value in kept.items():
            if isinstance(group.get(key), torch.Tensor) and isinstance(value, torch.Tensor):
                group[key].copy_(value)
            else:
                group[key] = value


def _sizes_of(optimizer):
    return [len(group["params"]) for group in optimizer.param_groups]


def _require_schedulers(captured, inside):
    for view in captured.views:
        optimizer = view.optimizer
        scheduled = any("initial_lr" in group for group in optimizer.param_groups)
        if scheduled and not any(getattr(one, "optimizer", None) is optimizer for one in inside):
            raise _errors.InvalidArgument(
                f"{type(optimizer).__name__} has a scheduler that the step does not step, so its "
                "state is not known here: save(folder, schedulers=[scheduler]), and the same with "
                "load(); schedulers=[] where you save it yourself")


def _note_of(folder):
    try:
        return torch.ops.stowage.checkpoint_note(folder)
    except RuntimeError as error:
        raise _errors.from_library(error) or error from None


def _unpack(text):
    kept = torch.load(io.BytesIO(base64.b64decode(text)), weights_only=True)
    if kept.get("version") != _VERSION:
        raise _errors.FileError(
            f"the checkpoint's numbers have version {kept.get('version')}, expected {_VERSION}")
    return kept
