// SPDX-License-Identifier: BSD-3-Clause
// Starts DPDK's environment layer (EAL) from our own options; a user never types an EAL argument.
//
// The arguments chosen here, and why:
//   --file-prefix         one a process; see runtime_dir.h for why not --in-memory
//   --huge-unlink         with hugepages, so that a crash leaves no file behind
//   --no-huge -m N        without hugepages, or on request; reported in EalReport::notes
//   --no-pci / -a ADDR    only the named PCI devices are touched
//   -d, --iova-mode=pa    for NICs of our own drivers; see own_drivers.h
//   --lcores 0@(mask)     the calling thread keeps its CPUs (the default pins it to CPU 0)
//   --no-telemetry        no extra socket and thread
// EthdevPort::open() makes virtual devices later, one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace ulc::dpdk {

enum class Hugepages : std::uint8_t {
    kAuto,    ///< used when enough are free
    kAlways,  ///< refuse to start without
    kNever,
};

struct EalOptions {
    std::string program = "ulc";  ///< shown in logs
    std::vector<std::string>
        devices;  ///< device strings as in DeviceSpec; only PCI addresses matter here
    std::uint32_t memory_mb = 256;  ///< for frame pools and devices, all ports of the process
    Hugepages hugepages = Hugepages::kAuto;
    std::string log_level = "warning";    ///< a name or number that --log-level takes
    std::vector<std::string> extra_args;  ///< for experts; appended, so they override ours
};

struct EalReport {
    bool hugepages = false;
    std::vector<std::string> notes;  ///< sentences for the user, e.g. why hugepages are not used
};

/// Starts the EAL once a process; a second call reports success and changes nothing. Afterwards the
/// thread's CPU affinity is the same as before. Not for the hot path. Errors (`why`: the cause and
/// the advice): kInvalid (an argument), kNoMemory (hugepages), kPermission, kSystem.
Err start_eal(const EalOptions& options, EalReport& report, std::string& why);

/// Removes the EAL's files; the process cannot start it again. Call after all ports are closed.
void stop_eal();

/// Returns the ticks a second of the time stamp counter as the EAL measured them; after
/// start_eal().
std::uint64_t tsc_hz();

/// Gives the calling thread a private buffer cache, so that frames are allocated without atomics.
/// For any thread that will run an engine and did not call start_eal(). If it returns false, the
/// thread works without, more slowly.
bool adopt_thread();

/// Undoes adopt_thread(); call before the thread ends.
void release_thread();

}  // namespace ulc::dpdk
