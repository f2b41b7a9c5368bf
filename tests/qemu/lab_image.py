# SPDX-License-Identifier: BSD-3-Clause
"""Makes the image that the lab's guests boot: Debian's kernel, and a small root of busybox, DPDK
and this project's build."""
import lzma
import os
import pathlib
import py_compile
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "build" / "lab"
BUILD = ROOT / "build" / "release"

# With their dependencies; those that the kernel has built in are not in its package.
MODULES = ["uio_pci_generic", "vfio-pci", "e100", "tun", "tulip", "sch_ingress", "sch_multiq",
           "cls_flower", "act_mirred", "act_skbedit", "act_gact"]
# Modules that Debian's modprobe loads with a module although it could work without.
SOFT_NEEDS = {"vfio_pci": ["vfio_iommu_type1"]}
# Only these of DPDK's plug-ins: each brings libraries, and the guest is copied at every boot.
PLUGINS = ["bus_pci", "bus_vdev", "mempool_ring", "net_af_packet", "net_e1000", "net_virtio",
           "net_tap"]
PACKAGES = ["busybox-static", "dpdk-dev"]
# Requirements of a test with Soft-RoCE, from this machine and from Debian's packages.
RDMA_MODULES = ["crc32_generic", "e1000", "ib_uverbs", "rdma_rxe", "rdma_ucm", "sch_netem",
                "virtio_net", "virtio_pci"]
RDMA_PROGRAMS = ["rdma", "tc"]
PERFTEST_PACKAGES = ["perftest", "libibumad3", "libpci3"]
# Requirements of dpdk-devbind.py.
DEVBIND_PACKAGES = ["dpdk", "pciutils", "libpci3", "python3.11-minimal", "libpython3.11-minimal"]
XZ_MAGIC = b"\xfd7zXZ\x00"


class Missing(Exception):
    """Raised with the reason if the lab cannot run here."""


def say(text):
    print(f"  {text}", flush=True)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def package_names():
    """Returns the kernel's package by its own name: the meta-package depends on the newest."""
    try:
        depends = output_of("apt-cache", "depends", "linux-image-amd64")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing("apt knows no linux-image-amd64; run: apt-get update") from error
    found = re.search(r"Depends: (linux-image-\S+)", depends)
    if not found:
        raise Missing("apt knows no kernel for linux-image-amd64; run: apt-get update")
    return [found.group(1)] + PACKAGES


def unpack(package):
    """Returns the files of a Debian package in a folder of the cache; fetched once a version."""
    policy = re.search(r"Candidate: (\S+)", output_of("apt-cache", "policy", package))
    folder = CACHE / f"{package}_{policy.group(1).replace(':', '%3a') if policy else 'none'}"
    if folder.is_dir():
        return folder
    say(f"fetching {package}")
    fetched = CACHE / "fetched"
    shutil.rmtree(fetched, ignore_errors=True)
    fetched.mkdir(parents=True)
    try:
        subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package],
                       cwd=fetched, check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode().strip()[-200:]
        raise Missing(f"the package {package} could not be fetched: {reason}") from error
    partial = CACHE / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-x", next(fetched.glob("*.deb")), partial], check=True)
    partial.rename(folder)
    return folder


def kernel_of(package):
    """Returns the uncompressed kernel: QEMU starts it three times as fast as the compressed one."""
    plain = package / "vmlinux"
    if not plain.exists():
        packed = next((package / "boot").glob("vmlinuz-*")).read_bytes()
        start = packed.find(XZ_MAGIC)
        if start < 0:
            raise Missing("the kernel of the package is not packed by xz; please report it")
        plain.write_bytes(lzma.LZMADecompressor().decompress(packed[start:]))
    return plain


def libraries_of(programs, folder=""):
    """Returns all shared libraries that `programs` load, as the loader of this machine finds them,
    or in `folder`."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    text = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True,
                          check=False, env=environment).stdout
    missing = re.search(r"(\S+) => not found", text)
    if missing:
        raise Missing(f"{missing.group(1)} is not on this machine; run: tools/setup test")
    return sorted(set(re.findall(r"(?:=> |^\s)(/\S+) \(0x", text, re.MULTILINE)))


class Archive:
    """A cpio archive of the form 'newc' (Linux,
    Documentation/driver-api/early-userspace/buffer-format)."""

    def __init__(self):
        self.parts = []
        self.known = set()
        self.count = 0

    def add(self, name, mode, content=b""):
        name = name.strip("/")
        if name in self.known:
            return
        parent = os.path.dirname(name)
        if parent:
            self.add(parent, 0o40755)
        self.known.add(name)
        self.count += 1
        fields = [self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        self.parts += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]

    def add_file(self, name, path):
        self.add(name, 0o100755, pathlib.Path(path).read_bytes())

    def add_built(self, name, path):
        """Removes the sections that only a debugger reads: the root is in the guest's memory."""
        stripped = CACHE / "stripped"
        subprocess.run(["strip", "--strip-debug", "-o", stripped, path], check=True)
        self.add_file(name, stripped)

    def add_link(self, name, target):
        self.add(name, 0o120777, target.encode())

    def write(self, path):
        self.add("TRAILER!!!", 0)
        path.write_bytes(b"".join(self.parts))


