# SPDX-License-Identifier: Apache-2.0
"""Planned training by the Trainer of Hugging Face's transformers.

    trainer = stowage.hf.wrap(Trainer(...), budget="24GiB")
    trainer.train()

The Trainer's own loop goes on as it is: data, logging, evaluation, saving, callbacks, resuming.
Some methods of this one trainer are replaced, so that its calls for the first micro-batch of an
optimizer step take the whole planned step (forward and backward of each micro-batch, clipping,
update), and its later calls find what that has given.
"""

import contextlib
import functools
import types
import warnings

import torch

from . import _errors
from ._step import step as planned_step

# What the loop would call between two parts of a step. A planned step has no such moments.
_EVENTS_INSIDE = ("on_substep_end", "on_pre_optimizer_step", "on_optimizer_step")
_MARK = "_stowage"


def wrap(trainer, budget, host=None, new_shapes="plan", *, allow=None, disk=None,
         verify_disk=False):
    """Lets `trainer.train()` run by a plan within `budget`. Returns the trainer.

    trainer: transformers.Trainer, or one derived from it, for one process and one device.
    All others are as in stowage.step. new_shapes: a batch of another shape, like the smaller last
    one of an epoch, gets a plan of its own when it first comes, which takes seconds: fewer shapes
    need fewer (dataloader_drop_last=True, the collator's padding="max_length", or
    pad_to_multiple_of). So does a batch for which the model computes something else, like one
    without padding after one with some. new_shapes="refuse" makes both an error.
    evaluate() and predict() run by plans on the same state, one for each shape; their results are
    on the CPU. What no plan can hold (generate()) ends planned training until the next step, with
    a warning, and the model must fit on the device then.
    Between steps the model has no values of its own but inside of save_model(), or of
    `with stowage.hf.step_of(trainer).live():`. After train() it has.
    gradient_checkpointing=True does nothing: the plan decides what to recompute.
    Raises Unsupported for what no plan can hold, and what stowage.step raises, from train().
    """
    if hasattr(trainer, _MARK):
        raise _errors.InvalidArgument("the trainer is wrapped already: call wrap() once")
    _check_arguments(trainer)
    options = {"budget": budget, "host": host, "allow": allow, "disk": disk,
               "verify_disk": verify_disk, "new_shapes": new_shapes}
    setattr(trainer, _MARK, _PlannedTrainer(trainer, options))
    return trainer


def step_of(trainer):
    """The stowage.PlannedStep of the training under way: live(), facts(), ...; None outside of it.

    For callbacks, and for code between steps.
    """
    return getattr(trainer, _MARK).planned


