// SPDX-License-Identifier: BSD-3-Clause
// Finds links by the endpoints that they join (jobs/links.h): the work for a frame does not grow
// with the number of links.
#include <algorithm>
#include <array>
#include <cstring>

#include "jobs/links.h"

namespace ulc::engine {

Links::Ref Links::find(const Ends& ends, const Mac& mac, Handle peer) const noexcept {
    for (const Ref& ref : by_link_.find(key_of(ends.handle, mac, peer))) {
        const LinkEnd& end = ends.slots[ref.slot];
        if (ref.endpoint == ends.handle && end.mac == mac && end.peer == peer) return ref;
    }
    return {0, kNoRank};
}

std::uint64_t Links::key_of(Handle endpoint, const Mac& mac, Handle peer) const noexcept {
    std::array<std::uint8_t, sizeof endpoint + sizeof mac + sizeof peer> name{};
    std::memcpy(name.data(), &endpoint, sizeof endpoint);
    std::memcpy(name.data() + sizeof endpoint, &peer, sizeof peer);
    std::memcpy(name.data() + sizeof endpoint + sizeof peer, &mac, sizeof mac);
    return hash_.of(name.data(), name.size());
}

void Links::add_to_index(const Ref& ref) {
    const LinkEnd& end = *end_of(ref);
    by_link_.add(key_of(ref.endpoint, end.mac, end.peer), ref);
    by_peer_.add(key_of(0, end.mac, end.peer), ref);
}

bool Links::has_peer(const Mac& mac, Handle peer) const noexcept {
    return std::ranges::any_of(by_peer_.find(key_of(0, mac, peer)), [&](const Ref& ref) {
        const LinkEnd& end = *end_of(ref);
        return end.mac == mac && end.peer == peer;
    });
}

}  // namespace ulc::engine