def build_programs(programs):
    """Builds the programs. Those of a plain build exist; those that only tests need are built when
    first wanted, and again when changed."""
    advice = "run: tools/driver-headers && tools/build release"
    if not (BUILD / "build.ninja").exists():
        raise Missing(f"build/release is not there; {advice}")
    # A library is built by the name with its version; links without the version lead to it.
    top = os.path.realpath(BUILD)
    targets = [os.path.relpath(os.path.realpath(BUILD / p), top) for p in programs]
    built = subprocess.run(["ninja", "-C", BUILD, *targets], capture_output=True, text=True,
                           check=False)
    unknown = re.search(r"unknown target '(\S+?)'", built.stdout + built.stderr)
    if unknown:
        raise Missing(f"{unknown.group(1)} cannot be built; {advice}")
    if built.returncode != 0:
        raise RuntimeError(f"the build failed: {(built.stdout + built.stderr)[-2000:]}")


def module_name(name):
    return name.replace("-", "_")


def add_modules(archive, package, modules):
    """Adds `modules` and their dependencies, with the list that modprobe reads."""
    files = {module_name(path.stem): path for path in package.rglob("*.ko")}
    wanted = {}

    def want(name):
        """Returns the dependencies of `name` by modules.dep: the last is loaded first."""
        if name in wanted or name not in files:
            return wanted.get(name, [])
        wanted[name] = []
        depends = re.search(rb"\0depends=([^\0]*)", files[name].read_bytes())
        names = SOFT_NEEDS.get(name, []) + (depends.group(1).decode().split(",") if depends else [])
        chain = [n for need in map(module_name, names) if need in files
                 for n in [need, *want(need)] if n != name]
        wanted[name] = [n for i, n in enumerate(chain) if n not in chain[i + 1:]]
        return wanted[name]

    for module in modules:
        want(module_name(module))
    folder = next((package / "lib/modules").iterdir()).name
    for name in wanted:
        archive.add_file(f"lib/modules/{folder}/{files[name].name}", files[name])
    lines = [f"{files[name].name}: {' '.join(files[n].name for n in needs)}\n"
             for name, needs in wanted.items()]
    archive.add(f"lib/modules/{folder}/modules.dep", 0o100644, "".join(lines).encode())


