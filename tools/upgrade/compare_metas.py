# SPDX-License-Identifier: Apache-2.0
"""What torch's Python says of results (meta functions) and of decompositions, in two versions.

Where libtorch has no kernel without data, its meta functions are the best description of what an
op's results are: our shape rules say the same. Sources are read, nothing is imported. A function
that changed in what it calls, and not itself, is not seen.
"""

import ast
import json
import os
import sys

# By heading: a file of the package torch, and the decorator that names the ops of a function.
PLACES = {
    "Other results without data": ("torch/_meta_registrations.py", "register_meta"),
    "Other decompositions": ("torch/_decomp/decompositions.py", "register_decomposition"),
}


def ops_named(node):
    """{"add", "add.out"} of `aten.add`, or of `[aten.add.default, aten.add.out]`."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return set().union(*(ops_named(one) for one in node.elts))
    path = ast.unparse(node).split(".")
    if len(path) < 2 or path[0] != "aten":
        return set()
    return {path[1] if len(path) == 2 or path[2] == "default" else f"{path[1]}.{path[2]}"}


def code_of(function):
    """What it does: without its name, comments, docstring and types."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    arguments = [one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)]
    defaults = [ast.unparse(one) for one in function.args.defaults]
    return arguments, defaults, [ast.unparse(one) for one in body]


def read_functions(folder, name, decorator):
    """{op: code}."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError) as error:
        sys.exit(f"error: {path}: {error}; expected a folder that holds torch and torchgen")
    found = {}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for one in function.decorator_list:
            if isinstance(one, ast.Call) and ast.unparse(one.func).endswith(decorator) and one.args:
                found.update((op, code_of(function)) for op in ops_named(one.args[0]))
    return found


def read_ours(path):
    """Names without overloads of the ops that we name; None where there is no list."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            ops = json.load(file)["ops"]
        return {name.removeprefix("aten::").removeprefix("aten.").split(".")[0]
                for name, op in ops.items() if op["ours"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"error: {path}: {error}; expected what stowage-op-list prints")


def compare_metas(old, new, ours_path):
    ours = read_ours(ours_path)
    changes = {}
    for heading, (name, decorator) in PLACES.items():
        before = read_functions(old, name, decorator)
        now = read_functions(new, name, decorator)
        lines = []
        for op in sorted(set(before) | set(now)):
            if before.get(op) == now.get(op) or (ours is not None and op.split(".")[0] not in ours):
                continue
            how = "is gone" if op not in now else "is new" if op not in before else "changed"
            lines.append(f"`{op}` {how}: {name}")
        changes[heading] = lines
    return changes
