// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/rma/refused.h"

#include <cstdio>

#include "ofi/say.h"

namespace ulc::ofi {
namespace {

constexpr const char* kReasons[kRmaResults] = {
    "",
    "",
    "no region has its key",
    "a range outside its region",
    "access that its region does not grant",
    "an operation that its datatype does not have",
    "too many long transfers under way",
    "no memory",
    "data that do not fit its request",
    "data that came too late, or not at all",
};

}  // namespace

void RefusedAccesses::add(RmaResult why, std::uint16_t rank, std::uint16_t source) noexcept {
    ++counts_[static_cast<std::size_t>(why)];
    if (total_++ > 0) return;
    say("rank %u refused an access of rank %u to its memory: %s. More are counted and printed at "
        "the end. The other rank has an error completion.",
        unsigned{rank}, unsigned{source}, kReasons[static_cast<std::size_t>(why)]);
}

void RefusedAccesses::print_total(std::uint16_t rank) const noexcept {
    if (total_ == 0) return;
    char list[1024];
    std::size_t used = 0;
    for (std::size_t i = 0; i < kRmaResults && used < sizeof list; ++i) {
        if (counts_[i] == 0) continue;
        used += static_cast<std::size_t>(
            std::snprintf(list + used, sizeof list - used, "%s%s %llu", used == 0 ? "" : ", ",
                          kReasons[i], static_cast<unsigned long long>(counts_[i])));
    }
    say("rank %u refused %llu accesses to its memory: %s", unsigned{rank},
        static_cast<unsigned long long>(total_), list);
}

}  // namespace ulc::ofi
