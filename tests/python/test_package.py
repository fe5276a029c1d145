# SPDX-License-Identifier: Apache-2.0
"""The wheel as its users get it: installed in environments of their own, where no compiler is.

To save a download, torch is that of the environment of these tests, linked by a .pth file.
STOWAGE_BUILD names the build folder that the wheel is made from. Builds for other versions are
those of `tools/dev versions`, where it ran.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = torch.__version__.partition("+")[0]
PLAN = """
import sys
import torch
import stowage

torch.manual_seed(0)
layers = [layer for _ in range(6) for layer in (torch.nn.Linear(32, 32), torch.nn.GELU())]
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.AdamW(model.parameters())

@stowage.step(model, optimizer, budget="80%peak", device="cpu")
def train_step(x, y):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

plan = train_step.plan(torch.randn(256, 32), torch.randn(256, 32))
print(stowage.__version__, stowage.__file__)
print(plan)
plan.save(sys.argv[1])
"""


def make_wheel_tool():
    spec = importlib.util.spec_from_file_location("make_wheel", ROOT / "tools/make_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Environment:
    """A virtual environment that holds the wheel; with torch or without."""

    def __init__(self, folder, wheel, with_torch):
        """`with_torch` may be the folder that holds another torch."""
        self.folder = folder
        self.python = folder / "bin/python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.site = next((folder / "lib").glob("python*/site-packages"))
        if with_torch:
            packages = sysconfig.get_path("purelib") if with_torch is True else str(with_torch)
            (self.site / "torch_of_the_tests.pth").write_text(packages)
        subprocess.run([sys.executable, "-m", "pip", "--python", self.python, "install", "-q",
                        "--no-index", "--disable-pip-version-check", wheel], check=True)

    def run(self, *command, **variables):
        """With nothing of this process's variables: no compiler, no library of the build tree."""
        environment = {"PATH": str(self.folder / "bin"), "HOME": str(self.folder), **variables}
        return subprocess.run([self.folder / "bin" / command[0], *command[1:]], env=environment,
                              capture_output=True, text=True, cwd=self.folder, check=False)

    def import_error(self, **variables):
        done = self.run("python", "-c", "import stowage", **variables)
        assert done.returncode == 1, done
        return done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    build = os.environ.get("STOWAGE_BUILD") or ROOT / "build"
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run([sys.executable, ROOT / "tools/make_wheel.py", "--build", build, "--out",
                           out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("user"), wheel, with_torch=True)
    for compiler in ("cc", "gcc", "g++", "c++", "clang"):
        assert shutil.which(compiler, path=str(environment.folder / "bin")) is None
    return environment


@pytest.fixture(scope="module")
def installed_without_torch(wheel, tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("bare"), wheel, with_torch=False)


@pytest.fixture
def other_torch(tmp_path):
    """A torch of another version, that comes first on the path."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("from .version import __version__\n")
    (tmp_path / "torch/version.py").write_text("__version__ = '2.9.0'\n")
    return tmp_path


def builds_of_tools_dev_versions():
    """For other versions than the default: (version, build, packages for Python)."""
    found = []
    for build in sorted((ROOT / "build").glob("torch-*")):
        version = build.name.removeprefix("torch-")
        python = (ROOT / f"build/deps/python-{version}").glob("lib/python*/site-packages")
        if all((build / "bin" / name).exists() for name in ("stowage", "libstowage_core.so")):
            found += [(version, build, packages) for packages in python if version != OWN]
    return found


def version_of_the_project():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(Stowage VERSION ([0-9.]+)", text)[1]


# --- the wheel ----------------------------------------------------------------------------------

def test_one_wheel_serves_all_versions_of_python(wheel):
    assert re.fullmatch(rf"stowage-{re.escape(version_of_the_project())}"
                        r"-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)
    assert zipfile.ZipFile(wheel).testzip() is None


def test_the_platform_has_what_the_binaries_need(wheel, tmp_path):
    promised = int(re.search(r"manylinux_2_(\d+)_", wheel.name)[1])
    zipfile.ZipFile(wheel).extractall(tmp_path)
    tool = make_wheel_tool()
    binaries = tool.binaries_below(tmp_path)
    assert {"stowage", "libstowage_core.so"} <= {path.name for path in binaries}
    for path in binaries:
        dump = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True)
        minors = [int(minor) for minor in re.findall(r"\(GLIBC_2\.(\d+)", dump.stdout)]
        assert minors and max(minors) <= promised, path.name
        dynamic = tool.run("readelf", "-dW", path)
        assert "RUNPATH" not in dynamic and "RPATH" not in dynamic, path.name
        assert ".debug_info" not in tool.run("readelf", "-SW", path), path.name


def test_the_tag_follows_from_symbol_versions():
    tool = make_wheel_tool()
    old = {"GLIBC": (2, 17), "GLIBCXX": (3, 4, 22), "CXXABI": (1, 3, 9)}
    assert tool.oldest_manylinux(old) == 28
    assert tool.oldest_manylinux({**old, "GLIBC": (2, 34)}) == 34
    assert tool.oldest_manylinux({**old, "GLIBC": (2, 36), "GLIBCXX": (3, 4, 30)}) == 36
    assert tool.oldest_manylinux({**old, "GLIBCXX": (3, 4, 30)}) == 35
    with pytest.raises(SystemExit):
        tool.oldest_manylinux({**old, "GLIBCXX": (3, 5)})
    text = ("Version symbols section '.gnu.version'\n  Name: GLIBC_2.99\n"
            "Version needs section '.gnu.version_r'\n  Name: GLIBC_2.9  Flags\n"
            "  Name: GLIBC_2.34\n")
    assert tool.needed_versions(text) == {"GLIBC": (2, 34)}


def test_the_metadata_asks_for_nothing(installed):
    code = ("import importlib.metadata as m; told = m.metadata('stowage');"
            "print(told['Name'], told['Version'], told['License-Expression'],"
            "m.requires('stowage'), told.get_all('Project-URL'), told['Home-page'],"
            "told['Requires-Python']);"
            "print(m.files('stowage') is not None, len(told.get_payload()))")
    done = installed.run("python", "-c", code)
    first, second = done.stdout.splitlines()
    assert first == f"stowage {version_of_the_project()} Apache-2.0 None None None >=3.10"
    assert second == f"True {len((ROOT / 'README.md').read_text())}"
    licences = {path.name for path in installed.site.glob("stowage-*.dist-info/licenses/*")}
    assert licences == {"LICENSE"}
    done = subprocess.run([sys.executable, "-m", "pip", "--python", installed.python, "check"],
                          capture_output=True, text=True, check=False)
    assert "stowage" not in done.stdout, done.stdout


# --- what a user does ---------------------------------------------------------------------------

def test_from_the_wheel_to_a_plan_that_the_program_reads(wheel, tmp_path_factory, tmp_path):
    begin = time.monotonic()
    user = Environment(tmp_path_factory.mktemp("newcomer"), wheel, with_torch=True)
    planned = user.run("python", "-c", PLAN, str(tmp_path / "plan.json"))
    seconds = time.monotonic() - begin
    assert planned.returncode == 0, planned.stderr
    module, *plan = planned.stdout.splitlines()
    assert module == f"{version_of_the_project()} {user.site}/stowage/__init__.py"
    assert plan[0].startswith("fits"), plan
    print(f"\nfrom pip install to a printed plan: {seconds:.1f} s\n" + "\n".join(plan))
    verdict = user.run("stowage", "verify", str(tmp_path / "plan.json"))
    assert verdict.returncode == 0, verdict


def test_one_wheel_of_two_builds_plans_with_both(tmp_path):
    others = builds_of_tools_dev_versions()
    if not others:
        pytest.skip("no build for another torch: run `tools/dev versions`")
    version, build, packages = others[0]
    own = os.environ.get("STOWAGE_BUILD") or ROOT / "build"
    done = subprocess.run([sys.executable, ROOT / "tools/make_wheel.py", "--build", own, "--build",
                           build, "--out", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for torch_of, name in ((True, OWN), (packages, version)):
        user = Environment(tmp_path / name, done.stdout.strip(), with_torch=torch_of)
        planned = user.run("python", "-c", PLAN, str(tmp_path / f"{name}.json"))
        assert planned.returncode == 0, f"torch {name}: {planned.stderr}"
        verdict = user.run("stowage", "verify", str(tmp_path / f"{name}.json"))
        assert verdict.returncode == 0, f"torch {name}: {verdict}"
        assert f'"{name}"' in (tmp_path / f"{name}.json").read_text()


def test_the_command_runs_the_program(installed):
    done = installed.run("stowage", "--version")
    assert done.returncode == 0, done.stderr
    assert version_of_the_project() in done.stdout
    assert installed.run("stowage", "no-such-verb").returncode == 2


# --- what can be wrong --------------------------------------------------------------------------

def test_another_torch_is_refused(installed, other_torch):
    wanted = f"stowage needs torch {OWN}, found torch 2.9.0: pip install 'torch=={OWN}'"
    assert installed.import_error(PYTHONPATH=str(other_torch)) == f"ImportError: {wanted}"
    done = installed.run("stowage", "--version", PYTHONPATH=str(other_torch))
    assert (done.returncode, done.stderr) == (4, f"error: {wanted}\n")


def test_a_wheel_may_serve_several_versions(wheel, tmp_path, other_torch):
    user = Environment(tmp_path / "user", wheel, with_torch=True)
    newer = user.site / "stowage/torch-2.100.0"
    shutil.copytree(user.site / f"stowage/torch-{OWN}", newer)
    assert user.run("python", "-c", "import stowage").returncode == 0
    assert user.run("stowage", "--version").returncode == 0
    wanted = (f"stowage needs torch {OWN} or 2.100.0, found torch 2.9.0: "
              "pip install 'torch==2.100.0'")
    assert user.import_error(PYTHONPATH=str(other_torch)) == f"ImportError: {wanted}"
    done = user.run("stowage", "--version", PYTHONPATH=str(other_torch))
    assert (done.returncode, done.stderr) == (4, f"error: {wanted}\n")
    # The library itself says which torch it is for, whatever its folder is named.
    (other_torch / "torch/__init__.py").write_text(
        "import sys, os, importlib\n"
        "sys.path.remove(os.path.dirname(os.path.dirname(__file__)))\n"
        "del sys.modules['torch']\n"
        "real = importlib.import_module('torch')\n"
        "real.__version__ = '2.100.0+cpu'\n")
    told = user.import_error(PYTHONPATH=str(other_torch))
    assert told == (f"ImportError: stowage needs torch {OWN}, found torch 2.100.0+cpu: "
                    f"pip install 'torch=={OWN}'")


def test_two_builds_for_one_torch_are_no_wheel(tmp_path):
    build = os.environ.get("STOWAGE_BUILD") or ROOT / "build"
    done = subprocess.run([sys.executable, ROOT / "tools/make_wheel.py", "--build", build,
                           "--build", build, "--out", tmp_path],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "installs no libstowage_core.so of its own" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("version", [f"{OWN}a0+git1", f"{OWN}.dev20260901+cpu", f"{OWN}rc1"])
def test_what_came_before_a_release_is_refused(installed, other_torch, version):
    (other_torch / "torch/version.py").write_text(f"__version__ = '{version}'\n")
    wanted = f"stowage needs torch {OWN}, found torch {version}: pip install 'torch=={OWN}'"
    assert installed.import_error(PYTHONPATH=str(other_torch)) == f"ImportError: {wanted}"
    done = installed.run("stowage", "--version", PYTHONPATH=str(other_torch))
    assert (done.returncode, done.stderr) == (4, f"error: {wanted}\n")


def test_a_build_tree_says_which_torch_it_is_for(installed, other_torch):
    libraries = os.environ["STOWAGE_LIBRARIES"]
    wanted = f"stowage needs torch {OWN}, found torch 2.9.0: pip install 'torch=={OWN}'"
    told = installed.import_error(PYTHONPATH=str(other_torch), STOWAGE_LIBRARIES=libraries)
    assert told == f"ImportError: {wanted}"


def test_no_torch_is_refused(installed_without_torch):
    wanted = f"stowage needs torch {OWN}, which is not installed: pip install 'torch=={OWN}'"
    assert installed_without_torch.import_error() == f"ImportError: {wanted}"
    done = installed_without_torch.run("stowage", "--version")
    assert (done.returncode, done.stderr) == (4, f"error: {wanted}\n")


def test_a_missing_library_is_named(installed, tmp_path):
    told = installed.import_error(STOWAGE_LIBRARIES=str(tmp_path))
    assert told.startswith("ImportError: stowage's library is missing, expected "
                           f"{tmp_path}/libstowage_core.so: install the wheel again")
    (tmp_path / "libstowage_core.so").write_text("not a library")
    told = installed.import_error(STOWAGE_LIBRARIES=str(tmp_path))
    assert told.startswith("ImportError: stowage's library does not load into torch "
                           f"{torch.__version__}: ")


def test_a_missing_program_is_named(wheel, tmp_path):
    user = Environment(tmp_path, wheel, with_torch=True)
    program = user.site / f"stowage/torch-{OWN}/bin/stowage"
    program.unlink()
    done = user.run("stowage", "--version")
    assert done.returncode == 4
    assert done.stderr == (f"error: stowage's program is missing, expected {program}: install the "
                           "wheel again\n")
    shutil.rmtree(program.parents[1])
    done = user.run("stowage", "--version")
    assert done.returncode == 4
    assert done.stderr == ("error: stowage's program is missing, expected "
                           f"{user.site}/stowage/torch-VERSION: install the wheel again\n")
