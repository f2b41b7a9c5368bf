# SPDX-License-Identifier: BSD-3-Clause
"""Starts the guests of one test on one segment, waits for their results, and ends all of them."""
import dataclasses
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

RESULT = re.compile(r"^LAB-RESULT (\d+)", re.MULTILINE)
PANIC = re.compile(r"Kernel panic|Out of memory|segfault at")
POLL_SECONDS = 0.1
# Serious messages of the kernel before its console works.
EARLY = "earlyprintk=serial,ttyS0,115200"
# The kernel's test of the timer counts interrupts in a time of the host's, and panics on a busy
# host.
TIMER = "no_timer_check"


@dataclasses.dataclass
class Test:
    name: str
    shows: str
    script: str  # of tests/qemu/guests, without .sh
    nodes: int
    programs: list  # of build/release, which the guests run
    always: bool = True  # in the test command
    machine: tuple = ("-M", "pc")
    accelerator: str = "tcg,thread=multi"
    memory_mb: int = 384
    timeout: int = 200
    rdma: bool = False  # the guests get Soft-RoCE and tc
    perftest: bool = False
    # The nodes whose result counts; the others are ended once these have ended
    judges: tuple = (0,)
    # NICs of each node, all on the segment
    links: int = 1
    # By node; the last is for all others.
    nics: tuple = ("tulip",)
    # The driver to which the NIC is bound; "none": left to the kernel
    drivers: tuple = ("uio_pci_generic",)
    # Node -> a line of any console after which it loses power
    power_off: dict = dataclasses.field(default_factory=dict)
    # Node -> the same, after which its NIC is removed
    pull_card: dict = dataclasses.field(default_factory=dict)
    # Node -> two lines: after the first its last NIC loses its cable, until the second
    pull_cable: dict = dataclasses.field(default_factory=dict)


def mac_of(node, link=0):
    return f"02:21:14:30:{link:02x}:{node:02x}"


def hub_command(folder, ports):
    command = ["qemu-system-x86_64", "-M", "none", "-nodefaults", "-no-user-config", "-display",
               "none"]
    for i in range(ports):
        command += ["-netdev", f"stream,id=s{i},server=on,addr.type=unix,addr.path={folder}/w{i}",
                    "-netdev", f"hubport,id=h{i},hubid=0,netdev=s{i}"]
    return [*command, "-qmp", f"unix:{folder}/monitor_hub,server=on,wait=off"]


def guest_command(test, image, folder, node):
    kernel, root = image
    nic, driver = (choices[min(node, len(choices) - 1)] for choices in (test.nics, test.drivers))
    words = (f"console=ttyS0 {EARLY} quiet panic=-1 nokaslr mitigations=off {TIMER} "
             f"lab_test={test.script} lab_node={node} lab_nodes={test.nodes} lab_driver={driver}")
    if "intel-iommu" in " ".join(test.machine):
        words += " intel_iommu=on"
    cards = []
    for link in range(test.links):
        name = "card" if link == 0 else f"card{link}"
        wire = f"{folder}/w{node * test.links + link}"
        cards += ["-netdev", f"stream,id=n{link},server=off,addr.type=unix,addr.path={wire}",
                  "-device", f"{nic},netdev=n{link},id={name},mac={mac_of(node, link)}"]
    return [
        "qemu-system-x86_64", "-accel", test.accelerator, "-cpu", "max", *test.machine, "-m",
        str(test.memory_mb),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-kernel", str(kernel),
        "-initrd", str(root), "-append", words,
        "-serial", f"file:{folder}/console{node}", "-serial", f"file:{folder}/out{node}.tar",
        *cards, "-qmp", f"unix:{folder}/monitor{node},server=on,wait=off",
    ]


def pull_card(folder, node):
    """Asks the guest by ACPI to release its NIC, and removes it."""
    ask(folder, node, "device_del", {"id": "card"})


def set_cable(folder, node, links, plugged):
    """Pulls or plugs in the cable of the node's last NIC, of `links`. A NIC without a link takes no
    frame, and the hub blocks for all guests if it has one for that NIC. So the hub's port is cut
    first, and joined last."""
    card = (node, {"name": f"card{links - 1}", "up": plugged})
    port = ("_hub", {"name": f"h{node * links + links - 1}", "up": plugged})
    for end, arguments in (card, port) if plugged else (port, card):
        ask(folder, end, "set_link", arguments)


