"""The recipe of hcabench for Spack. It names no source: `spack develop` names the checkout (docs/install.md)."""

import os

from spack.package import Executable, depends_on, license, on_package_attributes, run_after, variant, version

try:
    from spack_repo.builtin.build_systems.cargo import CargoPackage
except ImportError:  # before Spack 1.0
    from spack.package import CargoPackage


class Hcabench(CargoPackage):
    """Measures the one-way latency of RDMA host channel adapters, of queues between threads, and of clocks."""

    license("MIT OR Apache-2.0")

    version("0.1.0")

    variant("rdma", default=True, description="Benchmarks over libibverbs and librdmacm")
    variant("zeromq", default=True, description="The node-type zeromq")
    variant("services", default=True, description="The node-types grpc, iceoryx2, nats and redis")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("pkgconfig", type="build", when="+rdma")
    # Loaded at run time by their names.
    depends_on("rdma-core@44:", type=("build", "run"), when="+rdma")
    depends_on("libzmq@4:", type="run", when="+zeromq")

    @property
    def build_args(self):
        features = ["competitors", "mqtt"]
        features += [name for name in ("rdma", "zeromq") if self.spec.satisfies(f"+{name}")]
        if self.spec.satisfies("+services"):
            features.append("packaged")
        return ["--locked", "--bin", "hcabench", "--no-default-features", "--features", ",".join(features)]

    def setup_run_environment(self, env):
        for name in ("rdma-core", "libzmq"):
            if name in self.spec:
                prefix = self.spec[name].prefix
                for folder in filter(os.path.isdir, (prefix.lib, prefix.lib64)):
                    env.prepend_path("LD_LIBRARY_PATH", folder)

    def check(self):
        """Nothing: the tests of hcabench measure, and take an idle machine."""

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def measure_a_queue(self):
        Executable(self.prefix.bin.hcabench)("queue", "--queue", "baton", "--count", "1000", "--out", "spack-test")
