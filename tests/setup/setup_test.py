#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/setup on a checkout of its own: stand-ins for the system's tools, real venv and pip, small wheels, no network."""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent.parent / "tools" / "setup"
OPENBLAS = "0.3.34.481.3"
PACKAGES = ("g++ make cmake ninja-build python3 ccache libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libgtest-dev "
            "libgmock-dev libjpeg-dev libpng-dev librapidcheck-dev zlib1g-dev").split()


def make_wheels(folder, version="2.13.0+cpu", cuda="None", openblas=True):
    """One named torch with the two lines that tools/setup reads, and one of OpenBLAS."""
    make_wheel(folder, "torch", version, {
        "torch/__init__.py": "",
        "torch/version.py": f"__version__ = '{version}'\ncuda: Optional[str] = {cuda}\n",
    })
    if openblas:
        make_wheel(folder, "scipy_openblas32", OPENBLAS, {"scipy_openblas32/__init__.py": ""})


def make_wheel(folder, name, version, files):
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="accrue setup ")
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        self.checkout = self.root / "a checkout"
        (self.checkout / "tools").mkdir(parents=True)
        shutil.copy(SETUP, self.checkout / "tools" / "setup")
        self.bin = self.root / "bin"
        self.bin.mkdir()
        self.wheels = self.root / "wheels"
        self.calls = self.root / "calls"
        self.calls.write_text("")
        self.have_packages(PACKAGES)
        self.stand_in("apt-get", f'echo "apt-get $*" >> "{self.calls}"')
        self.be("root")

    def stand_in(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def be(self, user):
        self.stand_in("id", f"echo {0 if user == 'root' else 1000}")

    def have_packages(self, packages):
        self.stand_in("dpkg-query", "\n".join(f"echo '{name} installed'" for name in packages))

    def setup(self, *words, **environment):
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith("PIP_") and name not in ("ACCRUE_TORCH", "Torch_DIR")}
        variables.update(PATH=f"{self.bin}:/usr/bin:/bin", PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1",
                         PIP_FIND_LINKS=self.wheels.as_uri(), PIP_NO_CACHE_DIR="1", **environment)
        run = subprocess.run([str(self.checkout / "tools" / "setup"), *words], env=variables, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return run.returncode, run.stdout

    def test_installs_the_wheel_once_and_is_silent_after(self):
        make_wheels(self.wheels)
        code, output = self.setup()
        self.assertEqual(code, 0, output)
        self.assertIn("setup: making .venv\n", output)
        self.assertIn("setup: installing torch==2.13.0", output)
        self.assertNotIn("--extra-index-url", output)
        shutil.rmtree(self.wheels)
        self.assertEqual(self.setup(), (0, ""))
        self.assertEqual(self.calls.read_text(), "")

    def test_goes_on_without_openblas(self):
        make_wheels(self.wheels, openblas=False)
        code, output = self.setup()
        self.assertEqual(code, 0, output)
        self.assertIn(f"setup: installing scipy-openblas32=={OPENBLAS}", output)
        self.assertIn("the build goes on without, and LibTorch multiplies", output)
        make_wheels(self.wheels)
        self.assertEqual(self.setup()[0], 0)
        self.assertEqual(self.setup(), (0, ""))

    def test_repairs_a_venv_that_does_not_run_or_is_half_installed(self):
        make_wheels(self.wheels)
        python = self.checkout / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/nowhere/python\n")
        python.chmod(0o755)
        code, output = self.setup()
        self.assertEqual(code, 0, output)
        self.assertIn("the one that is there does not run", output)
        record = next(self.checkout.glob(".venv/lib/python3*/site-packages/torch-*.dist-info/RECORD"))
        record.unlink()
        code, output = self.setup()
        self.assertIn("setup: installing torch", output)
        self.assertEqual(code, 0, output)
        self.assertEqual(self.setup(), (0, ""))

    def test_answers_a_cuda_build_with_what_to_do(self):
        make_wheels(self.wheels, version="2.13.0", cuda="'12.8'")
        code, output = self.setup()
        self.assertEqual(code, 1)
        self.assertIn("pip's index gave a CUDA build of torch 2.13.0", output)
        self.assertIn("PIP_INDEX_URL=", output)
        shutil.rmtree(self.wheels)
        make_wheels(self.wheels)
        code, output = self.setup()
        self.assertEqual(code, 0, output)

    def test_plain_pip_is_pointed_at_the_cpu_wheels_and_its_failure_explained(self):
        site = self.checkout / ".venv" / "bin"
        site.mkdir(parents=True)
        python = site / "python"
        python.write_text(f'#!/bin/sh\ncase "$*" in *"pip install"*) echo "$@" >> "{self.calls}"; exit 1;; esac\n')
        python.chmod(0o755)
        code, output = self.setup()
        self.assertEqual(code, 1)
        self.assertIn("setup: pip could not install torch==2.13.0", output)
        self.assertIn("--extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0", self.calls.read_text())

    def test_root_installs_the_missing_packages_and_says_so(self):
        self.have_packages([name for name in PACKAGES if name not in ("libyaml-cpp-dev", "librapidcheck-dev")])
        code, output = self.setup(ACCRUE_TORCH="/opt/libtorch")
        self.assertEqual(code, 0, output)
        self.assertEqual(output, "setup: installing system packages: libyaml-cpp-dev librapidcheck-dev\n")
        self.assertEqual(self.calls.read_text(), "apt-get update -q\napt-get install -q -y --no-install-recommends "
                                                 "libyaml-cpp-dev librapidcheck-dev\n")

    def test_another_user_is_told_the_one_command(self):
        self.be("user")
        self.have_packages([name for name in PACKAGES if name != "libcli11-dev"])
        code, output = self.setup()
        self.assertEqual(code, 1)
        self.assertIn("missing system packages: libcli11-dev.", output)
        self.assertIn("sudo apt-get update && sudo apt-get install --no-install-recommends libcli11-dev\n", output)
        self.assertEqual(self.calls.read_text(), "")
        self.assertFalse((self.checkout / ".venv").exists())

    def test_a_torch_of_ones_own_needs_no_wheel(self):
        for name in ("ACCRUE_TORCH", "Torch_DIR"):
            self.assertEqual(self.setup(**{name: "/opt/libtorch"}), (0, ""))
        self.assertFalse((self.checkout / ".venv").exists())

    def test_unknown_word(self):
        code, output = self.setup("lnt")
        self.assertEqual(code, 1)
        self.assertIn("unknown word 'lnt'; known are: lint, coverage, fuzz", output)

    def test_a_system_without_dpkg_is_told_what_is_needed(self):
        tools = self.root / "tools"
        tools.mkdir()
        for name in ("bash", "dirname", "env"):
            (tools / name).symlink_to(shutil.which(name))
        run = subprocess.run([str(tools / "bash"), str(self.checkout / "tools" / "setup")], text=True,
                             env={"PATH": str(tools), "ACCRUE_TORCH": "/opt/libtorch"}, stdout=subprocess.PIPE)
        self.assertEqual(run.returncode, 0)
        self.assertIn("this is not Debian or Ubuntu", run.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
