# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of a step: nested containers taken apart into tensors and the rest.

Known containers are those of torch's pytrees (dict, list, tuple, namedtuple, ...), every other
mapping (transformers' BatchEncoding), and dataclasses.
"""

import collections.abc
import dataclasses

import torch
from torch.utils import _pytree


class _TensorAt:
    """Where a tensor was."""

    def __init__(self, index):
        self.index = index

    def __eq__(self, other):
        return isinstance(other, _TensorAt) and other.index == self.index

    def __hash__(self):
        return hash(self.index)

    def __repr__(self):
        return f"tensor {self.index}"


class Tree:
    """A nested value without its tensors."""

    def __init__(self, value):
        self.tensors = []
        self.names = []
        self._shape = self._take(value, "")

    def _take(self, value, name):
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            self.names.append(name or f"input{len(self.names)}")
            return _TensorAt(len(self.tensors) - 1)
        if isinstance(value, collections.abc.Mapping):
            parts = {key: self._take(part, _join(name, key)) for key, part in value.items()}
            return _Parts(value, parts)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = {
                field.name: self._take(getattr(value, field.name), _join(name, field.name))
                for field in dataclasses.fields(value)
            }
            return _Parts(value, parts)
        if isinstance(value, (list, tuple)):
            parts = {i: self._take(part, _join(name, i)) for i, part in enumerate(value)}
            return _Parts(value, parts)
        if not isinstance(value, (str, bytes)) and not _pytree.tree_is_leaf(value):
            leaves, spec = _pytree.tree_flatten(value)
            parts = {i: self._take(part, _join(name, i)) for i, part in enumerate(leaves)}
            return _Parts(spec, parts)
        return _Plain(value)

    def fill(self, tensors):
        """The value with other tensors in the places of its own."""
        return _fill(self._shape, tensors)

    @property
    def args(self):
        """Of a tree of (args, kwargs)."""
        return self.fill(self.tensors)[0]

    @property
    def kwargs(self):
        return self.fill(self.tensors)[1]

    def key(self):
        """Equal for values of one shape: containers, types, sizes and strides of tensors."""
        tensors = tuple(
            (tuple(one.shape), one.dtype, tuple(one.stride()), one.requires_grad)
            for one in self.tensors
        )
        return _key(self._shape), tensors

    def plain(self):
        """What is no tensor in it, by name; a step may do something else for another."""
        found = {}
        _find_plain(self._shape, "", found)
        return found


def _join(name, part):
    return f"{name}.{part}" if name else str(part) if isinstance(part, str) else f"input{part}"


class _Plain:
    def __init__(self, value):
        self.value = value


class _Parts:
    def __init__(self, like, parts):
        self.like = like
        self.parts = parts


def _fill(shape, tensors):
    if isinstance(shape, _TensorAt):
        return tensors[shape.index]
    if isinstance(shape, _Plain):
        return shape.value
    parts = {key: _fill(part, tensors) for key, part in shape.parts.items()}
    like = shape.like
    if isinstance(like, _pytree.TreeSpec):
        return _pytree.tree_unflatten(list(parts.values()), like)
    if isinstance(like, dict) and dataclasses.is_dataclass(like):  # transformers' ModelOutput
        return type(like)(**parts)
    if isinstance(like, dict):
        made = like.copy()
        made.update(parts)
        return made
    if isinstance(like, collections.abc.Mapping):
        return _fill_mapping(like, parts)
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*parts.values())
    if isinstance(like, (list, tuple)):
        return type(like)(parts.values())
    return dataclasses.replace(like, **parts)


def _fill_mapping(like, parts):
    """A mapping of its own class: a copy that holds the parts, else a plain dict."""
    try:
        made = like.copy()
        for key, part in parts.items():
            made[key] = part
        return made
    except (AttributeError, TypeError):
        return parts


def _key(shape):
    if isinstance(shape, _TensorAt):
        return shape
    if isinstance(shape, _Plain):
        return type(shape.value)
    return type(shape.like), tuple((key, _key(part)) for key, part in shape.parts.items())


def _find_plain(shape, name, found):
    if isinstance(shape, _Plain):
        found[name] = shape.value
    elif isinstance(shape, _Parts):
        for key, part in shape.parts.items():
            _find_plain(part, _join(name, key), found)
