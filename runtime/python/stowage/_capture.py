# SPDX-License-Identifier: Apache-2.0
"""A training step of Python as the library sees it.

The step is a function: forward, loss, backward, clipping, optimizers, schedulers. The library calls
it with tensors that have no memory: several times while it is captured, then once beside each
planned step. So all of its Python code runs exactly once per step.
"""

import contextlib
import ctypes
import sys
import traceback
import weakref

import torch

from . import _errors, _library, _progress, _tracing
from ._given import plain_tensors, refuse_bad_inputs, refuse_hidden_tensors
from ._host_state import HostState
from ._optimizer import OptimizerView, keeps_counts_on_device
from ._refused_optimizers import check_optimizer
from ._replaced_state import ReplacedState
from ._tree import Tree

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
_MOST_READS = 256  # of values that a step computes, in one line


class CapturedStep:
    """`function(*args, **kwargs)` captured for a device.

    model: the torch.nn.Module whose parameters and buffers the step uses.
    optimizers: all that the step steps.
    device: "cpu", "cuda", or a GPU by its profile ("h200") that need not be here.
    main: the CapturedStep on whose state this one works; then this is a further step of that one.
    trains: False for forward alone. ranks: processes that train together.
    Raises Unsupported, naming the op and the line, for what no plan can hold; whatever the function
    itself raises comes out as it is.
    While this lives, model and optimizers hold tensors without memory. `release` gives back what
    they held.
    """

    def __init__(self, function, model, optimizers, args, kwargs, device, changing_numbers=False,
                 main=None, trains=True, ranks=1):
        self.function = function
        self._trains = trains
        self.model = model
        self._link = _Link(self)
        self.handle = _library.Step(self._link.address)
        self.views = [OptimizerView(one, self.handle.holds_no_memory) for one in optimizers]
        self._host_numbers = False
        self.device = device
        self.bypassed = set()
        # What the step's host code asked about its inputs: "file:line, in f" -> values, in order.
        self.assumptions = {}
        self._broken = self._read_at = None
        self._reads = {}  # place -> how many values that the step computes, in this run
        self._is_captured = False
        self._snapshots = {}
        self._next_snapshot = 0
        self._raised = None
        self._runs = 0  # since the host's state was put back
        self.advance = None  # puts numbers back while a checkpoint is loaded
        self._host_state = HostState(function, self.handle.holds_no_memory)
        self._describe()
        self.tree = Tree((args, kwargs))
        self.key = self.tree.key()
        self.result = None
        # Of each module; also what it is in at the end of the step, which may set it.
        self._modes = [(one, {one.training}) for one in model.modules()]
        refuse_bad_inputs(self.tree, model)
        self._has_gpu = torch.cuda.is_available()
        if main is None and device in _library.ENVIRONMENT["profiles"]:
            self.call(torch.ops.stowage.plan_without_gpu, device)
        with contextlib.ExitStack() as noting:
            for view in self.views:
                noting.enter_context(view.noting_first_numbers())
            noting.enter_context(_progress.phase(f"capturing {_name_of(function)}"))
            examples = [one.detach().cpu() for one in self.tree.tensors]
            if main is None:
                self.call(self.handle.capture, device, self._input_names(), examples,
                          changing_numbers, ranks)
            else:
                self.call(self.handle.capture_further, main.handle, self._input_names(), examples,
                          changing_numbers, trains)
        self._is_captured = True

    # --- for the package ---

    def call(self, method, *args):
        """Calls the library; its error becomes an exception, and Python's own come out as they are."""
        self._raised = self._broken = self._read_at = None
        try:
            with _tracing.paused_collector:
                return method(*args)
        except RuntimeError as error:
            raised, self._raised = self._raised, None
            made = _errors.from_library(error)
            if made is None:
                raise
            if self._broken is not None and made.code == "plan_mismatch":
                place, position, value = self._broken
                expected = self.assumptions[place]
                count = len(expected)
                which = f" (question {position + 1} of {count})" if count > 1 else ""
                made = type(made)(
                    f"{made}\n  in this batch {place}{which} found {value:g}, and "
                    f"{expected[position]:g} when the step was captured: such a batch needs a "
                    "step captured with one like it")
            if raised is None:
                if self._read_at is not None and "item()" in str(made):
                    made = type(made)(f"{made}\n  a value is read in {self._read_at}")
                raise made from None
            if "device_ready_queues_" in str(raised):
                raise _errors.EnvironmentError(
                    f"torch's autograd began without a GPU in this process, so no step can be "
                    f"captured for '{self.device}' any more: plan for it in a process of its own, "
                    "before any backward()") from raised
            if type(raised).__module__.startswith("torch._dynamo"):
                raise _errors.Unsupported(
                    "the step calls code from torch.compile, whose kernels a plan cannot hold: call "
                    f"the function itself, without torch.compile\n  in {_place_of(raised)}"
                ) from raised
            if _looks_at_values(raised):
                raise _errors.Unsupported(
                    f"{raised}\n  in {_place_of(raised)}") from raised
            if made.code == "torch" or isinstance(raised, (_errors.Error, KeyboardInterrupt)):
                raise raised  # noqa: B904 - it is the cause itself
            place = _place_of(raised)
            where = f"\n  in {place}" if place else ""
            raise type(made)(f"{made}{where}") from raised

    def check_unchanged(self):
        """Cheap enough for each step. Raises StepChanged."""
        for module, modes in self._modes:
            if module.training not in modes:
                name = _name_in(self.model, module)
                now, was = ("train()", "eval()") if module.training else ("eval()", "train()")
                raise _errors.StepChanged(f"the step changed: {name} is in {now}, captured in {was}; "
                                          "change it back, or capture again")
        if not all(view.is_same() for view in self.views):
            raise _errors.StepChanged(
                "the step changed: an optimizer has other parameters than when the step was "
                "captured (add_param_group); capture again")

    def release(self):
        self._host_state.forget_tensors()
        self.handle.release()

    def __del__(self):
        # The library asks for what was held here, so it lets go first.
        if hasattr(self, "handle") and not sys.is_finalizing():
            self.keep_reachable(True)
            self.handle.release()
            self.keep_reachable(False)

    def keep_reachable(self, keep):
        """For the library, while this goes and nobody else finds it any more."""
        self._link.last_owner = self if keep else None

    def schedulers(self):
        """Those that the step steps, in the order in which it first does."""
        return self._host_state.schedulers()

    def progress(self):
        """What host code of the step keeps: put back by `put_progress_back`."""
        return self._host_state.take()

    def put_progress_back(self, taken):
        self._host_state.put_back(taken)

    # --- what the library calls ---

    def _call(self, what, first, second):
        try:
            getattr(self, "_on_" + what.decode())(first, second)
            return 0
        except BaseException as error:  # noqa: BLE001 - it goes on where the library was called
            if self._raised is None:
                self._raised = error
            return 1

    def _on_run(self, first, second):
        self._stepping = []
        self._asked = {}  # place -> position of its last question
        self._runs += 1
        self._reads = {}
        args, kwargs = self.tree.fill(self.handle.arguments())
        try:
            with _tracing.tracing(self, self._has_gpu), torch.set_grad_enabled(self._trains):
                returned = Tree(self.function(*args, **kwargs))
                if not self._trains:
                    refuse_hidden_tensors(returned)
                    returned.tensors = self._own_copies(returned.tensors)
        finally:
            self._set_host_numbers(False)
        if not self._is_captured:
            self._host_state.check()
            self._host_state.refuse_gradients_outside(
                [*self.model.parameters(), *(one for view in self.views for one in view.parameters)])
            for module, modes in self._modes:
                modes.add(module.training)
        self.result = returned
        self.handle.report(self.result.tensors)

    def _own_copies(self, tensors):
        """Results are dense tensors, and none that the step only hands on."""
        held = {one.untyped_storage()._cdata for one in
                (*self.handle.arguments(), *self.model.parameters(), *self.model.buffers())}
        return [one.clone() if one.untyped_storage()._cdata in held else one.contiguous()
                for one in tensors]

    def _on_note_assumption(self, first, second):
        place = place_in_stack(sys._getframe())
        value = self.handle.asked_numbers()[0]
        known = self.assumptions.setdefault(place, [])
        position = self._asked[place] = self._asked.get(place, -1) + 1
        if not self._is_captured:
            known[position:position + 1] = [value]
        elif position < len(known) and known[position] != value and self._broken is None:
            self._broken = (place, position, value)

    def _on_note_unknown_read(self, first, second):
        self._read_at = place_in_stack(sys._getframe())
        self._reads[self._read_at] = self._reads.get(self._read_at, 0) + 1
        if self._reads[self._read_at] > _MOST_READS:
            raise _errors.Unsupported(
                f"one line has read {_MOST_READS} values that the step computes: a loop that ends by "
                f"one (while error > limit, generate()) cannot be captured\n  in {self._read_at}")

    def _on_state_of(self, optimizer, position):
        names, tensors = self.views[optimizer].state_of(position)
        if self._is_captured and optimizer == position == 0:
            # What else the step has made and kept gets its values back with them.
            others = [*self._host_state.tensors(),
                      *(one for view in self.views for one in view.attribute_tensors())]
            names = [*names, *(name for name, _ in others)]
            tensors = [*tensors, *(tensor for _, tensor in others)]
        self.handle.answer_tensors(names, tensors)

    def _on_step_count_of(self, optimizer, position):
        count = self.views[optimizer].step_count_of(position)
        self.handle.answer_numbers([] if count is None else [count])

    def _on_learning_rates(self, optimizer, second):
        self.handle.answer_numbers(self.views[optimizer].learning_rates())

    def _on_set_learning_rates(self, optimizer, second):
        self.views[optimizer].set_learning_rates(self.handle.asked_numbers())

    def _on_take_numbers(self, optimizer, second):
        if self._runs == 1 and not self._is_captured:
            self.views[optimizer].note_first_step()
        self._keep(self.views[optimizer].take_numbers())

    def _on_put_numbers_back(self, optimizer, snapshot):
        if self._runs == 1 and not self._is_captured:
            self.views[optimizer].check_first_step()
        self._snapshots[snapshot].put_back()

    def _on_same_options(self, some, others):
        same = self._snapshots[some].same_options(self._snapshots[others])
        self.handle.answer_numbers([float(same)])

    def _on_take_state(self, optimizer, second):
        self._keep(self.views[optimizer].take_state())

    def _on_put_state_back(self, optimizer, snapshot):
        self.views[optimizer].put_state_back(self._snapshots[snapshot])

    def _on_drop(self, snapshot, second):
        self._snapshots.pop(snapshot, None)

    def _on_advance(self, steps, second):
        self.advance(steps)

    def _on_rewind(self, first, second):
        self._runs = 0
        self._host_state.rewind()

    def _keep(self, snapshot):
        self._next_snapshot += 1
        self._snapshots[self._next_snapshot] = snapshot
        self.handle.answer_numbers([float(self._next_snapshot)])

    # --- what happens in the step while it is traced ---

    def begin_optimizer(self, optimizer, args, kwargs):
        view = next((one for one in self.views if one.optimizer is optimizer), None)
        if view is None:
            raise _errors.Unsupported(
                f"the step calls step() of an optimizer that it was not given "
                f"({type(optimizer).__name__}): name all of them, "
                "@stowage.step(model, [first, second], ...)")
        if not self._is_captured:
            check_optimizer(optimizer, view.count_of)
        if any(map(callable, (*args[1:], *kwargs.values()))):
            raise _errors.Unsupported(
                f"{type(optimizer).__name__}.step(closure) runs the loss as often as it wants, which "
                "a plan cannot hold: compute loss and gradients before, and call step() without it")
        self.handle.note_update()
        self._stepping.append(ReplacedState(view, self.handle.holds_no_memory))
        self._set_host_numbers(not keeps_counts_on_device(optimizer))

    def end_optimizer(self, optimizer):
        self._stepping.pop().copy_into_place()
        if not self._stepping:  # else within the step() of a subclass
            self._set_host_numbers(False)

    @contextlib.contextmanager
    def changing(self, one, on_host):
        """While a scheduler or the like works. on_host: with numbers of the host."""
        self._host_state.note(one)
        before = self._host_numbers
        self._set_host_numbers(on_host, take_values=True)
        try:
            yield
        finally:
            self._set_host_numbers(before)

    def _set_host_numbers(self, are_numbers, take_values=False):
        self._host_numbers = are_numbers
        self.handle.set_host_numbers(are_numbers, take_values)

    def note_bypass(self, what):
        self.bypassed.add(what)

    # --- the rest ---

    def _describe(self):
        for name, parameter in plain_tensors(self.model.named_parameters()):
            self.handle.add_parameter(name, parameter)
        for name, buffer in plain_tensors(self.model.named_buffers()):
            self.handle.add_buffer(name, buffer)
        for view in self.views:
            self.handle.add_optimizer(view.parameters)

    def _input_names(self):
        seen = {}
        names = []
        for name in self.tree.names:
            short = name.split(".")[-1] if "." in name else name
            count = seen[short] = seen.get(short, 0) + 1
            names.append(short if count == 1 else f"{short}.{count}")
        return names


