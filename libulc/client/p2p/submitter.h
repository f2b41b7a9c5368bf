// SPDX-License-Identifier: BSD-3-Clause
// The client's end of the submission ring with its doorbell.
#pragma once

#include <cstdint>

#include "abi/region.h"
#include "client/hooks.h"

namespace ulc::client {

class Submitter {
public:
    Submitter(const abi::Region& region, const Hooks& hooks) noexcept
        : control_(&region.control()), ring_(region.submission_producer()), hooks_(hooks) {}

    /// Returns a record of which all but the mark must be filled; nullptr: the ring is full.
    [[nodiscard]] abi::SubmissionRecord* claim_raw() noexcept { return ring_.claim(); }
    /// A record of this kind to fill (all but mark and body are set to zero), or nullptr: full.
    [[nodiscard]] abi::SubmissionRecord* claim(abi::SubmitKind kind) noexcept {
        abi::SubmissionRecord* record = ring_.claim();
        if (record == nullptr) return nullptr;
        record->kind = kind;
        record->flags = 0;
        record->inline_length = 0;
        record->stream = 0;
        record->cookie = 0;
        record->tag = 0;
        return record;
    }
    /// Hands the claimed record over, and wakes the engine if it sleeps.
    void publish() noexcept {
        ring_.publish();
        if (hooks_.wake_engine != nullptr && abi::engine_needs_doorbell(*control_)) {
            hooks_.wake_engine(hooks_.context);
        }
    }

    /// Hands over a record that names a rank, a group or nothing. Returns false: the ring is full.
    [[nodiscard]] bool submit(abi::SubmitKind kind, std::uint32_t stream = 0) noexcept {
        abi::SubmissionRecord* record = claim(kind);
        if (record == nullptr) return false;
        record->stream = stream;
        publish();
        return true;
    }

    /// Records handed over so far, free running.
    [[nodiscard]] std::uint32_t published() const noexcept { return ring_.produced(); }
    [[nodiscard]] bool corrupt() const noexcept { return ring_.corrupt(); }

private:
    abi::EndpointControl* control_;
    abi::SubmissionProducer ring_;
    const Hooks& hooks_;
};

}  // namespace ulc::client
