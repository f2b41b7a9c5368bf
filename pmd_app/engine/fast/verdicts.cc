// SPDX-License-Identifier: BSD-3-Clause
// The conditions that kept verdicts stand for, in full. Debug builds and the simulator check them
// after each quiet round.
#include "engine/fast/verdicts.h"

#include "base/check.h"
#include "engine/core.h"
#include "urtp/fast.h"

namespace ulc::engine {
namespace {

/// Returns whether the endpoint is the only member of the group on this node.
bool is_alone_in(const LocalGroup* group, const Endpoint& endpoint) noexcept {
    return group != nullptr && group->members.size() == 1 && group->members[0] == &endpoint;
}

struct Check {
    const Core& core;
    Net& net;

    void operator()(const FrameVerdict& next) const {
        const Endpoint& endpoint = *next.endpoint;
        ULC_CHECK(endpoint.is_on(net) && endpoint.life().is_open());
        ULC_CHECK(next.sends_wait == !endpoint.sends().empty());
        endpoint.member()->check_prediction(next.of);
        const urtp::RxStream& rx = *next.of.rx;
        const Rank rank = rx.session->rank;
        ULC_CHECK(endpoint.membership().is_here(rank));
        ULC_CHECK(next.is_part ? endpoint.outlet()->takes_parts(rank, rx.id)
                               : endpoint.outlet()->may_claim(rank));
        ULC_CHECK(next.heard == net.place_of_heard(endpoint.membership().node_of(rank)));
        ULC_CHECK((next.frames == nullptr) == !is_group(rx.id));
        if (next.frames == nullptr) return;
        const LocalGroup* group = net.groups().find(rx.id);
        ULC_CHECK(is_alone_in(group, endpoint) && next.frames == &group->frames);
    }

    void operator()(const SendVerdict& next) const {
        const Endpoint* endpoint = core.find(next.endpoint);
        ULC_CHECK(endpoint != nullptr && endpoint->is_on(net));
        ULC_CHECK(endpoint->life().is_open() && endpoint->sends().passes_short());
        const urtp::Transport& member = *endpoint->member();
        if (is_group(next.stream)) {
            ULC_CHECK(next.to == nullptr && next.of.session == nullptr);
            ULC_CHECK(is_alone_in(net.groups().find(next.stream), *endpoint));
        } else {
            ULC_CHECK(member.find_session(next.stream) == next.of.session);
            ULC_CHECK(next.of.session->local == (next.to != nullptr));
        }
        if (next.to == nullptr) {
            member.check_prediction(next.of);
            return;
        }
        const Endpoint& to = *next.to;
        ULC_CHECK(!next.of.session->gone && next.of.tx == next.of.session->tx.get());
        ULC_CHECK(next.of.theirs != nullptr &&
                  next.of.theirs == to.member()->takes_passed(member.rank()));
        ULC_CHECK(to.member()->rank() == next.stream);
        ULC_CHECK(core.find(member.peer(static_cast<Rank>(next.stream)).handle) == &to);
        ULC_CHECK(to.is_on(net) && to.membership().job() == endpoint->membership().job() &&
                  to.life().is_open());
        ULC_CHECK(to.outlet()->may_claim(member.rank()));
    }
};

}  // namespace

void check_verdicts(const Core& core) {
    for (const auto& net : core.nets()) {
        const Check check{core, *net};
        net->verdicts().each([&](const auto& verdict) {
            if (core.holds(verdict)) check(verdict);
        });
    }
}

}  // namespace ulc::engine
