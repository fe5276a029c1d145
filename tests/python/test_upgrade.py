# SPDX-License-Identifier: Apache-2.0
"""tools/upgrade/compare_sources.py on made-up tables, and on those of the torch that is here."""

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


def packaged(folder, ops=OPS, formulas=FORMULAS):
    for name, text in (("ATen/native/native_functions.yaml", ops),
                       ("autograd/derivatives.yaml", formulas)):
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return folder


def compare(old, new):
    return subprocess.run([sys.executable, str(TOOL), str(old), str(new)], capture_output=True,
                          text=True, check=False)


def test_equal_tables_ask_for_nothing(tmp_path):
    done = compare(packaged(tmp_path / "old"), packaged(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    assert "- [ ]" not in done.stdout and done.stdout.count("None.") == 4


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


def test_another_folder_is_refused(tmp_path):
    done = compare(tmp_path, tmp_path)
    assert done.returncode == 1
    assert "expected a folder torchgen/packaged of a wheel of torch" in done.stderr


def test_ops_that_decide_by_device_are_those_of_the_fake_gpu():
    """Or a step captured without a GPU has other calls than one with."""
    sys.path.insert(0, str(TOOL.parent))
    import compare_sources
    ops = compare_sources.read_ops(pathlib.Path(torchgen.__file__).parent / "packaged")
    deciding = sorted(name for name, op in ops.items() if compare_sources.decides_by_device(op))
    source = (ROOT / "runtime/torch/internals/fake_gpu.cpp").read_text(encoding="utf-8")
    listed = source.split("for (const char* op : {")[1].split("}")[0]
    assert sorted(word.strip(' "') for word in listed.split(",")) == deciding
