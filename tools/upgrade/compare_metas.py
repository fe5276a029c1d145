# SPDX-License-Identifier: Apache-2.0
"""What torch's Python says of results (meta functions) and of decompositions, in two versions.

Where libtorch has no kernel without data, its meta functions are the best description of what an
op's results are: our shape rules say the same. Sources are read, nothing is imported. A function
that changed in what it calls, and not itself, is not seen.
"""

import ast
import json
import pathlib
import sys

from checklist import looks

# By heading: files or folders of the package torch, and the decorator that names the ops of a
# function.
PLACES = {
    "Other results without data": (["torch/_meta_registrations.py"], "register_meta"),
    "Other decompositions": (["torch/_decomp/decompositions.py", "torch/_refs"],
                             "register_decomposition"),
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
    """What it does: without its name, comments, docstring, types and the ops it is for."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    arguments = [one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)]
    defaults = [one and ast.unparse(one) for one in [*function.args.defaults,
                                                     *function.args.kw_defaults]]
    around = [ast.unparse(one) for one in function.decorator_list if not names_ops(one)]
    return arguments, defaults, around, [ast.unparse(one) for one in body]


def names_ops(decorator):
    named = {name for _, name in PLACES.values()}
    return (isinstance(decorator, ast.Call) and bool(decorator.args)
            and ast.unparse(decorator.func).split(".")[-1] in named)


def sources_in(folder, places):
    for place in places:
        path = pathlib.Path(folder) / place
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def read_functions(folder, places, decorator):
    """{op: code}."""
    found = {}
    for path in sources_in(folder, places):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError) as error:
            sys.exit(f"error: {path}: {error}; expected a folder that holds torch and torchgen")
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            for one in filter(names_ops, function.decorator_list):
                if ast.unparse(one.func).endswith(decorator):
                    found.update((op, code_of(function)) for op in ops_named(one.args[0]))
    return found


def read_ours(path):
    """{name without overload: what of ours names it}; None where there is no list."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            ops = json.load(file)["ops"]
        ours = {}
        for name, op in ops.items():
            if op["ours"]:
                base = name.removeprefix("aten::").removeprefix("aten.").split(".")[0]
                ours.setdefault(base, []).extend(
                    one for one in op["ours"] if one not in ours.get(base, []))
        return ours
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"error: {path}: {error}; expected what stowage-op-list prints")


def compare_metas(old, new, ours_path):
    ours = read_ours(ours_path)
    changes = {}
    for heading, (places, decorator) in PLACES.items():
        before = read_functions(old, places, decorator)
        now = read_functions(new, places, decorator)
        lines = []
        for op in sorted(set(before) | set(now)):
            if before.get(op) == now.get(op) or (ours is not None and op.split(".")[0] not in ours):
                continue
            how = "is gone" if op not in now else "is new" if op not in before else "changed"
            look = looks(ours[op.split(".")[0]]) if ours is not None else "see it in torch"
            lines.append(f"`{op}` {how}: {look}")
        changes[heading] = lines
    return changes
