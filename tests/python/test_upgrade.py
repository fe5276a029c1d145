# SPDX-License-Identifier: Apache-2.0
"""Comparisons of two versions of torch, on made-up tables, functions and captured steps; and what
the torch that is here says of the fake GPU's list.
"""

import json
import pathlib
import subprocess
import sys

import pytest
import torchgen

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools/upgrade/compare_sources.py"

OPS = """
- func: plain(Tensor x) -> Tensor
- func: both(Tensor x) -> Tensor
  dispatch:
    CompositeImplicitAutograd: both_of_others
    CPU, CUDA: both_kernel
- func: lazy(Tensor x) -> Tensor
  structured_delegate: lazy.out
  dispatch:
    CompositeImplicitAutograd: math_lazy
- func: lazy.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA: lazy_out
- func: draws(Tensor x) -> Tensor
  dispatch:
    CPU: draws_cpu
  tags: [nondeterministic_seeded, pointwise]
"""
FORMULAS = """
- name: plain(Tensor x) -> Tensor
  x: grad * 2
  result: auto_linear
"""


METAS = '''
@register_meta(aten.plain.default)
@out_wrapper()
def meta_plain(x: Tensor, *, twice=False) -> Tensor:
    """Text."""
    return x.new_empty(x.shape)  # a comment


@register_meta([aten.both.default, aten.both.out])
def meta_both(x, exact=False):
    return helper(x, exact)
'''
DECOMPOSITIONS = """
@register_decomposition(aten.lazy)
def lazy(x):
    return x + x
"""
REFERENCES = """
@_make_elementwise_reference(ELEMENTWISE)
@register_decomposition(aten.special)
def special(x):
    return x.log()
"""


