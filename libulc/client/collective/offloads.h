// SPDX-License-Identifier: BSD-3-Clause
// The schedules of one endpoint that its engine runs, by cookie, and the memory of the tx arena
// that is set aside for them. Used by Endpoint and OffloadRun. Invariant: a cookie names one
// schedule until the engine reports its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/records.h"

namespace ulc::client {

class OffloadRun;
class Submitter;
class TxArena;

class Offloads {
public:
    /// submitter, arena: outlive this.
    Offloads(Submitter& submitter, TxArena& arena) noexcept
        : submitter_(submitter), arena_(arena) {}

    /// Submits a schedule. `request`: in the arena until run.on_done(). Returns false if it is not
    /// there, or if there is no space for the record yet.
    [[nodiscard]] bool submit(OffloadRun& run, std::uint32_t group, std::uint64_t tag,
                              std::span<const unsigned char> request);
    [[nodiscard]] bool cancel(std::uint32_t cookie) noexcept;
    /// Handles a kOffloadDone. Returns false if no correct engine writes it.
    [[nodiscard]] bool on_done(const abi::CompletionRecord& record) noexcept;
    void fail_all(int error) noexcept;

    /// Allocates memory that operations keep until they are over: at most half of the arena, so
    /// that data for which they may wait can still be sent. nullptr: there is none.
    [[nodiscard]] void* set_aside(std::size_t octets) noexcept;
    /// `octets`: as given to set_aside().
    void give_back(void* memory, std::size_t octets) noexcept;
    void check_invariants() const;

private:
    Submitter& submitter_;
    TxArena& arena_;
    std::vector<OffloadRun*> running_;  ///< by cookie; nullptr: free
    std::size_t aside_ = 0;             ///< bytes of blocks
};

}  // namespace ulc::client
