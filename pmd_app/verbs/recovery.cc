// SPDX-License-Identifier: BSD-3-Clause
// Answers to changes of the device, between rounds: events, resets, groups.
#include <algorithm>
#include <cstring>

#include "verbs/queue_port.h"

namespace ulc::verbs {
namespace {

constexpr std::uint32_t kEventsMax = 16;    ///< read at one look
constexpr std::uint32_t kWaitMax = 1024;    ///< looks between two resets: ten seconds
constexpr std::uint32_t kCalmLooks = 1000;  ///< without a failure: resets are soon again
constexpr std::uint32_t kJoinLooks = 100;   ///< between two tries to join what failed

}  // namespace

void QueuePort::say(const std::string& what) const {
    if (report_ != nullptr) report_(name() + ": " + what);
}

/// Every 10 ms. True: the port carries frames.
bool QueuePort::look() {
    ++looks_;
    if (gone_) return false;
    for (std::uint32_t n = 0; n < kEventsMax && !gone_; ++n) {
        const Event event = adapter_.next_event();
        if (event == Event::kNone) break;
        on_event(event);
    }
    if (gone_) return false;
    if (failed_) {
        recover();
    } else if (reset_wait_ > 1 && looks_ - reset_at_ > kCalmLooks) {
        reset_wait_ = 1;
    }
    adapter_.memories().settle(completed_);
    if (groups_.membership() != nullptr)
        follow_groups();
    else if (!groups_.settled() && looks_ % kJoinLooks == 0)
        note_join(groups_.settle());
    return active_ && !failed_;
}

/// The connection manager reports when it likes, so its reports are read at each look.
void QueuePort::follow_groups() {
    const int error = groups_.settle();
    const MembershipCounts& memberships = groups_.membership()->counts();
    counts_.join_failures = memberships.failures;
    if (memberships.losses != counts_.groups_lost) {
        counts_.groups_lost = memberships.losses;
        if (!join_failure_reported_)
            say("lost a multicast group, as when a subnet manager starts again; it joins again");
        join_failure_reported_ = true;
    } else if (error != 0 || groups_.settled()) {
        note_join(error);
    }
    if (!groups_.take_moved()) return;
    failed_ = true;
    failure_ = "a multicast group has another place";
}

/// Says once that joining failed, and once that it is good again.
void QueuePort::note_join(int error) {
    if (error != 0 && !join_failure_reported_) {
        say(std::string("cannot join a multicast group: ") + std::strerror(error) +  // NOLINT
            "; it tries again" + advice_for_join(error, adapter_.is_infiniband()));
    } else if (error == 0 && join_failure_reported_) {
        say("has joined all of its multicast groups");
    }
    join_failure_reported_ = error != 0;
}

void QueuePort::on_event(Event event) {
    switch (event) {
        case Event::kNone:
        case Event::kOther:
            return;
        case Event::kPortChanged: {
            const bool active = adapter_.is_active();
            if (active != active_) say(active ? "its port is up" : "its port is down");
            active_ = active;
            return;
        }
        case Event::kGidChanged:
            return on_gids_changed();
        case Event::kQueueFailed:
            failed_ = true;
            failure_ = "its queue pair failed";
            return;
        case Event::kGone:
            gone_ = true;
            say("the device is gone, or its completion queue overran; start the engine again when "
                "'ibv_devices' shows it");
            return;
    }
}

/// Follows the node's GID. If it is gone and another one is in its place, as when the network
/// interface gets another MAC address, this node has another address: its jobs end, and the engine
/// takes that address.
void QueuePort::on_gids_changed() {
    const std::uint16_t before = adapter_.gid_index();
    const bool found = adapter_.find_own_gid();
    const bool replaced = !found && adapter_.find_successor();
    interface_.keeps_own = !replaced;
    interface_.mac = replaced ? mac_of(adapter_.successor()) : interface_.own;
    if (replaced && active_)
        say("its GID is gone, and another one is in its place: the network interface got another "
            "address, and this node's follows from it");
    if (!found && !replaced && active_)
        say("its GID is gone: the network interface lost its address; give it the same again, or "
            "start the engine again");
    active_ = found && adapter_.is_active();
    if (!found || adapter_.gid_index() == before) return;
    failed_ = true;  // every address handle names the old place
    failure_ = "its GID has moved to index " + std::to_string(adapter_.gid_index());
}

/// Takes the address of the GID that is in the place of the node's.
Mac QueuePort::take_address() {
    if (interface_.keeps_own) return port_.info.mac;
    adapter_.take_successor();
    interface_.own = interface_.mac;
    interface_.keeps_own = true;
    active_ = adapter_.is_active();
    failed_ = true;
    failure_ = "its GID has changed";
    return port_.info.mac = interface_.own;
}

/// Resets the queue pair, at most once a look, and more seldom while that does not help.
void QueuePort::recover() {
    if (static_cast<std::int32_t>(looks_ - reset_at_) < 0) return;
    reset_at_ = looks_ + reset_wait_;
    reset_wait_ = std::min(2 * reset_wait_, kWaitMax);
    const int error = adapter_.bring_up();
    if (error != 0) {
        say(failure_ + "; its queue pair cannot be reset: " + std::strerror(error));  // NOLINT
        return;
    }
    // Nothing is with the device any more; the completion queues hold only old reports.
    retire(posted_);
    take_back_receives();
    peers_.for_each([&](Peer& peer) {
        if (peer.handle != nullptr) verbs_.destroy_ah(peer.handle);
        peer.handle = nullptr;
        peer.retry_at = looks_;
    });
    groups_.drop_handles();
    failed_ = false;
    ++counts_.resets;
    say(failure_ + "; the queue pair was reset");
    refill();
}

void QueuePort::take_back_receives() {
    for (ibv_cq* cq : {adapter_.send_cq(), adapter_.receive_cq()}) {
        for (std::size_t polls = slots_.size() + sent_.size(); polls > 0; --polls)
            if (verbs_.poll_cq(cq, kPoll, completions_.data()) <= 0) break;
    }
    ++generation_;
    free_slots_.clear();
    for (std::uint32_t n = static_cast<std::uint32_t>(slots_.size()); n-- > 0;) {
        if (slots_[n] != nullptr) port::FramePool::put(slots_[n]);
        slots_[n] = nullptr;
        free_slots_.push_back(n);
    }
}

bool QueuePort::set_multicasts(std::span<const Mac> addresses) {
    std::bitset<kGroups> wanted;
    for (const Mac& address : addresses)
        wanted[group_of(address)] = true;
    groups_.want(wanted);
    const int error = groups_.settle();
    if (error != 0) note_join(error);
    return error == 0;
}

}  // namespace ulc::verbs
