// SPDX-License-Identifier: BSD-3-Clause
// State of what belongs to a net, and of the accounts of users.
#include <algorithm>

#include "base/state/containers.h"
#include "engine/core.h"

namespace ulc::engine {

// ------------------------------------------------------------------------------ accounts

void Accounts::Pace::fields(state::Archive& archive) {
    ULC_STATE(archive, Accounts::Pace, 1, (uid, due), ());
}

// Endpoints, octets and groups are counted again as those that are charged are read.
void User::fields(state::Archive& archive) {
    ULC_STATE(archive, User, 1, (turn), (uid, endpoints, octets, active, on_nets));
}

void Accounts::fields(state::Archive& archive) {
    ULC_STATE(archive, Accounts, 1, (paces_), (limits_, endpoints_, octets_, groups_, users_));
    const std::size_t users =
        archive.count(users_.size(), endpoints_.all, "there are more users than endpoints");
    for (std::size_t n = 0; n < users && archive.ok(); ++n) {
        UserId uid = archive.exporting() ? users_[n]->uid : 0;
        archive.values(uid);
        if (archive.importing()) {
            archive.require(find(uid) == nullptr, "a user has two accounts");
            users_.push_back(std::make_unique<User>(uid, groups_.size()));
        }
        archive.values(*users_[n]);
    }
}

bool Accounts::charge(User& user, std::uint64_t octets) noexcept {
    if (endpoints_.used == endpoints_.all || octets > octets_.all - octets_.used) return false;
    ++endpoints_.used;
    ++user.endpoints;
    octets_.used += octets;
    user.octets += octets;
    return true;
}

bool Accounts::charge_group(User& user, std::uint32_t net) noexcept {
    if (groups_[net].used == groups_[net].all) return false;
    ++groups_[net].used;
    ++user.on_net(net).groups;
    return true;
}

// ------------------------------------------------------------------------------ a net

void LocalGroup::fields(state::Archive& archive) {
    ULC_STATE(archive, LocalGroup, 1,
              (handle, world, any_remote, used, shares, own, address, since, frames, nodes),
              (payer, members));
}

void MulticastFilter::Listened::fields(state::Archive& archive) {
    ULC_STATE(archive, MulticastFilter::Listened, 1, (address, groups), ());
}

void MulticastFilter::fields(state::Archive& archive) {
    ULC_STATE(archive, MulticastFilter, 1, (listened_, told_, changed_), (places_));
}

void Transmitter::fields(state::Archive& archive) {
    ULC_STATE(archive, Transmitter, 1,
              (in_flight_octets_, in_flight_frames_, sent_next_, by_clock_, now_, reported_at_,
               wire_free_at_, reported_, sent_),
              (port_, departures_, counters_, budget_octets_, frames_max_, frame_octets_max_,
               flush_mask_, burst_count_, rate_known_, shared_time_, stall_after_, burst_));
    archive.values(departures_.next, departures_.left, departures_.at);
    const std::size_t kept = archive.count(burst_count_, kBurst, "a burst is too long");
    for (std::size_t n = 0; n < kept; ++n) {
        archive.frame(burst_[n], port_.pool);
        if (!archive.require(burst_[n] != nullptr, "a frame that waits for the port is missing"))
            return;
        burst_count_ = static_cast<std::uint32_t>(n + 1);
    }
}

void NetFrames::fields(state::Archive& archive) {
    ULC_STATE(archive, NetFrames, 1, (send_all_, receive_all_), (send_, receive_, to_lend_));
    if (archive.exporting()) return;
    send_.set_total(send_all_);
    receive_.set_total(receive_all_);
}

void InterfaceWatch::fields(state::Archive& archive) {
    ULC_STATE(archive, InterfaceWatch, 1, (due_, link_is_up_), (mtu_, refusals_, mac_));
}

void InterfaceWatch::resume(const InterfaceState* interface, std::uint64_t refused) noexcept {
    refusals_.counted = refused;
    if (interface == nullptr) return;
    mtu_ = interface->mtu;
    mac_ = interface->mac;
}

void Net::fields(state::Archive& archive) {
    ULC_STATE(archive, Net, 4,
              (transmitter_, arrivals_, filter_, jobs_, frames_, watch_, heard_else_),
              (port_, bond_, departures_, groups_, index_, ether_type_, burst_, landing_, counts_,
               verdicts_));
    counts_.fields(archive, port_);
    if (archive.importing())
        watch_.resume(port_.interface == nullptr ? nullptr : port_.interface(port_.context),
                      counts_.unsendable());
    bool wrapped = bond_ != nullptr;
    archive.values(wrapped);
    if (!wrapped) return;
    if (archive.importing()) {
        if (!archive.require(port_.set_addresses == nullptr, "a port of several links is wrapped"))
            return;
        wrap_port();
    }
    archive.values(*bond_);
    port_.info = bond_->table().info;
}

}  // namespace ulc::engine
