// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/queues/dropped.h"

#include <cstdio>

#include "ofi/say.h"

namespace ulc::ofi {
namespace {

constexpr const char* kReasons[kHeaderFaults] = {
    "",
    "shorter than the header",
    "header of another version",
    "unknown flags",
    "reserved bytes that are not zero",
    "completion data without their flag",
    "announcement of a wrong form",
    "descriptor that does not fit its message",
    "answer of a wrong form",
    "request to access memory of a wrong form",
    "response to such a request of a wrong form",
};

}  // namespace

void DroppedMessages::add(HeaderFault why, std::uint16_t rank, std::uint16_t source) noexcept {
    ++counts_[static_cast<std::size_t>(why)];
    if (total_++ > 0) return;
    say("rank %u dropped a malformed message of rank %u: %s. More are counted and printed at the "
        "end. Install one version of libulc-fi.so on all nodes.",
        unsigned{rank}, unsigned{source}, kReasons[static_cast<std::size_t>(why)]);
}

void DroppedMessages::print_total(std::uint16_t rank) const noexcept {
    if (total_ == 0) return;
    char list[1024];
    std::size_t used = 0;
    for (std::size_t i = 0; i < kHeaderFaults; ++i) {
        if (counts_[i] == 0) continue;
        used += static_cast<std::size_t>(
            std::snprintf(list + used, sizeof list - used, "%s%s %llu", used == 0 ? "" : ", ",
                          kReasons[i], static_cast<unsigned long long>(counts_[i])));
        if (used >= sizeof list) break;
    }
    say("rank %u dropped %llu malformed messages: %s", unsigned{rank},
        static_cast<unsigned long long>(total_), list);
}

}  // namespace ulc::ofi