class _PlannedTrainer:
    """Of one trainer: its methods as they were, and the step under way."""

    def __init__(self, trainer, options):
        self._trainer = trainer
        self._options = options  # of stowage.step
        self.planned = None  # from the first step of a train() to its end
        self._batches = None  # micro-batches of the step to come, and how many labels they have
        self._items = None
        self._given = None  # what the planned step returned
        self._next = 0  # micro-batch that the loop asks for next
        self._is_updated = True  # has the loop asked for the update?
        self._in_step = False
        self._undo_optimizer = None
        self._evaluations = {}  # by what prediction_step() is to return
        self._original = {}
        for name in ("get_batch_samples", "training_step", "_clip_grad_norm", "_get_grad_norm",
                     "_inner_training_loop", "_finalize_training", "prediction_step"):
            self._replace(name, getattr(self, "_on_" + name.lstrip("_")))
        for name in ("save_model", "_save_checkpoint"):
            self._replace(name, functools.partial(self._on_save, name))

    def _replace(self, name, function):
        self._original[name] = getattr(self._trainer, name)

        @functools.wraps(self._original[name])
        def replaced(*args, **kwargs):
            return function(*args, **kwargs)

        setattr(self._trainer, name, replaced)

    # --- what the Trainer's loop calls, in this order ---

    def _on_inner_training_loop(self, *args, **kwargs):
        _check_arguments(self._trainer)
        try:
            return self._original["_inner_training_loop"](*args, **kwargs)
        finally:
            self._leave()

    def _on_get_batch_samples(self, *args, **kwargs):
        taken = self._original["get_batch_samples"](*args, **kwargs)
        self._batches, self._items = taken
        self._next = 0
        return taken

    def _on_training_step(self, model, inputs, *args, **kwargs):
        if self._in_step:
            return self._original["training_step"](model, inputs, *args, **kwargs)
        batches = self._batches
        if batches is None or self._next >= len(batches) or inputs is not batches[self._next]:
            raise _errors.Unsupported(
                "found a call of training_step() with a batch that get_batch_samples() did not "
                "give: expected the Trainer's own loop, which plans a step of all micro-batches")
        if self._next == 0:
            self._take_step(model)
        loss = self._given["losses"][self._next]
        self._next += 1
        return loss.to(self._trainer.args.device)

    def _on_clip_grad_norm(self, *args, **kwargs):
        if self._in_step:
            return self._original["_clip_grad_norm"](*args, **kwargs)
        return self._given["grad_norm"]

    def _on_get_grad_norm(self, *args, **kwargs):
        if self._in_step:
            return self._original["_get_grad_norm"](*args, **kwargs)
        return self._given["grad_norm"]

    def _on_optimizer_step(self, *args, **kwargs):
        """The update was a part of the planned step."""
        if self._given is None or self._is_updated or self._next < len(self._batches):
            raise _errors.Unsupported(
                "found optimizer.step() where no planned step went before it: expected the "
                "Trainer's own loop, which calls it once after all micro-batches")
        self._is_updated = True

    def _on_finalize_training(self, *args, **kwargs):
        self._leave()  # what follows may load the best model
        return self._original["_finalize_training"](*args, **kwargs)

    def _on_save(self, name, *args, **kwargs):
        with self._values():
            return self._original[name](*args, **kwargs)

    def _on_prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        original = self._original["prediction_step"]
        planned = self.planned
        if planned is None or self._in_step or not planned._is_running() or planned._is_live:
            return original(model, inputs, prediction_loss_only, ignore_keys=ignore_keys)
        wanted = (prediction_loss_only, None if ignore_keys is None else tuple(ignore_keys))
        if wanted not in self._evaluations:
            def predict(trainer, inputs):
                self._in_step = True
                try:
                    return original(model, inputs, prediction_loss_only, ignore_keys=ignore_keys)
                finally:
                    self._in_step = False

            self._evaluations[wanted] = planned.evaluation(
                types.MethodType(predict, self._trainer))
        try:
            return self._evaluations[wanted](inputs)
        except _errors.Unsupported as error:
            warnings.warn(
                f"evaluation runs without a plan, and the next step is planned anew: {error}",
                stacklevel=2)
        planned.leave()
        return original(model, inputs, prediction_loss_only, ignore_keys=ignore_keys)

    # --- the step ---

    def _take_step(self, model):
        if not self._is_updated:
            raise _errors.Unsupported(
                "found a new optimizer step before the update of the last one: a planned step "
                "holds both")
        model.train()  # as training_step() does; the plan is made so
        gradients = self._trainer.accelerator.gradient_state
        synchronizes = gradients.sync_gradients
        try:
            if self.planned is None:
                self._begin(model)
                self._capture()
            self._given = self._call()
        finally:
            gradients._set_sync_gradients(synchronizes)
        self._is_updated = False

    def _capture(self):
        """The library puts attributes of the trainer back; new ones go here."""
        attributes = vars(self._trainer)
        before = set(attributes)
        try:
            self.planned.capture(self._batches, self._items)
        finally:
            for name in attributes.keys() - before:
                del attributes[name]

    def _call(self):
        try:
            return self.planned(self._batches, self._items)
        except _errors.StepChanged as error:
            if self._options["new_shapes"] == "refuse":
                raise
            # The state is that of the step before. A mask without padding may lead elsewhere.
            warnings.warn(
                f"the step is captured and planned anew, which takes seconds, because {error}\n"
                "Batches without padding, or all with some, need one plan", stacklevel=2)
        self.planned.leave()
        return self.planned(self._batches, self._items)

    def _begin(self, model):
        trainer = self._trainer
        _check_callbacks(trainer)
        if model is not trainer.model:
            raise _errors.Unsupported(
                f"the Trainer wrapped the model in {type(model).__name__}, expected the model "
                "itself: train in one process on one device")
        optimizer = trainer.optimizer
        if hasattr(optimizer, "optimizer"):  # accelerate's wrapper
            optimizer, wrapper = optimizer.optimizer, optimizer
        else:
            raise _errors.Unsupported(
                f"found the optimizer {type(optimizer).__name__}, expected one that accelerate "
                "has prepared, as train() does")
        update = wrapper.step
        own = vars(wrapper).get("step")

        def undo():
            if own is None:
                del wrapper.step
            else:
                wrapper.step = own

        def step(trainer, batches, items):
            # The library puts back what it changes in attributes of the trainer while it captures.
            return self._whole_step(model, update, batches, items)

        asked = functools.partial(self._on_optimizer_step)  # which takes attributes
        # A scheduler marks the step() that it wraps, and warns about one without the mark.
        asked._wrapped_by_lr_sched = True
        wrapper.step = asked
        self._undo_optimizer = undo
        self._is_updated = True
        self.planned = planned_step(
            model, optimizer, device=trainer.args.device.type, **self._options,
        )(types.MethodType(step, trainer))

    def _whole_step(self, model, update, batches, items):
        """What the loop does between two steps, for tensors that may have no memory."""
        trainer = self._trainer
        gradients = trainer.accelerator.gradient_state
        self._in_step = True
        try:
            losses = []
            for i, inputs in enumerate(batches):
                gradients._set_sync_gradients(i == len(batches) - 1)
                losses.append(trainer.training_step(model, inputs, items))
            norm = None
            if trainer.args.max_grad_norm > 0:
                norm = trainer._clip_grad_norm(model)
            norm = trainer._get_grad_norm(model, grad_norm=norm)
            update()
            model.zero_grad()
            return {"losses": losses, "grad_norm": norm}
        finally:
            self._in_step = False

    @contextlib.contextmanager
    def _values(self):
        """The model has values inside. What is drawn there counts, as without a plan."""
        if self.planned is None or self._in_step:
            yield
            return
        drawn = None
        try:
            with self.planned.live():
                try:
                    yield
                finally:
                    drawn = torch.get_rng_state()
        finally:
            if drawn is not None:
                torch.set_rng_state(drawn)

    def _leave(self):
        planned, self.planned = self.planned, None
        self._evaluations = {}
        self._batches = self._given = None
        if self._undo_optimizer is not None:
            self._undo_optimizer()
            self._undo_optimizer = None
        if planned is not None:
            planned.leave()