def add_devbind(archive, roots):
    """Adds dpdk-devbind.py, lspci for it, and a minimal Python; compiled on the host if its Python
    can, since the guest is slow."""
    for root in roots:
        for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
            name = str(path.relative_to(root))
            if name.startswith(("usr/bin/", "lib/", "usr/lib/x86_64-linux-gnu/")):
                archive.add_file(name, path)
            elif path.suffix == ".py" and sys.version_info[:2] != (3, 11):
                archive.add_file(name, path)
            elif path.suffix == ".py":
                compiled = path.with_suffix(".pyc")
                if not compiled.exists():
                    py_compile.compile(
                        str(path), cfile=str(compiled), doraise=True,
                        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
                archive.add(name + "c", 0o100644, compiled.read_bytes())
    archive.add("usr/lib/python3.11/lib-dynload", 0o40755)  # it looks for that folder
    archive.add_link("usr/bin/python3", "python3.11")
    archive.add_link("usr/bin/env", "/bin/busybox")
    folder = next(p.parent for root in roots for p in root.rglob("libpci.so.3"))
    root = next(r for r in roots if folder.is_relative_to(r))
    archive.add_link(f"{folder.relative_to(root)}/libpci.so.3",
                     os.path.basename(os.path.realpath(folder / "libpci.so.3")))
    programs = [p for root in roots
                for p in (root / "usr/bin/lspci", root / "usr/bin/python3.11") if p.exists()]
    for library in libraries_of(programs, folder):
        if not library.startswith(str(CACHE)):
            add_library(archive, library)


def add_library(archive, library):
    # A library that is a plug-in as well must be one file, or it is loaded twice
    real = os.path.realpath(library)
    archive.add_file(real, real)
    archive.add_link(library, real)


def add_readme(archive):
    """Adds the commands of the guide to real NICs, for the guest to type, and their example."""
    guide = (ROOT / "docs/guide/REAL_NICS.md").read_text()
    chapter = guide.split("## Step by step")[1].split("\n## ")[0]
    lines = [line.split("  #")[0].strip() for line in chapter.splitlines()
             if line.startswith(" " * 7)]
    archive.add("lab/readme.lines", 0o100644, "".join(f"{line}\n" for line in lines).encode())
    if (BUILD / "libulc/libulc.so").exists():
        flags = [f"-I{ROOT}/libulc/client", f"-I{ROOT}/coll", f"-L{BUILD}/libulc", "-lulc"]
        subprocess.run(["cc", ROOT / "docs/examples/hello.c", *flags, "-o", CACHE / "hello"],
                       check=True)
        archive.add_file("ulc/hello", CACHE / "hello")


def rdma_files():
    """Returns programs, and libibverbs with its provider and librdmacm, of this machine. None: some
    are missing."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    programs = [shutil.which(p, path=path) for p in RDMA_PROGRAMS]
    folders = sorted(pathlib.Path("/usr/lib").glob("*/libibverbs"))
    names = ("libibverbs/librxe-rdmav*.so", "libibverbs.so.1", "librdmacm.so.1")
    found = [p for folder in folders for name in names for p in folder.parent.glob(name)]
    return (programs, found) if None not in programs and len(found) == 3 else None


def add_rdma(archive, perftest):
    """Adds Soft-RoCE's provider, programs that make a device and lose frames, and perftest."""
    programs, libraries = rdma_files()
    for path in programs:  # tc by its path: the shell prefers its own
        archive.add_file(f"ulc/{os.path.basename(path)}", os.path.realpath(path))
    for path in libraries:
        add_library(archive, str(path))
    archive.add("etc/libibverbs.d/rxe.driver", 0o100644, b"driver rxe\n")
    roots = [unpack(name) for name in PERFTEST_PACKAGES] if perftest else []
    if perftest:
        programs.append(str(roots[0] / "usr/bin/ib_send_lat"))
        archive.add_file("ulc/ib_send_lat", programs[-1])
    folders = ":".join(str(p.parent) for root in roots for p in root.rglob("*.so.3"))
    for found in libraries_of([*programs, *libraries], folders):
        if found.startswith(str(CACHE)):
            archive.add_file(f"ulc/{os.path.basename(found)}", os.path.realpath(found))
        else:
            add_library(archive, found)


def prepare(programs, rdma=False, perftest=False):
    """Returns the paths of (kernel, root). `programs`: those of build/release, relative to it; they
    are in /ulc of the guest. `rdma`: with the requirements of Soft-RoCE. `perftest`: with that of
    Debian."""
    if not shutil.which("qemu-system-x86_64"):
        raise Missing("QEMU is missing; run: tools/setup test")
    programs = sorted(set(programs))
    build_programs(programs)
    CACHE.mkdir(parents=True, exist_ok=True)
    kernel_package, busybox, dpdk = (unpack(name) for name in package_names())
    devbind = [unpack(name) for name in DEVBIND_PACKAGES]
    archive = Archive()
    archive.add_file("init", ROOT / "tests/qemu/guest_init.sh")
    archive.add_file("bin/busybox", busybox / "bin/busybox")
    archive.add_link("bin/sh", "busybox")
    for script in sorted((ROOT / "tests/qemu/guests").glob("*.sh")):
        archive.add_file(f"lab/{script.name}", script)
    for name, seed in (("A.mtx", 1), ("B.mtx", 2)):
        archive.add(f"lab/{name}", 0o100644,
                    output_of(str(ROOT / "tools/mtx-gen"), "96", "96", "--seed",
                              str(seed)).encode())
    add_modules(archive, kernel_package, MODULES + (RDMA_MODULES if rdma else []))
    if rdma:
        add_rdma(archive, perftest)
    add_devbind(archive, devbind)
    add_readme(archive)
    testpmd = dpdk / "usr/bin/dpdk-testpmd"
    plugins = pathlib.Path(next(iter(sorted(pathlib.Path("/usr/lib").glob("*/dpdk/pmds-*")))))
    plugin_files = [plugins / f"librte_{p}.so" for p in PLUGINS]
    for path in plugin_files:
        archive.add_file(str(path.resolve()), path.resolve())
        archive.add_link(str(path), os.path.relpath(path.resolve(), plugins))
    archive.add_file("ulc/dpdk-testpmd", testpmd)
    built = [BUILD / p for p in programs]
    for path in built:
        archive.add_built(f"ulc/{path.name}", path)
    for library in libraries_of([testpmd, *plugin_files, *built]):
        real = os.path.realpath(library)
        if library.startswith(str(ROOT)):
            archive.add_built(f"ulc/{os.path.basename(library)}", real)
        else:
            add_library(archive, library)
    image = CACHE / "root.cpio"
    archive.write(image)
    return kernel_of(kernel_package), image
