// SPDX-License-Identifier: BSD-3-Clause
// Fields of small values of wire/ and urtp/, and names: an object is named by a rank, the number of
// a stream, or the handle of a group, and a list is the sequence of its names.
#pragma once

#include "base/state/archive.h"
#include "urtp/sessions.h"
#include "wire/state/ids.h"

namespace ulc {

inline void fields(state::Archive& archive, Mac& mac) { archive.values(mac.octets); }

}  // namespace ulc

namespace ulc::urtp {

constexpr EventKind last_value(EventKind) noexcept { return EventKind::kPathNarrow; }
constexpr TimerOwner last_value(TimerOwner) noexcept { return TimerOwner::kGroup; }

/// Exports or imports a flag of one bit.
#define ULC_STATE_BIT(archive, flag)     \
    do {                                 \
        bool ulc_state_bit = (flag);     \
        (archive).values(ulc_state_bit); \
        (flag) = ulc_state_bit;          \
    } while (false)

[[nodiscard]] inline std::uint32_t name_of(const Session& session) noexcept { return session.rank; }
[[nodiscard]] inline std::uint32_t name_of(const TxStream& tx) noexcept { return tx.id; }
[[nodiscard]] inline std::uint32_t name_of(const Group& group) noexcept { return group.handle; }

/// Looks an object up; nullptr: there is none of this name.
[[nodiscard]] inline Session* find_named(const Sessions& in, std::uint32_t name,
                                         const Session*) noexcept {
    return name < in.size() ? in.find(name) : nullptr;
}
[[nodiscard]] inline Group* find_named(const Sessions& in, std::uint32_t name,
                                       const Group*) noexcept {
    return in.find_group(name);
}
[[nodiscard]] inline TxStream* find_named(const Sessions& in, std::uint32_t name,
                                          const TxStream*) noexcept {
    if (is_group(name)) {
        const Group* group = in.find_group(name);
        return group != nullptr ? group->tx.get() : nullptr;
    }
    const Session* session = name < in.size() ? in.find(name) : nullptr;
    return session != nullptr ? session->tx.get() : nullptr;
}
/// Returns the session's stream of this number; nullptr: it has none.
[[nodiscard]] inline RxStream* find_stream(Session& session, StreamId id) noexcept {
    RxStream* rx = session.streams();
    while (rx != nullptr && rx->id != id)
        rx = rx->sibling;
    return rx;
}

/// Exports or imports a list, which is empty before an import.
template <class T, Links<T> T::*kLink>
void list_fields(state::Archive& archive, List<T, kLink>& list, const Sessions& named) {
    using ListOf = List<T, kLink>;
    const std::size_t count = archive.count(list.size(), UINT16_MAX * 2UL, "a list is too long");
    const T* item = list.front();
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t name = archive.exporting() ? name_of(*item) : 0;
        archive.values(name);
        if (archive.exporting()) {
            item = ListOf::next(*item);
            continue;
        }
        T* found = find_named(named, name, static_cast<const T*>(nullptr));
        const bool fits = found != nullptr && !ListOf::holds(*found);
        if (!archive.require(fits, "a list names an object that is not there, or twice")) return;
        list.push_back(*found);
    }
}

}  // namespace ulc::urtp
