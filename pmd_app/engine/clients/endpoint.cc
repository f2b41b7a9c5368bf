// SPDX-License-Identifier: BSD-3-Clause
#include "engine/clients/endpoint.h"

#include "base/check.h"
#include "engine/core.h"

namespace ulc::engine {

Endpoint::~Endpoint() { end_member(); }

void Endpoint::map(const abi::Region& region, Counters& counters, const Interrupt& interrupt,
                   bool wakes) {
    region_ = region;
    inlet_ = endpoint::Inlet(region.submission_consumer());
    outlet_ = std::make_unique<endpoint::Outlet>(region, counters);
    set_interrupt(interrupt, wakes);
}

void Endpoint::begin_member(urtp::TransportConfig& config, std::span<const urtp::Peer> roster,
                            Counters& counters) {
    User::OnNet& on_net = user_->on_net(net_->index());
    config.send_frames = &send_frames_.emplace(net_->frames().send(), on_net.send);
    config.receive_frames = &receive_frames_.emplace(net_->frames().receive(), on_net.receive);
    member_ = std::make_unique<urtp::Transport>(config, roster, net_->port().pool, counters);
    forgets_ = member_->forgets();
    const auto ranks = static_cast<std::uint16_t>(roster.size());
    sends_.begin_job(ranks);
    outlet_->begin_job(ranks, net_->port().info.mtu, member_->packs());
    membership_.begin_ranks(ranks);
}

void Endpoint::end_member() noexcept {
    member_.reset();
    send_frames_.reset();
    receive_frames_.reset();
    inlet_.retry();
}

endpoint::Offloads& Endpoint::begin_offloads(std::uint32_t schedules_max, std::uint32_t steps_max,
                                             Counters& counters) {
    offloads_ = std::make_unique<endpoint::Offloads>(schedules_max, steps_max, counters);
    outlet_->set_offloads(offloads_.get());
    return *offloads_;
}

// A mark that is missing is a wait without end.
void Endpoint::check_invariants() const {
    const std::size_t ranks = member_ == nullptr ? 0 : member_->size();
    ULC_CHECK((work_ & ~bits(endpoint::kAllWork)) == 0);
    reports_.check_invariants(ranks);
    sends_.check_invariants();
    outlet_->check_invariants();
    ULC_CHECK(life_.is_valid());
    const bool waits = !reports_.empty() || membership_.removes_groups() || life_.ends();
    ULC_CHECK(!waits || has(Work::kControl));
    if (member_ == nullptr) {
        ULC_CHECK(timer_ == kNever && membership_.groups().empty());
        return;
    }
    member_->check_invariants();
    ULC_CHECK(membership_.ranks() == ranks && outlet_->ranks() == ranks);
    ULC_CHECK(links_ == nullptr || links_->slots.size() == ranks);
    ULC_CHECK(!member_->has_tx() || has(Work::kTransmit));
    ULC_CHECK(timer_ <= member_->next_timer() || has(Work::kSettle));
    ULC_CHECK(!inlet_.waits() || !member_->is_open(static_cast<Rank>(inlet_.stream())));
}

}  // namespace ulc::engine
