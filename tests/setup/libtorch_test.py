#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What configure says about the LibTorch it finds or refuses, on small folders that look like one."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULE = HERE.parent.parent / "cmake" / "AccrueTorch.cmake"

CONFIG = """
add_library(torch INTERFACE IMPORTED)
set(TORCH_LIBRARIES torch)
find_library(kineto_LIBRARY kineto PATHS "${CMAKE_CURRENT_LIST_DIR}/../../../lib")
if(NOT kineto_LIBRARY)
  message(WARNING "library kineto not found.")
endif()
set(Torch_FOUND TRUE)
"""


def make_torch(prefix, version="2.13.0", config="share/cmake/Torch", extra="", libraries=("libtorch_cpu.so",),
               blas=b"\0mkl_blas_sgemm\0"):
    folder = prefix / config
    folder.mkdir(parents=True)
    (folder / "TorchConfig.cmake").write_text(extra + CONFIG)
    (folder / "TorchConfigVersion.cmake").write_text(
        f'set(PACKAGE_VERSION "{version}")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n')
    (prefix / "lib").mkdir()
    for library in libraries:
        (prefix / "lib" / library).write_bytes(b"\0padding\0" + blas)
    return prefix


class LibTorch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="accrue setup ")
        self.root = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        (self.root / "checkout" / "cmake").mkdir(parents=True)
        shutil.copy(MODULE, self.root / "checkout" / "cmake")

    def configure(self, *words, environment=None, fresh=True):
        """Returns (exit code, output with line breaks folded)."""
        variables = {name: value for name, value in os.environ.items()
                     if name not in ("ACCRUE_TORCH", "Torch_DIR", "CXXFLAGS", "CUDA_PATH", "CUDAToolkit_ROOT")}
        variables["PATH"] = "/usr/bin:/bin"
        variables.update(environment or {})
        cmake = shutil.which("cmake")
        command = [cmake, "-S", str(HERE / "project"), "-B", str(self.root / "out"),
                   f"-DMODULE_DIR={self.root / 'checkout' / 'cmake'}", *words]
        if fresh:
            command.insert(1, "--fresh")
        run = subprocess.run(command, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return run.returncode, " ".join(run.stdout.split())

    def refused(self, text, *words, environment=None):
        code, output = self.configure(*words, environment=environment)
        self.assertIn(text, output)
        self.assertNotEqual(code, 0)
        self.assertEqual(output.count("CMake Error"), 1, output)

    def accepted(self, text, *words, environment=None, fresh=True):
        code, output = self.configure(*words, environment=environment, fresh=fresh)
        self.assertIn(text, output)
        self.assertEqual(code, 0, output)
        self.assertNotIn("Warning", output)

    def hidden_system(self):
        """A root of its own hides a toolkit that this machine may have."""
        return (f"-DCMAKE_FIND_ROOT_PATH={self.root}", "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY",
                f"-DCMAKE_MAKE_PROGRAM={shutil.which('make')}")

    def test_says_which_version_where_and_blas(self):
        torch = make_torch(self.root / "torch")
        self.accepted(f"LibTorch: 2.13.0 in {torch}, BLAS: MKL", f"-DACCRUE_TORCH={torch}")

    def test_knows_other_blas_libraries(self):
        for number, (blas, name) in enumerate([(b"\0openblas_get_config\0", "OpenBLAS"),
                                               (b"\0libblas.so.3\0", "the system's libblas.so.3"),
                                               (b"\0nothing\0", "unknown")]):
            torch = make_torch(self.root / f"torch{number}", blas=blas)
            self.accepted(f"BLAS: {name}", f"-DACCRUE_TORCH={torch}")

    def test_takes_archive_prefix_and_environment(self):
        archive = make_torch(self.root / "libtorch")
        self.accepted(f"in {archive},", environment={"ACCRUE_TORCH": str(archive)})
        self.accepted(f"in {archive},", environment={"Torch_DIR": str(archive / "share/cmake/Torch")})
        self.accepted(f"in {archive},", f"-DTorch_DIR={archive / 'share/cmake/Torch'}")
        inside = make_torch(self.root / "site-packages" / "torch")
        self.accepted(f"in {inside},", f"-DACCRUE_TORCH={self.root / 'site-packages'}")

    def test_order_is_accrue_torch_then_torch_dir_then_venv(self):
        own = make_torch(self.root / "own")
        other = make_torch(self.root / "other")
        wheel = make_torch(self.root / "checkout/.venv/lib/python3.11/site-packages/torch")
        torch_dir = {"Torch_DIR": str(other / "share/cmake/Torch")}
        self.accepted(f"in {own},", f"-DACCRUE_TORCH={own}", environment=torch_dir)
        self.accepted(f"in {other},", environment=torch_dir)
        self.accepted(f"in {wheel},")
        self.accepted(f"in {wheel},", fresh=False)

    def test_a_new_word_counts_at_the_next_configure(self):
        own = make_torch(self.root / "own")
        wheel = make_torch(self.root / "checkout/.venv/lib/python3.11/site-packages/torch")
        self.accepted(f"in {wheel},")
        self.accepted(f"in {own},", environment={"ACCRUE_TORCH": str(own)}, fresh=False)

    def test_nothing_found(self):
        self.refused("LibTorch was not found; run tools/setup")

    def test_named_place_is_empty(self):
        make_torch(self.root / "checkout/.venv/lib/python3.11/site-packages/torch")
        self.refused("ACCRUE_TORCH is /nowhere, and no TorchConfig.cmake lies there", "-DACCRUE_TORCH=/nowhere")
        self.refused("Torch_DIR is /nowhere, and no", environment={"Torch_DIR": "/nowhere"})

    def test_version_outside_the_range(self):
        for number, version in enumerate(["1.13.1", "2.5.1", "2.15.0", "3.0.0"]):
            torch = make_torch(self.root / f"torch{number}", version=version)
            self.refused(f"has version '{version}', and Accrue needs 2.6 to 2.14", f"-DACCRUE_TORCH={torch}")
        for version in ["2.6.0a0+git1", "2.14.3"]:
            torch = make_torch(self.root / version, version=version)
            self.accepted("LibTorch: 2.", f"-DACCRUE_TORCH={torch}")

    def test_cuda_build_without_toolkit(self):
        torch = make_torch(self.root / "torch", libraries=("libtorch_cpu.so", "libtorch_cuda.so"),
                           extra='message(FATAL_ERROR "deep inside")\n')
        self.refused("is a CUDA build, and no CUDA toolkit (nvcc) was found", f"-DACCRUE_TORCH={torch}",
                     *self.hidden_system())

    def test_cuda_build_with_toolkit(self):
        torch = make_torch(self.root / "torch", libraries=("libtorch_cpu.so", "libtorch_cuda.so"))
        compiler = self.root / "cuda" / "bin" / "nvcc"
        compiler.parent.mkdir(parents=True)
        compiler.write_text("#!/bin/sh\n")
        compiler.chmod(0o755)
        self.accepted("LibTorch: 2.13.0", f"-DACCRUE_TORCH={torch}", *self.hidden_system(),
                      environment={"CUDAToolkit_ROOT": str(self.root / "cuda")})

    def test_old_abi(self):
        torch = make_torch(self.root / "torch", version="2.6.0",
                           extra='set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")\n')
        self.refused("was built with the old C++ ABI", f"-DACCRUE_TORCH={torch}")

    def test_old_abi_forced_by_flags(self):
        torch = make_torch(self.root / "torch")
        self.refused("The compiler flags ask for the old C++ ABI", f"-DACCRUE_TORCH={torch}",
                     "-DCMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
