# SPDX-License-Identifier: Apache-2.0
"""What a step may be given, what its model may hold, and what an evaluation may return."""

import torch

from . import _errors


def refuse_hidden_tensors(tree):
    plain = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device)
    for name, value in tree.plain().items():
        if not isinstance(value, plain):
            raise _errors.Unsupported(
                f"the evaluation returns a {type(value).__name__} ('{name}'), which may hold tensors "
                "that have no memory: return tensors, in dicts, lists or dataclasses (a model's "
                "cache: use_cache=False)")


def plain_tensors(named):
    """Those of a model, with their names."""
    for name, tensor in named:
        if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            raise _errors.Unsupported(
                f"'{name}' of the model is a {type(tensor).__name__}, a tensor with operations of its "
                "own (__torch_dispatch__), whose memory a plan does not see: expected plain tensors")
        yield name, tensor


def refuse_bad_inputs(tree, model):
    held = {one.untyped_storage()._cdata for one in (*model.parameters(), *model.buffers())
            if one.layout == torch.strided}
    for name, tensor in zip(tree.names, tree.tensors, strict=True):
        if tensor.requires_grad:
            raise _errors.InvalidArgument(
                f"input '{name}' requires a gradient, expected one that does not: a batch is not "
                "trained; detach() it")
        if tensor.layout == torch.strided and tensor.untyped_storage()._cdata in held:
            raise _errors.InvalidArgument(
                f"input '{name}' shares memory with a parameter or buffer of the model, which has "
                "its values elsewhere while it is planned: clone() it, or let the step use the "
                "model's own")
        if tensor.layout != torch.strided:
            raise _errors.InvalidArgument(
                f"input '{name}' is a {tensor.layout} tensor, expected a dense one")