def packaged(folder, ops=OPS, formulas=FORMULAS, metas=METAS, decompositions=DECOMPOSITIONS):
    for name, text in (("torchgen/packaged/ATen/native/native_functions.yaml", ops),
                       ("torchgen/packaged/autograd/derivatives.yaml", formulas),
                       ("torch/_meta_registrations.py", metas),
                       ("torch/_decomp/decompositions.py", decompositions),
                       ("torch/_refs/special/__init__.py", REFERENCES)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def compare(old, new, *more):
    return subprocess.run([sys.executable, str(TOOL), str(old), str(new), *more],
                          capture_output=True, text=True, check=False)


def test_equal_tables_ask_for_nothing(tmp_path):
    done = compare(packaged(tmp_path / "old"), packaged(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert "- [ ]" not in done.stdout and done.stdout.count("None.") == 6


@pytest.mark.parametrize(("ops", "formulas", "expected"), [
    (OPS.replace("    CPU, CUDA: both_kernel\n", "    CPU: both_kernel\n"), FORMULAS,
     ["`both` is gone: registerKernelsThatDecide", "`both`: both_kernel became none"]),
    (OPS.replace("    CPU, CUDA: lazy_out\n", "    CPU: lazy_out\n"), FORMULAS,
     ["`lazy` is gone: registerKernelsThatDecide", "`lazy`: lazy_out became none",
      "`lazy.out`: lazy_out became none"]),
    (OPS.replace("nondeterministic_seeded, ", ""), FORMULAS,
     ["`draws` is no longer nondeterministic_seeded: `random` of its row"]),
    (OPS, FORMULAS.replace("grad * 2", "grad + grad"),
     ["`plain`, `x`: `grad * 2` became `grad + grad`"]),
    (OPS, FORMULAS.replace("auto_linear", "auto_element_wise"), []),
])
def test_names_what_changed(tmp_path, ops, formulas, expected):
    done = compare(packaged(tmp_path / "old"), packaged(tmp_path / "new", ops, formulas))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("- [ ]") == len(expected), done.stdout
    for line in expected:
        assert f"- [ ] {line}" in done.stdout


@pytest.mark.parametrize(("metas", "decompositions", "expected"), [
    (METAS.replace("x.shape)", "x.shape[1:])"), DECOMPOSITIONS, ["`plain` changed"]),
    (METAS.replace("exact=False", "exact=True"), DECOMPOSITIONS,
     ["`both` changed", "`both.out` changed"]),
    (METAS.replace(", aten.both.out", ", aten.more"), DECOMPOSITIONS,
     ["`both.out` is gone", "`more` is new"]),
    (METAS.replace("twice=False", "twice=True"), DECOMPOSITIONS, ["`plain` changed"]),
    (METAS.replace("out_wrapper()", "out_wrapper('out')"), DECOMPOSITIONS, ["`plain` changed"]),
    (METAS, DECOMPOSITIONS.replace("x + x", "2 * x"), ["`lazy` changed"]),
    (METAS.replace("Text.", "More.").replace("a comment", "another").replace(": Tensor", "")
     .replace("meta_plain", "meta_of_plain"), DECOMPOSITIONS, []),
])
def test_names_functions_that_do_something_else(tmp_path, metas, decompositions, expected):
    done = compare(packaged(tmp_path / "old"), packaged(
        tmp_path / "new", metas=metas, decompositions=decompositions))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("- [ ]") == len(expected), done.stdout
    for line in expected:
        assert f"- [ ] {line}: see it in torch" in done.stdout


def test_names_a_reference_that_does_something_else(tmp_path):
    new = packaged(tmp_path / "new")
    file = new / "torch/_refs/special/__init__.py"
    file.write_text(REFERENCES.replace("x.log()", "x.log2()"))
    done = compare(packaged(tmp_path / "old"), new)
    assert "- [ ] `special` changed: " in done.stdout and done.stdout.count("- [ ]") == 1


def test_of_functions_those_of_our_ops_can_be_chosen(tmp_path):
    new = packaged(tmp_path / "new", metas=METAS.replace("x.shape)", "x.shape[1:])"),
                   decompositions=DECOMPOSITIONS.replace("x + x", "2 * x"))
    ours = tmp_path / "ops.json"
    ours.write_text(json.dumps({"torch": "2.15.0", "ops": {
        "aten.plain.default": {"ours": ["shape rule"]}, "aten.lazy.default": {"ours": []}}}))
    done = compare(packaged(tmp_path / "old"), new, "--ours", str(ours))
    assert done.returncode == 0, done.stderr
    assert "`plain` changed: its rule in runtime/capture/ops/shapes\n" in done.stdout
    assert "lazy" not in done.stdout
    ours.write_text("{}")
    done = compare(tmp_path / "old", new, "--ours", str(ours))
    assert done.returncode == 1
    assert "expected what stowage-op-list prints" in done.stderr


def test_another_folder_is_refused(tmp_path):
    done = compare(tmp_path, tmp_path)
    assert done.returncode == 1
    assert "expected a folder that holds torch and torchgen" in done.stderr
    (packaged(tmp_path / "new") / "torch/_meta_registrations.py").unlink()
    done = compare(packaged(tmp_path / "old"), tmp_path / "new")
    assert done.returncode == 1
    assert "_meta_registrations.py: " in done.stderr


def test_ops_that_decide_by_device_are_those_of_the_fake_gpu():
    """Or a step captured without a GPU has other calls than one with."""
    sys.path.insert(0, str(TOOL.parent))
    import compare_sources
    ops = compare_sources.read_ops(pathlib.Path(torchgen.__file__).parent.parent)
    deciding = sorted(name for name, op in ops.items() if compare_sources.decides_by_device(op))
    source = (ROOT / "runtime/torch/internals/fake_gpu.cpp").read_text(encoding="utf-8")
    listed = source.split("for (const char* op : {")[1].split("}")[0]
    assert sorted(word.strip(' "') for word in listed.split(",")) == deciding


# --- captured steps -------------------------------------------------------------------------------

PROGRAM = """#!/bin/sh
if [ "$2" = --list ]; then
  echo '{"models": [{"name": "small", "settings": [{"name": "batch"}]}]}'
elif [ "$4" = cuda ]; then
  echo 'error: no such kernel' >&2; exit 1
else
  cat <<'END'
graph @small device="cpu" producer="torch VERSION" steps=4 {
  %a : f32[4] = aten.mul.Tensor(%x, %x)
  %b : f32[4] = aten.sum.default(%a)
}
// checksum xxh64:VERSION
END
fi
"""


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(("change", "refuses", "expected"), [
    (("aten.", "aten."), False, []),
    (("aten.sum.default", "aten.mean.default"), False,
     ["- `small --device cpu`: -1 aten.sum.default, +1 aten.mean.default"]),
    (("f32[4]", "f32[5]"), False,
     ["- `small --device cpu`: the same ops with other arguments or sizes"]),
    (("aten.", "aten."), True,
     ["- `small --device cuda --target h100`: new refused: error: no such kernel"]),
])
def test_captures_are_compared(tmp_path, change, refuses, expected):
    accepts = PROGRAM.replace('"$4" = cuda', '"$4" = no')
    old = program(tmp_path / "old", accepts.replace("VERSION", "2.11.0"))
    new = program(tmp_path / "new",
                  (PROGRAM if refuses else accepts).replace("VERSION", "2.15.0").replace(*change))
    done = subprocess.run([sys.executable, str(TOOL.parent / "compare_captures.py"), old, new],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in expected:
        assert line in done.stdout.splitlines(), done.stdout
    assert ("5 of 5 are the same." in done.stdout) == (not expected), done.stdout
