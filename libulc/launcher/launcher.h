// SPDX-License-Identifier: BSD-3-Clause
// This file finds the place of a process in a parallel program from the launcher that started it.
// Used by libulc/client.
//
//   found by                              name and nonce from
//   PMIx     PMIX_NAMESPACE, PMIX_RANK    namespace; rank 0 publishes a random nonce
//   Hydra    PMI_RANK, PMI_FD             the key-value space; a random nonce through it (PMI-1)
//   Slurm    SLURM_PROCID, SLURM_STEP_ID  job and step; the engine of rank 0 makes a nonce
//
// Behind the nonce rank 0 publishes the addresses of its engine, if its wire finds no nodes itself.
//
// The nonce is random because names of namespaces can be guessed: Open MPI makes them of a process
// number. It is got by key from rank 0 and not by a PMIx fence, so a rank waits for rank 0 alone,
// and a rank that does not join delays none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace ulc::launcher {

using Nonce = std::array<unsigned char, 16>;

struct Place {
    std::string job;
    std::uint16_t rank = 0;
    std::uint16_t size = 0;
    std::optional<Nonce> nonce;
    /// Given: where others can ask for the engine of this process. Found: those of rank 0.
    /// Printable, without spaces; empty: none.
    std::string addresses;
};

enum class Outcome : std::uint8_t {
    kFound,
    kNoLauncher,  ///< the environment shows none that is known
    kFailed,      ///< there is one, and it did not answer; the reason is a sentence
};

/// The caller that asks for the place of a process.
enum class Asker : std::uint8_t {
    kProgram,  ///< at any time, and perhaps not in every rank
    /// The start of an MPI, at the same point in every rank. Hydra's connection belongs to that MPI
    /// and is idle meanwhile, so it may be used.
    kStartOfMpi,
};

/// Finds the place of this process. Talks to the launcher at the first call in a process, at most
/// `timeout_seconds`; later calls return what that one found. place: all but `addresses` is written
/// alone. Thread safe.
[[nodiscard]] Outcome find_place(Place& place, unsigned timeout_seconds, Asker asker,
                                 std::string& reason);

/// Returns the rank of this process as the environment shows it; talks to no launcher. nullopt: it
/// shows none.
[[nodiscard]] std::optional<unsigned> rank_in_environment();

}  // namespace ulc::launcher
