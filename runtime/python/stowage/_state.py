# SPDX-License-Identifier: Apache-2.0
"""The state of a planned training as its user sees it: live objects, state_dict(), checkpoints.

While a step is captured, model and optimizers hold tensors without memory (their values are in the
plan's arena). Here is what gives them values for a while, or for good.
"""

import contextlib
import json
import warnings

import torch

from . import _checkpoint, _errors
from ._guard import Guard


class StateMethods:
    """Of a PlannedStep, which has `_model`, `_optimizers`, `_captured` and `_runner`."""

    _captured = None
    _runner = None
    _guard = None
    _homes = None
    _pending = None  # a checkpoint that the next step loads
    _is_live = False

    # --- for users ---

    @contextlib.contextmanager
    def live(self):
        """The model holds what the training has come to, to evaluate or to write it.

            with train_step.live() as model:
                model.eval()
                ...

        Its tensors are copies on the CPU. Nothing that happens to them inside counts: values,
        gradients, requires_grad, train() and eval() and torch's generators are put back, and the
        steps that follow give the bits that they would have given. Optimizer state stays without
        memory, but optimizer.state_dict() works. Raises InvalidArgument for a step inside.
        """
        self._refuse_pending("live()")
        if self._is_live or not self._is_running():
            self._give_back()
            yield self._model
            return
        modes = [(one, one.training) for one in self._model.modules()]
        self._guard.uninstall_from_model()
        try:
            self._captured.call(self._runner.handle.begin_read)
            self._is_live = True
            try:
                yield self._model
            finally:
                self._is_live = False
                for module, trains in modes:
                    module.training = trains
                self._captured.call(self._runner.handle.end_read)
        finally:
            self._guard.install()

    def state_dict(self):
        """{"model": model.state_dict(), "optimizer": optimizer.state_dict()}, in host memory.

        With a list of optimizers, "optimizer" is the list of theirs. While the training is planned,
        all tensors are copies.
        """
        with self.live() as model:
            of_model = model.state_dict()
        of_optimizers = [one.state_dict() for one in self._optimizers]
        one = of_optimizers[0] if len(of_optimizers) == 1 else of_optimizers
        return {"model": of_model, "optimizer": one}

    def load_state_dict(self, state):
        """Takes what `state_dict` returned; a planned training goes on with it."""
        if self._is_lost():
            self._drop()
        self._model.load_state_dict(state["model"])
        given = state["optimizer"]
        for optimizer, one in zip(self._optimizers, given if isinstance(given, (list, tuple))
                                  else [given], strict=True):
            optimizer.load_state_dict(one)

    def save(self, folder, schedulers=None):
        """Writes a checkpoint: the whole folder or none, over one that is there.

        It holds parameters, buffers, optimizer state and options, the state of the generator that
        the step draws from, and the schedulers that the step itself steps. schedulers: those that
        are stepped outside of it; [] where they are saved elsewhere.
        model.safetensors in it is a file of weights like any other. Raises InvalidArgument before
        the first step, FileError.
        """
        self._refuse_inside_live("save()")
        if not self._is_running():
            raise _errors.InvalidArgument(
                "no planned training is under way, so there is nothing to save: take a step before "
                "save(); outside of planned training, torch.save(train_step.state_dict(), path)")
        captured, runner = self._captured, self._runner
        runner.finish()
        note = _checkpoint.pack(captured, runner.facts()["steps"], schedulers)
        captured.call(runner.handle.save, str(folder), note)

    def load(self, folder, *args, schedulers=None, **kwargs):
        """Goes on from a checkpoint. Returns how many steps it has done.

        schedulers: as given to `save`, new ones in the same order. Options of the optimizers and
        these schedulers are put back now; all else by the next step, or now when an example of its
        arguments follows: train_step.load(folder, batch).
        Raises FileError; InvalidArgument when optimizers or schedulers do not fit; StepChanged when
        tensors do not.
        """
        self._refuse_inside_live("load()")
        loaded = _checkpoint.Loaded(str(folder), self._optimizers, schedulers)
        self._pending = None
        if self._is_lost():
            self._drop()  # the checkpoint has a state
        else:
            self._give_back()
        loaded.put_options()
        self._pending = loaded
        self._guard = self._guard or Guard(self, self._model, self._optimizers)
        self._guard.install()
        if args or kwargs:
            self._begin(args, kwargs)
        return loaded.steps

    def release(self):
        """Gives the device memory of the plan back until `restore`, to generate or to evaluate in
        another program; between two steps.

        Host memory holds what is on the device (for a GPU it is pinned, and stays so for the next
        release). What lies beside the plan's memory stays: `facts()["outside_bytes"]`. Until
        `restore` all but `facts` and `discard` raises InvalidArgument. Returns {"bytes": copied,
        "copy_ns": of the copies, "whole_ns": of all}. Raises OutOfMemory where the host has no
        room, and then nothing was released; InvalidArgument before the first step.
        """
        return self._move_arena("release")

    def restore(self):
        """Gets the memory back, and the steps go on with the bits that they would have had.

        Returns what `release` does. Raises OutOfMemory where something else has the memory: nothing
        is lost, and it can be tried again.
        """
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return self._move_arena("restore")

    def leave(self):
        """Ends planned training: model and optimizers hold their values again, as plain tensors.

        They are where they were, gradients are None. Plain PyTorch goes on with the same bits, and
        calling the step captures and plans it again. Raises what the step raised where an op of it
        failed: then the state is lost, and load(folder) or discard() is the way on.
        """
        self._refuse_inside_live("leave()")
        self._refuse_pending("leave()")
        if self._is_lost():
            raise _errors.InvalidArgument(
                "an op of a step failed, and the state of the training is lost: load(folder) goes "
                "on from a checkpoint, load_state_dict() from a state; discard() gives model and "
                "optimizers what they held before the first planned step")
        self._give_back()

    def discard(self):
        """Ends planned training without its values: model and optimizers hold again what they held
        before its first step."""
        self._refuse_inside_live("discard()")
        self._pending = None
        self._drop()

    def __del__(self):
        # Nobody can leave any more; the model may have an owner who wants its values.
        captured = self._captured
        if captured is None:
            return
        captured.keep_reachable(True)
        try:
            if self._is_released():
                self.restore()
            self._give_back()
        except Exception as error:  # noqa: BLE001 - nobody could catch it
            warnings.warn(f"a planned training ended without its values: {error}", stacklevel=1)
            self._drop()
        finally:
            captured.keep_reachable(False)

    # --- for the package ---

    def _is_running(self):
        return self._runner is not None

    def _is_lost(self):
        """Did an op of a step fail, so that the state is gone?"""
        return self._runner is not None and self._runner.handle.is_lost()

    def _is_released(self):
        return self._runner is not None and self._runner.handle.is_released()

    def _move_arena(self, how):
        self._refuse_inside_live(f"{how}()")
        self._refuse_pending(f"{how}()")
        if not self._is_running():
            raise _errors.InvalidArgument(
                f"found {how}() while no planned training is under way, which has no device memory: "
                "expected it after a step")
        with self._alone_on_this_thread(f"{how}()"):
            return json.loads(self._captured.call(getattr(self._runner.handle, how)))

    def _hold(self, homes):
        """Model and optimizers have just been captured."""
        self._homes = homes
        self._guard = self._guard or Guard(self, self._model, self._optimizers)
        self._guard.install()
        written = json.loads(self._captured.handle.describe())["written_outside"]
        if written:
            warnings.warn(
                f"the step writes {written} tensors that are in neither model nor optimizers (an "
                "average of the parameters?): while it is planned they hold its values inside of "
                "`with train_step.live():` alone, and after train_step.leave()", stacklevel=4)

    def _give_back(self, to_homes=True):
        """They get back what they held, or what the training has come to: where they were before,
        or on the host."""
        if self._captured is None or self._is_live:
            return
        if self._is_released():
            raise _errors.InvalidArgument(
                "the device memory of this training was released: call restore() before")
        self._guard.uninstall()
        self._further.end()
        if self._runner is None:
            self._captured.release()
        else:
            state = [tensor for view in self._captured.views
                     for position in range(len(view.parameters))
                     for tensor in view.state_of(position)[1]]
            try:
                self._captured.call(self._runner.handle.store_back)
            except BaseException:
                self._guard.install()
                raise
            self._runner = None
            if to_homes:
                self._homes.bring_back(state)
        self._captured = None

    def _load_pending(self):
        """A new runner goes on from the checkpoint that was named."""
        if self._pending is None:
            return
        try:
            self._pending.load(self._captured, self._runner.handle)
        except BaseException:
            self._drop()  # the runner may hold a part of the checkpoint
            raise
        self._pending = None

    def _drop(self):
        """Model and optimizers get back what they held before the capture."""
        self._guard.uninstall()
        self._further.end()
        runner, self._runner = self._runner, None
        captured, self._captured = self._captured, None
        if runner is not None:
            runner.handle.end()
        if captured is not None:
            captured.release()

    def _refuse_pending(self, what):
        if self._pending is not None:
            raise _errors.InvalidArgument(
                f"found {what} before the checkpoint '{self._pending.folder}' was loaded, which "
                "the next step does: take a step before, or name an example of its arguments when "
                "loading: train_step.load(folder, batch)")

    def _refuse_inside_live(self, what):
        if self._is_live:
            raise _errors.InvalidArgument(
                f"found {what} inside of live(), where the model holds copies: expected it after")
