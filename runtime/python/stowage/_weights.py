# SPDX-License-Identifier: Apache-2.0
"""Files of weights in the safetensors form, compared with a model before anything reads them."""

import json
import os
import struct

from . import _errors

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
    "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
}
_INDEX = "model.safetensors.index.json"


def find_files(model, folder):
    """Paths of the files in `folder` that fill `model`."""
    paths = _paths_in(str(folder))
    found = {}
    for path in paths:
        found.update(_read_header(path))
    problems = _compare(model, found)
    if problems:
        listed = "".join(f"\n  {one}" for one in problems[:20])
        more = f"\n  and {len(problems) - 20} more" if len(problems) > 20 else ""
        raise _errors.InvalidArgument(
            f"the files in '{folder}' are not this model's weights:{listed}{more}\n"
            "Names, shapes and types must be the model's. Build it with the type of the files, or "
            "fill it with memory: from_pretrained(), which converts what it reads")
    return paths


def _paths_in(folder):
    if not os.path.isdir(folder):
        raise _errors.FileError(f"found no folder '{folder}', expected one of safetensors files")
    index = os.path.join(folder, _INDEX)
    if os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            names = sorted(set(json.load(file)["weight_map"].values()))
        return [os.path.join(folder, name) for name in names]
    names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    if "model.safetensors" in names:
        names = ["model.safetensors"]  # others may be an optimizer's
    if not names:
        raise _errors.FileError(f"'{folder}' holds no safetensors files")
    return [os.path.join(folder, name) for name in names]


def _read_header(path):
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, 2**27)))
    except (OSError, ValueError, struct.error) as error:
        raise _errors.FileError(f"'{path}' is no safetensors file: {error}") from None
    return {name: (one["dtype"], list(one["shape"])) for name, one in header.items()
            if name != "__metadata__"}


def has_memory(tensor):
    try:
        tensor.untyped_storage().data_ptr()
        return True
    except RuntimeError:
        return False


def _compare(model, found):
    """All that does not fit."""
    owners = {}  # id of a tensor -> its first name, by which plans know it
    problems = []
    named = [*model.named_parameters(remove_duplicate=False),
             *model.named_buffers(remove_duplicate=False)]
    filled = set()
    for name, tensor in named:
        first = owners.setdefault(id(tensor), name)
        if name not in found:
            continue
        if has_memory(tensor):
            problems.append(f"'{name}' has memory: the model was not built in without_memory()")
            continue
        dtype, shape = found[name]
        filled.add(first)
        if first != name and first not in found:
            problems.append(f"'{name}' is there, and '{first}', the same tensor, is not")
        if _DTYPES.get(dtype, dtype) != str(tensor.dtype).removeprefix("torch."):
            problems.append(f"'{name}' is {dtype}, the model has {tensor.dtype}")
        elif shape != list(tensor.shape):
            problems.append(f"'{name}' is {shape}, the model has {list(tensor.shape)}")
    for name, _ in model.named_parameters():
        if name not in filled:
            problems.append(f"'{name}' is missing")
    known = {name for name, _ in named}
    problems += [f"'{name}' is nothing of the model" for name in sorted(found) if name not in known]
    return problems
