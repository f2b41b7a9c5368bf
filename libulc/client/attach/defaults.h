// SPDX-License-Identifier: BSD-3-Clause
// This file fills in what a caller left out, from the environment and the launcher. Used by api.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace ulc::client {

/// Returns the variable's value; nullptr if it is not set or empty.
[[nodiscard]] const char* env(const char* name);
/// Returns how long this process waits for silent nodes if it is debugged, by ULC_DEBUG=1 or since
/// another process traces it; 0: it is not.
[[nodiscard]] Nanos patience_of_debugging() noexcept;
/// Reads a number within [0, most] from the environment; false: it is not one.
[[nodiscard]] bool env_number(const char* name, std::uint64_t most, std::uint64_t& out);

/// The arguments of a join, completed.
struct JoinPlace {
    std::string job;  ///< empty: to be found
    std::uint16_t rank = 0;
    std::uint16_t size = 0;  ///< 0: to be found
    bool has_nonce = false;
    unsigned char nonce[16] = {};
    /// Addresses by which engines of other nodes find this process's, "10.0.0.5:4001,…"; empty: no
    /// such word is needed. The launcher tells it to the others if this is rank 0.
    std::string own_addresses;
    std::string rank_0_addresses;  ///< empty: the launcher gave none
};

/// Completes job, rank (ULC_RANK_ANY: to be found) and size: first from ULC_JOB, ULC_RANK,
/// ULC_SIZE and ULC_NONCE, then from the launcher, which is asked only if one is missing. The
/// launcher's nonce counts only if rank and size are the launcher's too: a job that spans
/// launchers has none. False: the error's text is set.
[[nodiscard]] bool complete_place(JoinPlace& place, Nanos timeout);

/// Replaces each "%n" in an engine's name by the node of this process: its rank modulo ULC_NODES,
/// as `ulc cluster` sets it. False: the error's text is set.
[[nodiscard]] bool choose_node(std::string& engine);

}  // namespace ulc::client
