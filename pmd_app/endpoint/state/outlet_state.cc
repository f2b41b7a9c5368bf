// SPDX-License-Identifier: BSD-3-Clause
// State of outlet.h, passed_log.h, sink.h, and of offload.h between two schedules.
#include <algorithm>

#include "base/state/containers.h"
#include "endpoint/offload.h"
#include "endpoint/outlet.h"

namespace ulc::abi {

constexpr Intake last_value(Intake) { return Intake::kNone; }

}  // namespace ulc::abi

namespace ulc::endpoint {

void Sink::fields(state::Archive& archive) { ULC_STATE(archive, Sink, 1, (offload, step), ()); }

void PassedLog::Entry::fields(state::Archive& archive) {
    ULC_STATE(archive, PassedLog::Entry, 1, (tag, number, source), ());
}

void PassedLog::fields(state::Archive& archive) {
    ULC_STATE(archive, PassedLog, 1, (entries_, count_), ());
}

void Offloads::fields(state::Archive& archive) {
    ULC_STATE(archive, Offloads, 1, (last_id_, busy_, retry_),
              (schedules_max_, steps_max_, counters_, running_));
}

void Outlet::Reserve::fields(state::Archive& archive) {
    ULC_STATE(archive, Outlet::Reserve, 1, (block, free), ());
}

void Outlet::Source::fields(state::Archive& archive) {
    ULC_STATE(archive, Outlet::Source, 3,
              (reserve, block, capacity, filled, done, length, tag, stream, unpacked, sink,
               block_is_reserve, open, whole, has_tag, intake),
              (place, forgotten));
}

/// Returns whether a message that is being filled lies in a block that the engine holds.
bool Outlet::fits(const Source& source) const noexcept {
    if (source.reserve >= reserves_.size() || (source.sink && offloads_ == nullptr)) return false;
    if (!source.open || source.block == RxArena::kNone) return true;
    return arena_.holds(source.block) && source.capacity <= arena_.capacity(source.block) &&
           source.filled <= source.capacity;
}

void Outlet::fields(state::Archive& archive) {
    ULC_STATE(archive, Outlet, 3,
              (completions_, ends_, releases_, arena_, index_, sources_, passed_, passed_at_,
               reserves_, reserved_octets_, mtu_, packs_, blocked_, unfinished_),
              (counters_, region_, loans_, offloads_, placer_, places_, rounds_waited_, waited_in_,
               delivered_part_, bad_release_));
    if (archive.exporting()) return;
    const auto known = [this](std::uint16_t index) { return index <= sources_.size(); };
    const auto there = [this](const Reserve& reserve) {
        return reserve.block == RxArena::kNone || arena_.holds(reserve.block) ||
               arena_.lends(reserve.block);
    };
    const bool holds = std::ranges::all_of(index_, known) &&
                       std::ranges::all_of(reserves_, there) &&
                       std::ranges::all_of(sources_, [this](const Source& s) { return fits(s); });
    archive.require(holds, "what an endpoint receives is not in its arena");
}

}  // namespace ulc::endpoint