def ask(folder, end, command, arguments):
    """Has the monitor of a guest or of the hub carry out a command."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(10)
        monitor.connect(f"{folder}/monitor{end}")
        for words in ({"execute": "qmp_capabilities"},
                      {"execute": command, "arguments": arguments}):
            monitor.sendall(json.dumps(words).encode())
        answers = b""
        while answers.count(b'"return"') < 2:
            more = monitor.recv(4096)
            if not more or b'"error"' in more:
                raise RuntimeError(f"{command} failed: {more.decode()}")
            answers += more


def said(folder, node):
    try:
        return pathlib.Path(folder, f"console{node}").read_text(errors="replace")
    except OSError:
        return ""


def wait_for_sockets(folder, ports, hub):
    until = time.monotonic() + 10
    while not all(pathlib.Path(folder, f"w{i}").exists() for i in range(ports)):
        if time.monotonic() > until or hub.poll() is not None:
            raise RuntimeError("the hub does not listen")
        time.sleep(0.02)


def judge(test, folder, guests, pulled):
    """Returns None while the test runs; then (passed, why). `pulled`: nodes whose NIC is out, and
    lines about cables that were obeyed."""
    texts = [said(folder, i) for i in range(test.nodes)]
    for node, text in enumerate(texts):
        if PANIC.search(text):
            return False, f"node {node} crashed"
    for node, mark in test.power_off.items():
        if guests[node].poll() is None and any(mark in t for t in texts):
            guests[node].kill()  # as if the plug were pulled
    for node, mark in test.pull_card.items():
        if node not in pulled and any(mark in t for t in texts):
            pull_card(folder, node)
            pulled.add(node)
    for node, marks in test.pull_cable.items():
        for mark, plugged in zip(marks, (False, True)):
            if mark not in pulled and any(mark in t for t in texts):
                set_cable(folder, node, test.links, plugged)
                pulled.add(mark)
    results = {i: RESULT.search(texts[i]) for i in test.judges}
    for node, result in results.items():
        if result and result.group(1) != "0":
            return False, f"node {node} ended with {result.group(1)}"
        if not result and guests[node].poll() is not None:
            return False, f"node {node} went off without a result"
    return (True, "") if all(results.values()) else None


def run(test, image, keep=False, harvest=None, say=print):
    """Runs `test`; returns true if it passed. A failure shows the end of every console. `harvest`:
    gets the files that guests left in /out, by node. `say` prints."""
    folder = tempfile.mkdtemp(prefix="ulc-lab-")
    started = time.monotonic()
    processes = []
    passed, why = False, f"no result within {test.timeout} s"
    try:
        # It warns about a segment without a NIC
        hub = subprocess.Popen(hub_command(folder, test.nodes * test.links),
                               stderr=subprocess.DEVNULL)
        processes.append(hub)
        wait_for_sockets(folder, test.nodes * test.links, hub)
        guests = [subprocess.Popen(guest_command(test, image, folder, i))
                  for i in range(test.nodes)]
        processes += guests
        pulled = set()
        while time.monotonic() - started < test.timeout:
            verdict = judge(test, folder, guests, pulled)
            if verdict is not None:
                passed, why = verdict
                break
            time.sleep(POLL_SECONDS)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
    seconds = time.monotonic() - started
    say(f"{'ok    ' if passed else 'FAILED'} {test.name} ({seconds:.0f} s)"
        f"{'' if passed else ': ' + why}")
    sys.stdout.flush()
    for node in range(test.nodes):
        lines = said(folder, node).splitlines()
        results = [x for x in lines if x.startswith(("LAB:", "frame_echo:"))]
        for line in results if passed else lines[-25:]:
            print(f"    node {node}: {line}", flush=True)
    for node in range(test.nodes if harvest else 0):
        target = pathlib.Path(harvest, f"{test.name}-{node}")
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xf", f"{folder}/out{node}.tar", "-C", target],
                       stderr=subprocess.DEVNULL, check=False)
    if keep:
        print(f"    consoles: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return passed
