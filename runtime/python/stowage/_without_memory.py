# SPDX-License-Identifier: Apache-2.0
"""Models built without memory, and files that fill them.

A construction is recorded and runs again when its step first gets an arena, tensor by tensor. So a
model may be larger than any memory. Files of weights take its place, for what they hold.
"""

import contextlib
import threading
import warnings
import weakref

import torch

from . import _errors, _library, _tracing, _weights

_scope = threading.local()
_files = weakref.WeakKeyDictionary()  # model -> files that fill it
# The generator's state and seed when the last scope ended; it drew nothing.
_ended = {"generator": None, "seed": None}


@contextlib.contextmanager
def without_memory():
    """Modules made inside get no memory; the first planned step fills them.

        with stowage.without_memory():
            model = AutoModelForCausalLM.from_config(config)

    Their values are those that the same code gives with memory, bit for bit, drawn when the first
    step begins. torch's generator is then where construction would have left it, unless it was
    seeded or used since. For files instead: stowage.load_pretrained(model, folder).
    Raises InvalidArgument inside of another such scope, or of a step.
    """
    if getattr(_scope, "is_open", False) or _tracing.current() is not None:
        raise _errors.InvalidArgument(
            "without_memory() does not nest, and has no place inside of a step")
    if _is_where_a_scope_ended(torch.get_rng_state()):
        warnings.warn(
            "a model was built without memory before, and its random numbers are not drawn yet, so "
            "this one begins with the same: build both in one scope, or torch.manual_seed() before",
            stacklevel=3)
    with _scope_of_library():
        yield
    _ended["generator"] = torch.get_rng_state()
    _ended["seed"] = torch.initial_seed()


def load_pretrained(model, folder):
    """Names the files that fill a model which was built without memory: its first step reads them.

    folder: of safetensors files, as save_pretrained() writes them (one, or shards).
    Names, shapes and types must be those of the model; tied weights may be there once; buffers that
    the files lack are made as the model makes them. Raises InvalidArgument with all that does not
    fit, and for a model that has memory; FileError.
    """
    _files[model] = _weights.find_files(model, folder)
    _ended["generator"] = None  # files do not draw
    return model


def weights_of(model):
    if model not in _files:
        for name, part in model.named_modules():
            if part in _files:
                raise _errors.Unsupported(
                    f"load_pretrained() named files for '{name}', a part of the planned model, "
                    "whose names are other ones there (peft's adapters?), so they would not be "
                    "read: call from_pretrained() inside of without_memory() instead")
    return _files.get(model, [])


@contextlib.contextmanager
def filling(model):
    """While a runner takes first values: construction with memory would have drawn before."""
    before = torch.get_rng_state()
    try:
        yield
    except BaseException:
        torch.set_rng_state(before)
        raise
    if not _is_where_a_scope_ended(before):
        torch.set_rng_state(before)
        if _ended["generator"] is not None and _ended["seed"] == torch.initial_seed():
            warnings.warn(
                "random numbers were drawn after a model was built without memory, whose own are "
                "drawn only now (adapters, a shuffled loader?): with memory they would have been "
                "others; make what draws inside of the scope, or torch.manual_seed() after it",
                stacklevel=4)
    _ended["generator"] = None
    _files.pop(model, None)


def _is_where_a_scope_ended(generator):
    return _ended["generator"] is not None and torch.equal(generator, _ended["generator"])


@contextlib.contextmanager
def _scope_of_library():
    scope = _library.WithoutMemory()
    _scope.is_open = True
    # device="cuda" is no question of whether there is a GPU.
    initialize = torch.cuda._lazy_init
    if not torch.cuda.is_available():
        torch.cuda._lazy_init = lambda: None
    try:
        yield
    finally:
        torch.cuda._lazy_init = initialize
        _scope.is_open = False
        scope.end()