# --- what is refused ---


def _check_arguments(trainer):
    args = trainer.args
    for is_found, what, way_out in (
        (args.world_size > 1, f"{args.world_size} processes", "start one process"),
        (args.n_gpu > 1, f"{args.n_gpu} GPUs in one process (DataParallel)",
         "show the process one, CUDA_VISIBLE_DEVICES=0"),
        (trainer.is_deepspeed_enabled, "DeepSpeed",
         "leave deepspeed= out; the budget takes the place of its offloading"),
        (trainer.is_fsdp_enabled, "FSDP", "leave fsdp= out; the budget takes its place"),
        (getattr(trainer.accelerator, "parallelism_config", None) is not None,
         "a parallelism_config", "leave it out, on one device"),
        (args.torch_compile, "torch_compile", "set torch_compile=False"),
        (hasattr(trainer.model, "_orig_mod"), "a model from torch.compile",
         "give the model itself"),
        (args.fp16, "fp16, whose scaler decides on the host whether to update", "set bf16=True"),
        (args.auto_find_batch_size, "auto_find_batch_size", "stowage.fit() finds it beforehand"),
        (str(getattr(args.optim, "value", args.optim)).lower() in ("lomo", "adalomo"),
         "an optimizer that updates inside of backward", "use another optim"),
    ):
        if is_found:
            raise _errors.Unsupported(
                f"the Trainer has {what}, which a plan cannot hold: {way_out}")
    if args.device.type not in ("cpu", "cuda"):
        raise _errors.Unsupported(f"the Trainer trains on {args.device}, expected cpu or cuda")


def _check_callbacks(trainer):
    from transformers import TrainerCallback

    for callback in trainer.callback_handler.callbacks:
        for event in _EVENTS_INSIDE:
            if getattr(type(callback), event, None) is not getattr(TrainerCallback, event):
                raise _errors.Unsupported(
                    f"the callback {type(callback).__name__} has {event}(), which would look into "
                    "the middle of a step, and a planned step runs as one: use on_step_begin() or "
                    "on_step_end(), or remove_callback()")