class _Link:
    """A C function that calls a step as long as there is one."""

    # The library may call until the process ends.
    _functions = []

    def __init__(self, step):
        self._step = weakref.ref(step)
        self.last_owner = None  # a step that is going, whom nobody else finds any more
        self._functions.append(_CALLBACK(self._call))
        self.address = ctypes.cast(self._functions[-1], ctypes.c_void_p).value

    def _call(self, what, first, second):
        step = self._step() or self.last_owner
        return 1 if step is None else step._call(what, first, second)


def _name_of(function):
    return getattr(function, "__name__", type(function).__name__)


def _name_in(model, module):
    for name, one in model.named_modules():
        if one is module:
            return f"submodule '{name}'" if name else "the model"
    return "a submodule"


def place_in_stack(frame):
    """The innermost line outside of torch and of this package."""
    while frame is not None:
        name = frame.f_code.co_filename
        if "/torch/" not in name and "/stowage/" not in name and not name.startswith("<"):
            return f"{name}:{frame.f_lineno}, in {frame.f_code.co_name}"
        frame = frame.f_back
    return "unknown place"


def _looks_at_values(error):
    """Did torch raise because a tensor of the step has no memory?"""
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "tensor without memory" in text or "no fake impl registered" in text)


def _place_of(error):
    """The innermost line of the user's own code, or of a library above torch: "file:line, in f"."""
    place = None
    for frame in traceback.extract_tb(error.__traceback__):
        own = "/torch/" in frame.filename or "/stowage/" in frame.filename
        if not own:
            place = f"{frame.filename}:{frame.lineno}, {frame.name}"
    return place
