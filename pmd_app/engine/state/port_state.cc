// SPDX-License-Identifier: BSD-3-Clause
// State that the engine keeps of a port: its counts, and the BondPort around one of one link
// (port/bond_port.h). A bond of several links belongs to the holder, and stays.
#include <algorithm>

#include "base/state/containers.h"
#include "port/bond_port.h"
#include "port/port_counts.h"
#include "wire/state/ids.h"

namespace ulc::port {

void BondPort::Peer::fields(state::Archive& archive) {
    ULC_STATE(archive, BondPort::Peer, 1, (addresses), ());
    archive.require(addresses.size() > 1, "a node of several links has one address");
}

void BondPort::Link::fields(state::Archive& archive) {
    ULC_STATE(archive, BondPort::Link, 1, (up, given, left, next, last_source, last_node),
              (carrier, port, octet_time, octets, lengths, waiting, waits, waiting_octets));
    if (!archive.require(next - left <= kRing, "a link has too many frames")) {
        left = next;
        return;
    }
    octets = 0;
    for (std::uint32_t n = left; n != next; ++n) {
        archive.values(lengths[n % kRing]);
        octets += lengths[n % kRing];
    }
    const std::size_t kept = archive.count(waits, kWaiting, "too many frames wait for a link");
    waiting_octets = 0;
    for (std::size_t n = 0; n < kept; ++n) {
        archive.frame(waiting[n], port.pool);
        if (!archive.require(waiting[n] != nullptr, "a frame that waits for a link is missing"))
            return;
        waits = static_cast<std::uint32_t>(n + 1);
        waiting_octets += waiting[n]->length;
    }
}

void BondPort::fields(state::Archive& archive) {
    ULC_STATE(archive, BondPort, 1, (turn_, multicasts_, told_multicasts_, peers_),
              (links_, count_, config_, info_, interface_, own_, listens_, up_, watch_, asks_,
               looks_, busy_, replies_, places_, askers_, asker_places_));
    archive.same(count_, "the number of links");
    for (std::size_t n = 0; n < count_; ++n)
        archive.values(links_[n]);
    archive.bounded(listens_, count_ - 1, "a link that does not exist takes frames for groups");
    if (archive.exporting()) return;
    if (!archive.require(peers_.size() < kNone, "too many nodes have several links")) return;
    up_ = static_cast<std::size_t>(
        std::ranges::count_if(links_.begin(), links_.begin() + count_, &Link::up));
    if (!archive.require(rebuild(), "an address is of two nodes")) return;
    fit_speeds();
}

void PortCounts::fields(state::Archive& archive, const Port& port) {
    ULC_STATE(archive, PortCounts, 1, (due_, missed_), (drops_, costs_, silences_, transit_));
    archive.values(costs_.calls, costs_.refusals, costs_.copied_bytes);
    if (!archive.importing()) return;
    if (port.silences != nullptr) silences_ = port.silences(port.context);
    if (port.transit != nullptr) transit_ = port.transit(port.context);
    if (port.drops != nullptr) drops_ = port.drops(port.context);
}

}  // namespace ulc::port
