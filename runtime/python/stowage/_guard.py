# SPDX-License-Identifier: Apache-2.0
"""What others call on a model and its optimizers while these hold tensors without memory.

- state_dict(): values are fetched. save_pretrained() and the like work by it.
- load_state_dict(): values go into the training. Where they do not fit into its plan, the objects
  get their memory back first, and the next step is captured anew.
- to(), half() and their kind: refused, where they would change anything.
- Calling the model, and an optimizer's step(), outside of the planned step: refused.
Before the first step, whatever is called finds the objects as they were.
"""

import atexit
import functools
import weakref

import torch

from . import _errors, _loading, _tracing
from ._optimizer import inner_of

_guards = weakref.WeakSet()


@atexit.register
def _end_all():
    # The interpreter still works, so that the library may call it while it lets go.
    for guard in list(_guards):
        guard.end()


class _Installed:
    def __init__(self):
        self._undo = []

    @property
    def is_active(self):
        return bool(self._undo)

    def add(self, undo):
        self._undo.append(undo)

    def undo(self):
        while self._undo:
            self._undo.pop()()


class _Call:
    """A wrapped method. Objects that have one are not copied: the copy would have no values."""

    def __init__(self, function, original):
        functools.update_wrapper(self, original)
        self._function = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __reduce_ex__(self, protocol):
        raise _errors.InvalidArgument(
            "the model would be copied or written while a planned training has its values: do it "
            "inside of `with train_step.live():`, or write model.state_dict()")


class Guard:
    """Wraps methods of the objects (not of their classes) between `install` and `uninstall`."""

    def __init__(self, owner, model, optimizers):
        self._owner = weakref.ref(owner)
        self._model = model
        self._optimizers = [inner_of(one) for one in optimizers]
        self._of_model = _Installed()
        self._of_optimizers = _Installed()
        _guards.add(self)

    def install(self):
        self.uninstall()
        for module in self._model.modules():
            self._wrap(self._of_model, module, "state_dict", self._with_values)
            self._wrap(self._of_model, module, "load_state_dict", self._load_model)
            self._wrap(self._of_model, module, "_apply", self._when_converted)
        hook = self._model.register_forward_pre_hook(self._before_forward)
        self._of_model.add(hook.remove)
        for optimizer in self._optimizers:
            self._wrap(self._of_optimizers, optimizer, "state_dict", self._with_optimizer_values)
            self._wrap(self._of_optimizers, optimizer, "load_state_dict", self._load_optimizer)
            hook = optimizer.register_step_pre_hook(self._before_step)
            self._of_optimizers.add(hook.remove)

    def uninstall(self):
        self._of_model.undo()
        self._of_optimizers.undo()

    def uninstall_from_model(self):
        """So that it can be copied and written while it has memory."""
        self._of_model.undo()

    def end(self):
        """Lets go of everything, without giving values back."""
        owner = self._owner()
        self.uninstall()
        if owner is not None:
            owner._drop()

    def _wrap(self, installed, target, name, around):
        before = target.__dict__.get(name)
        original = getattr(target, name)

        def guarded(*args, **kwargs):
            # Whoever took this method before it was put back and wrapped again has it, too.
            if not installed.is_active or self._holder() is None:
                return original(*args, **kwargs)
            return around(target, functools.partial(original, *args, **kwargs))

        call = _Call(guarded, original)

        def undo():
            if target.__dict__.get(name) is not call:
                return  # somebody wrapped it again; it does nothing of its own any more
            if before is None:
                del target.__dict__[name]
            else:
                target.__dict__[name] = before

        target.__dict__[name] = call
        installed.add(undo)

    def _holder(self):
        """The planned step whose tensors the objects hold; None where there is nothing to do."""
        owner = self._owner()
        tracing = _tracing.current() is not None
        if owner is None or tracing or (owner._captured is None and owner._pending is None):
            return None
        return owner

    def _with_values(self, module, call):
        with self._holder().live():
            return call()

    def _load_model(self, module, call):
        owner = self._holder()
        owner._refuse_pending("load_state_dict()")
        assigns = call.keywords.get("assign", len(call.args) > 2 and call.args[2])
        if not owner._is_running() or assigns:
            owner.leave()
            return call()
        return _loading.load_model(owner, module, call)

    def _load_optimizer(self, optimizer, call):
        owner = self._holder()
        owner._refuse_inside_live("load_state_dict()")
        owner._refuse_pending("load_state_dict()")
        if owner._is_running():
            if _loading.load_optimizer(owner, optimizer, *call.args, **call.keywords):
                return None
        owner.leave()
        return call()

    def _when_converted(self, module, call):
        """_apply(function, ...), by which to(), cuda(), half() and the like change tensors."""
        owner = self._holder()
        if not owner._is_running():
            owner._give_back()
            return call()
        function = call.args[0]
        for tensor in (*module.parameters(), *module.buffers()):
            try:
                same = function(tensor) is tensor
            except RuntimeError:
                same = False
            if not same:
                raise _errors.InvalidArgument(
                    "the model would be converted (to(), cuda(), half() or the like) while its "
                    "values are those of a planned training: call train_step.leave() before")
        return module

    def _with_optimizer_values(self, optimizer, call):
        owner = self._holder()
        owner._refuse_pending("state_dict()")
        if not owner._is_running():
            owner._give_back()
            return call()
        captured = owner._captured
        if not owner._is_live:
            captured.call(owner._runner.handle.take_turn)
        return _with_values(call(), lambda some: captured.call(owner._runner.handle.values, some))

    def _before_forward(self, module, args):
        owner = self._holder()
        if owner is None:
            return
        if owner._is_running():
            raise _errors.InvalidArgument(
                "the model was called outside of its planned step, which holds its values: "
                "evaluate inside of `with train_step.live():`, or end planned training, "
                "train_step.leave()")
        owner._refuse_pending("a call of the model")
        owner._give_back()

    def _before_step(self, optimizer, args, kwargs):
        owner = self._holder()
        if owner is not None and owner._is_running():
            raise _errors.InvalidArgument(
                f"{type(optimizer).__name__}.step() was called outside of the planned step, which "
                "holds its state: call it in the step, or end planned training, train_step.leave()")


def _with_values(state, values_of):
    """An optimizer's state_dict with copies in the place of its tensors."""
    flat, form = torch.utils._pytree.tree_flatten(state["state"])
    places = [i for i, one in enumerate(flat) if isinstance(one, torch.Tensor)]
    for i, value in zip(places, values_of([flat[i] for i in places]), strict=True):
        # Those that have memory (step counts) came back as they are, and go on counting.
        flat[i] = value.clone() if value is flat[i] else value
    return {**state, "state": torch.utils._pytree.tree_unflatten(flat, form)}
