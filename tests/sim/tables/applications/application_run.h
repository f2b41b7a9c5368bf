// SPDX-License-Identifier: BSD-3-Clause
// An application as its ranks' phases: computing for a time, collectives, messages. Communication
// is that of the shipped libulc on simulated hosts. A host's processor computes and serves its
// engine by turns.
#pragma once

#include <coll.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"

namespace ulc::sim {

using Bytes = std::vector<std::byte>;

class ApplicationRun {
public:
    /// A rank a node.
    explicit ApplicationRun(const ClusterConfig& config);

    // --- the next phase of a rank; ranks give the same collectives in the same order. algorithm:
    // as for coll.h. Every octet that is received is checked.
    void compute(std::uint16_t rank, Nanos time);
    void broadcast(std::uint16_t rank, std::uint16_t root, std::size_t octets,
                   std::string algorithm);
    /// Scatters from rank 0, or gathers at it, `block` octets of each rank.
    void scatter(std::uint16_t rank, std::size_t block, std::string algorithm);
    void gather(std::uint16_t rank, std::size_t block, std::string algorithm);
    void allgather(std::uint16_t rank, std::size_t block, std::string algorithm);
    /// A message; nothing if both are the same rank.
    void hand_on(std::uint16_t from, std::uint16_t to, std::size_t octets);

    /// Runs it, from the start to the last rank's end. Not a number: something failed, was wrong,
    /// or took too long.
    [[nodiscard]] double seconds();

private:
    using Bytes = std::vector<unsigned char>;
    struct Phase {
        Nanos time = 0;  ///< computing; without start
        std::function<int(ulc_endpoint*, Phase&)> start;
        std::size_t input_octets = 0;  ///< from `input_at` of the content
        std::size_t output_octets = 0;
        std::size_t input_at = 0;
        std::size_t output_at = 0;
        std::size_t number = 0;  ///< number of the content, the same at all ranks
        bool is_message = false;
        ulc_coll* operation = nullptr;
        ulc_request request{};
        Bytes input;
        Bytes output;
    };
    struct Rank {
        std::vector<Phase> phases;
        std::size_t at = 0;
        std::size_t exchanges = 0;
        bool begun = false;
        bool failed = false;
        Nanos until = 0;        ///< end of computing
        Nanos busy_before = 0;  ///< the processor, when this stretch of computing began
        Nanos ended = 0;
    };
    Phase& exchange(std::uint16_t rank);
    Nanos act(std::uint16_t rank, Nanos now);
    bool computed(Rank& rank, std::uint16_t node, Nanos now);
    bool communicated(Rank& rank, ulc_endpoint* ep);

    LibCluster lib_;
    bool formed_;
    std::vector<Rank> ranks_;
};

}  // namespace ulc::sim
