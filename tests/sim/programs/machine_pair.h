// SPDX-License-Identifier: BSD-3-Clause
// Two machines on a cable, whose engines have several threads: streams of messages between them, or
// between the threads of one, and what they cost. Used by the table of engine threads and its test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {

enum class ThreadTraffic : std::uint8_t {
    kPairs,        ///< each endpoint of the first machine streams to one of the second
    kMulticast,    ///< one endpoint of the first machine multicasts to those of the second
    kOtherThread,  ///< within the first machine: the ends of a stream have different threads
};

struct MachinePair {
    ThreadTraffic traffic = ThreadTraffic::kPairs;
    std::uint16_t threads = 1;
    Steering steering = Steering::kByNic;
    std::uint64_t bits_per_second = 100'000'000'000;
    std::uint16_t streams = 8;  ///< or receivers of the multicast
    std::size_t octets = 40;
    std::uint64_t count = 2000;  ///< messages of each stream
    std::string host = "engine-core";
    std::uint32_t ring_frames = 1024;  ///< waiting for a thread, in its NIC queue and rings
    std::uint64_t seed = 1;
};

/// A machine's share of a message.
struct MachineShare {
    double busy_ns = 0;  ///< work by all threads
    double frames = 0;   ///< sent
    double octets = 0;   ///< in these frames
};

/// Taken in the middle eight tenths of the deliveries. A multicast is one message.
struct MachineFigures {
    std::string error;    ///< empty: all messages came, in order and whole
    double messages = 0;  ///< a second
    MachineShare first;
    MachineShare second;
    double busiest = 0;  ///< share of its time that the busiest thread worked
    std::uint64_t overruns = 0;
    std::uint64_t repairs = 0;
    std::uint64_t handed_over = 0;  ///< frames of the cable that one thread gave to others
};

[[nodiscard]] MachineFigures run_machine_pair(const MachinePair& pair);

}  // namespace ulc::sim
