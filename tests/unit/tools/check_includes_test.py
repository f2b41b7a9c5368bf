#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests that tools/check_includes finds each planted violation, and nothing in a correct tree.

Prints TAP, one line a case. Usage: check_includes_test.py PATH/TO/check_includes
"""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

KEEPS_THE_RULES = {
    "libulc/base/check.h": "#include <cstdio>\n#include <stdint.h>\n",
    "libulc/base/errors.def": "",
    "libulc/abi/records.h": '#include "base/check.h"\n#include <sys/mman.h>\n',
    "libulc/abi/schedule.h": '#include "base/check.h"\n',
    "libulc/exec/executor.h": '#include "abi/schedule.h"\n',
    "libulc/client/ulc.h": "#include <stdint.h>\n",
    "libulc/client/ulc.hpp": "#include <ulc.h>\n#include <memory>\n",
    "libulc/client/endpoint.cc":
        '#include "client/ulc.h"\n#include "exec/executor.h"\n#include <unistd.h>\n',
    "coll/coll.h": "#include <ulc.h>\n",
    "coll/barrier.cc":
        '#include "coll/coll.h"\n#include "abi/schedule.h"\n// new thread, rte_eal.h\n',
    "pmd_app/wire/ids.h": "#include <cstdint>\n",
    "pmd_app/port/segment.h": '#include "base/check.h"\n',
    "pmd_app/urtp/stream.h":
        '#include "wire/ids.h"\nconst char* a = "new std::mutex"; int b = 1\'000;\n',
    "pmd_app/urtp/stream.cc": "void f(void* p) { new (p) int; renew(); known(); }\n",
    "pmd_app/port/port.h": '#include "port/segment.h"\n',
    "pmd_app/engine/round.cc": '#include "urtp/stream.h"\n#include "abi/records.h"\n',
    "pmd_app/udp/udp_socket.cc": '#include "wire/ids.h"\n#include <sys/socket.h>\n',
    "pmd_app/dpdk/port.cc": '#include "port/port.h"\n#include <rte_ethdev.h>\n',
    "pmd_app/switch/switch.cc": '#include "wire/ids.h"\n#include <spdlog/spdlog.h>\n',
    "pmd_app/main/main.cc":
        '#include "port/port.h"\n#include "abi/records.h"\n#include <CLI/CLI.hpp>\n',
    "tools/ulc/ulc.cc":
        '#include <ulc.h>\n#include <coll.h>\n#include "wire/ids.h"\n#include <fmt/core.h>\n',
    "tools/command.cc": '#include "helper.h"\n#include "tools/helper.h"\n',
    "tools/helper.h": "",
    "bench/latency.cc": '#include <benchmark/benchmark.h>\n#include <ulc.h>\n',
    "bench/engine_rate.cc": '#include "port/port.h"\n',
    "bench/dpdk_echo.cc": "#include <rte_ethdev.h>\n",
    "tests/sim/medium.h": '#include "port/port.h"\n#include "coll/coll.h"\n',
    "tests/unit/port_test.cc": '#include "dpdk/port.h"\n#include <gtest/gtest.h>\n',
    "pmd_app/dpdk/port.h": "",
    "coll/mpi/session.h": '#include "coll/mpi/core.h"\n',
    "coll/mpi/core.h": "",
    "coll/mpi/pmpi/world.cc": '#include <mpi.h>\n#include "coll/mpi/core.h"\n',
    "pmd_app/jobs/jobs.h": '#include "urtp/stream.h"\n#include "wire/ids.h"\n',
    "pmd_app/endpoint/outlet.h": '#include "urtp/stream.h"\n#include "abi/records.h"\n',
    "pmd_app/endpoint/longest.h": "\n" * 499,
    "pmd_app/main/clock.h": "namespace ulc::state {\nclass A;\n}\nnamespace ulc::daemon {\n}\n",
    "pmd_app/urtp/profiles/a.h": "namespace ulc::urtp::profiles {\n}\n",
    "coll/algorithms/tree.h": "namespace ulc::coll {\n}\n",
    "libulc/base/units.h": "namespace ulc {\n}\n",
    "libulc/base/state/archive.h": "namespace ulc::state {\n}\n",
    "pmd_app/drivers/tulip/chip.h": "namespace ulc::tulip {\n}\n",
} | {f"{folder}/{number}{suffix}": ""
     for folder, suffix in (("pmd_app/shm", ".h"), ("tests/unit/shm", ".txt"))
     for number in range(25)} | {f"tests/fuzz/corpus/frames/{number}": "" for number in range(26)}

# name -> (file, its text, what the report must say)
VIOLATIONS = {
    "main_reads_the_wall_clock": (
        "pmd_app/main/a.cc", "auto t = std::chrono::system_clock::now();", "use base/clock.h"),
    "client_reads_the_wall_clock": (
        "libulc/client/a.cc", "clock_gettime(CLOCK_REALTIME, &t);", "use base/clock.h"),
    "a_source_is_too_long": ("pmd_app/urtp/a.cc", "\n" * 498, "give each duty a file"),
    "a_folder_has_too_many_files": ("pmd_app/shm/a.h", "", "make sub-folders by duty"),
    "a_folder_of_tests_has_too_many_files":
        ("tests/unit/shm/a.cc", "", "make sub-folders by duty"),
    "base_includes_another_component":
        ("libulc/base/a.h", '#include "abi/records.h"', "may not include"),
    "base_includes_an_operating_system_header":
        ("libulc/base/a.h", "#include <sys/mman.h>", "standard library"),
    "base_includes_a_third_party_library":
        ("libulc/base/a.h", "#include <fmt/core.h>", "standard library"),
    "abi_includes_exec": ("libulc/abi/a.h", '#include "exec/executor.h"', "may not include"),
    "exec_includes_client": ("libulc/exec/a.h", '#include "client/ulc.h"', "may not include"),
    "client_includes_wire": ("libulc/client/a.cc", '#include "wire/ids.h"', "may not include"),
    "client_includes_coll": ("libulc/client/a.cc", '#include "coll/coll.h"', "may not include"),
    "client_includes_dpdk": ("libulc/client/a.cc", "#include <rte_mbuf.h>", "port/port.h"),
    "algorithms_include_the_client": (
        "coll/algorithms/a.cc", '#include "client/ulc.h"', "may not include"),
    "algorithms_start_a_thread": (
        "coll/algorithms/a.cc", "std::thread t(f);", "serialises"),
    "coll_includes_an_inner_client_file":
        ("coll/a.cc", '#include "client/endpoint.cc"', "may not include"),
    "coll_includes_exec": ("coll/a.cc", '#include "exec/executor.h"', "may not include"),
    "coll_includes_records": ("coll/a.cc", '#include "abi/records.h"', "may not include"),
    "mpi_core_includes_an_mpi": ("coll/mpi/a.cc", "#include <mpi.h>", "folder of each MPI"),
    "pmpi_includes_inside_the_core":
        ("coll/mpi/pmpi/a.cc", '#include "coll/mpi/session.h"', "may not include"),
    "pmpi_includes_open_mpi": ("coll/mpi/pmpi/a.cc", "#include <ompi/op/op.h>", "Open MPI's inner"),
    "wire_includes_abi": ("pmd_app/wire/a.h", '#include "abi/records.h"', "may not include"),
    "urtp_includes_engine": ("pmd_app/urtp/a.h", '#include "engine/round.cc"', "may not include"),
    "urtp_includes_dpdk": ("pmd_app/urtp/a.cc", "#  include  <rte_cycles.h>", "port/port.h"),
    "engine_includes_dpdk": ("pmd_app/engine/a.cc", "#include <rte_mbuf.h>", "port/port.h"),
    "urtp_includes_the_port": ("pmd_app/urtp/a.h", '#include "port/port.h"', "may not include"),
    "jobs_include_the_engine":
        ("pmd_app/jobs/a.h", '#include "engine/round.cc"', "may not include"),
    "jobs_include_the_endpoint":
        ("pmd_app/jobs/a.h", '#include "endpoint/outlet.h"', "may not include"),
    "endpoint_includes_the_engine":
        ("pmd_app/endpoint/a.h", '#include "engine/round.cc"', "may not include"),
    "endpoint_includes_jobs": ("pmd_app/endpoint/a.h", '#include "jobs/jobs.h"', "may not include"),
    "endpoint_includes_the_port":
        ("pmd_app/endpoint/a.h", '#include "port/port.h"', "may not include"),
    "jobs_read_a_clock":
        ("pmd_app/jobs/a.cc", "auto t = std::chrono::steady_clock::now();", "time as an arg"),
    "engine_includes_client": ("pmd_app/engine/a.cc", '#include "client/ulc.h"', "may not include"),
    "engine_includes_the_client_in_angles":
        ("pmd_app/engine/a.cc", "#include <ulc.h>", "may not include"),
    "dpdk_includes_the_engine": ("pmd_app/dpdk/a.cc", '#include "engine/round.cc"', "may not"),
    "dpdk_includes_urtp": ("pmd_app/dpdk/a.cc", '#include "urtp/stream.h"', "may not include"),
    "switch_includes_the_engine":
        ("pmd_app/switch/a.cc", '#include "engine/round.cc"', "may not include"),
    "main_includes_client": ("pmd_app/main/a.cc", '#include "client/ulc.h"', "may not include"),
    "drivers_include_wire":
        ("pmd_app/drivers/tulip/a.h", '#include "wire/ids.h"', "may not include"),
    "tools_include_the_engine": ("tools/a.cc", '#include "port/port.h"', "may not include"),
    "tools_include_dpdk": ("tools/a.cc", "#include <rte_eal.h>", "port/port.h"),
    "bench_includes_the_engine": ("bench/a.cc", '#include "port/port.h"', "may not include"),
    "bench_includes_dpdk": ("bench/a.cc", "#include <rte_eal.h>", "port/port.h"),
    "sim_includes_dpdk": ("tests/sim/a.cc", '#include "dpdk/port.h"', "may not include"),
    "code_includes_gtest": ("pmd_app/engine/a.cc", "#include <gtest/gtest.h>", "only tests"),
    "code_includes_benchmark":
        ("libulc/client/a.cc", "#include <benchmark/benchmark.h>", "only bench"),
    "public_header_in_quotes":
        ("libulc/client/ulc.hpp", '#include "client/ulc.h"', "public header"),
    "include_without_its_folder":
        ("pmd_app/urtp/a.cc", '#include "stream.h"', 'write "urtp/stream.h"'),
    "include_of_a_missing_file": ("pmd_app/urtp/a.cc", '#include "urtp/none.h"', "not found"),
    "file_in_no_component": ("pmd_app/elsewhere/a.cc", "", "no known component"),
    "engine_reads_a_clock":
        ("pmd_app/engine/a.cc", "auto t = std::chrono::steady_clock::now();", "time as an arg"),
    "engine_includes_sockets": ("pmd_app/engine/a.cc", "#include <sys/socket.h>", "sans-IO"),
    "engine_makes_unique": ("pmd_app/engine/a.cc", "std::make_unique<int>(3);", "allocates"),
    "ports_include_the_wire": ("libulc/ports/a.cc", '#include "wire/ids.h"', "may not include"),
    "wire_includes_thread": ("pmd_app/wire/a.h", "#include <thread>", "sans-IO"),
    "urtp_includes_mutex": ("pmd_app/urtp/a.h", "#include <mutex>", "sans-IO"),
    "exec_includes_sockets": ("libulc/exec/a.h", "#include <sys/socket.h>", "sans-IO"),
    "coll_includes_ctime": ("coll/a.cc", "#include <ctime>", "sans-IO"),
    "urtp_reads_a_clock":
        ("pmd_app/urtp/a.cc", "auto t = std::chrono::steady_clock::now();", "time as an arg"),
    "wire_reads_the_posix_clock":
        ("pmd_app/wire/a.cc", "clock_gettime(0, &t);", "time as an argument"),
    "urtp_makes_randomness": ("pmd_app/urtp/a.cc", "std::random_device seed;", "Prng"),
    "coll_calls_rand": ("coll/a.cc", "int r = rand();", "Prng"),
    "urtp_locks": ("pmd_app/urtp/a.cc", "std::lock_guard lock(m);", "serialises"),
    "exec_starts_a_thread": ("libulc/exec/a.cc", "std::thread t(f);", "serialises"),
    "urtp_sends": ("pmd_app/urtp/a.cc", "::sendto(1, b, 2, 0, 0, 0);", "return an action"),
    "urtp_news": ("pmd_app/urtp/a.cc", "auto* p = new int;", "allocates"),
    "wire_mallocs": ("pmd_app/wire/a.cc", "void* p = std::malloc(3);", "allocates"),
    "exec_makes_unique": ("libulc/exec/a.cc", "auto p = std::make_unique<int>(3);", "allocates"),
    "coll_news_after_a_comment":
        ("coll/a.cc", "/* why */ auto* p = new int[3]; // so", "allocates"),
    "jobs_in_the_namespace_of_the_engine":
        ("pmd_app/jobs/a.h", "namespace ulc::engine {", "write ulc::jobs, not"),
    "a_namespace_that_only_begins_alike":
        ("pmd_app/jobs/a.h", "namespace ulc::jobs_too {", "write ulc::jobs, not"),
    "a_forward_declaration_alone_as_the_namespace":
        ("pmd_app/main/a.h", "namespace ulc::state { class A; }", "write ulc::daemon"),
    "base_in_a_namespace":
        ("libulc/base/state/a.h", "namespace ulc {", "write ulc::state, not ulc"),
}


# Position of a violation that is not reported on the third line.
ELSEWHERE = {"file_in_no_component": "pmd_app/elsewhere/a.cc:1: ",
             "a_source_is_too_long": "pmd_app/urtp/a.cc:501: ",
             "a_folder_has_too_many_files": "pmd_app/shm:1: ",
             "a_folder_of_tests_has_too_many_files": "tests/unit/shm:1: "}


DOCUMENT = "docs/ARCHITECTURE.md"


def document(checker):
    """Returns a document that agrees with the tables of the tool."""
    loader = importlib.machinery.SourceFileLoader("check_includes", checker)
    spec = importlib.util.spec_from_loader("check_includes", loader)
    tool = importlib.util.module_from_spec(spec)
    loader.exec_module(tool)
    text = (pathlib.Path(checker).parent.parent / DOCUMENT).read_text(encoding="utf-8")
    rows = "".join(f"| `{row}/` | |\n" for row in tool.ROW.findall(text))
    return f"- {tool.SANS_IO_RULE.search(text).group(0)}\n{rows}"


# name -> (text of the document, what is there instead, what the report must say)
IN_THE_DOCUMENT = {
    "a_row_is_missing": ("| `pmd_app/udp/` | |\n", "", ":1: the table of folders has no row for "
                         "pmd_app/udp/: add one"),
    "a_row_of_no_component": ("| `pmd_app/udp/` | |\n",
                              "| `pmd_app/udp/` | |\n| `libulc/x/` | |\n",
                              "libulc/x/ is no component"),
    "a_layer_stands_too_low": ("| `libulc/base/` | |\n",
                               "| `pmd_app/shm/` | |\n| `libulc/base/` | |\n",
                               "pmd_app/shm/ may include pmd_app/port, whose row comes later"),
    "a_rule_without_a_folder": ("`engine/`, ", "", ":1: the sans-IO rule names other folders than "
                                "SANS_IO: engine"),
}


def run(checker, files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        done = subprocess.run([checker, "--root", root], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr


def main():
    checker = sys.argv[1]
    sys.dont_write_bytecode = True
    print(f"1..{len(VIOLATIONS) + len(IN_THE_DOCUMENT) + 1}")
    right = document(checker)
    status, output = run(checker, KEEPS_THE_RULES | {DOCUMENT: right})
    print("ok" if status == 0 else "not ok", "1 - accepts_a_tree_that_keeps_the_rules")
    if status != 0:
        print(output, file=sys.stderr)
    for number, (name, (path, text, said)) in enumerate(VIOLATIONS.items(), 2):
        # The violation is on the third line, so that the reported line number is checked too.
        status, output = run(checker, KEEPS_THE_RULES | {path: "\n\n" + text})
        expected_line = ELSEWHERE.get(name, f"{path}:3: ")
        reports = [line for line in output.splitlines() if line.startswith(expected_line)]
        found = (status == 1 and len(output.splitlines()) == 2
                 and any(said in line for line in reports))
        print("ok" if found else "not ok", f"{number} - finds_{name}")
        if not found:
            print(f"{name}: expected one report, {expected_line}...{said}..., got:\n{output}",
                  file=sys.stderr)
    for number, (name, (old, new, said)) in enumerate(IN_THE_DOCUMENT.items(), len(VIOLATIONS) + 2):
        wrong = right.replace(old, new, 1)
        status, output = run(checker, KEEPS_THE_RULES | {DOCUMENT: wrong})
        found = wrong != right and status == 1 and said in output
        print("ok" if found else "not ok", f"{number} - finds_{name}_in_the_document")
        if not found:
            print(f"{name}: expected {said}, got:\n{output}", file=sys.stderr)


main()
