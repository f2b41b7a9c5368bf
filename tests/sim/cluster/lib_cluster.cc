// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/cluster/lib_cluster.h"

#include "base/check.h"

namespace ulc::sim {

LibCluster::LibCluster(const ClusterConfig& config, std::uint16_t ranks,
                       const std::function<client::Limits(std::uint16_t)>& limits)
    : cluster_(config) {
    if (ranks == 0) ranks = config.net.ports;
    placers_.resize(ranks);
    links_.reserve(ranks);
    matched_.resize(config.net.ports);
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        const auto node = static_cast<std::uint16_t>(rank % config.net.ports);
        const std::size_t index = cluster_.add_client(node);
        // The ring client of that index is not used: the region belongs to the endpoint.
        client::Hooks hooks;
        links_.push_back({&cluster_, node, index});
        hooks.context = &links_.back();
        hooks.now = [](void* context) { return static_cast<Link*>(context)->cluster->now(); };
        hooks.forget_place = [](void* context, std::uint16_t source, const abi::Place& place) {
            const Link& link = *static_cast<Link*>(context);
            const bool arriving = link.cluster->engine(link.node).forget_place(
                link.cluster->endpoint(link.index), source, place);
            return static_cast<int>(arriving ? Err::kOk : Err::kAgain);
        };
        endpoints_.push_back(client::make_endpoint(cluster_.client(index).region(), hooks,
                                                   limits ? limits(rank) : client::Limits{}));
        ULC_CHECK(endpoints_.back() != nullptr);
        placers_[rank] = endpoints_.back()->placer();
        if (cluster_.client(index).region().reaches_process())
            cluster_.engine(node).set_placer(cluster_.endpoint(index), &placers_[rank]);
        programs_.push_back(std::make_unique<Rank>(*this, rank));
        events_.push_back(0);
    }
}

LibCluster::~LibCluster() { endpoints_.clear(); }

bool LibCluster::form(Nanos limit) {
    for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
        if (ulc_join(endpoint(rank), "lib", rank, ranks(), nullptr) != ULC_OK) return false;
    }
    std::uint16_t formed = 0;
    const auto all_formed = [&] {
        while (formed < ranks() && ulc_job_state(endpoint(formed)) == ULC_OK)
            ++formed;
        return formed == ranks();
    };
    return run(limit, all_formed, [](std::uint16_t, Nanos) { return kNever; });
}

Nanos LibCluster::act(std::uint16_t rank, Nanos now) {
    ulc_endpoint* ep = endpoint(rank);
    events_[rank] = ulc_poll(ep);
    charge_matches(cluster_.node_of(rank));
    const Nanos next = application_(rank, now);
    ep->messages().source_notes().announce_awaited();
    if (events_[rank] > 0) ep->check_invariants();
    return next;
}

// libulc matches each message that an engine delivers to it once.
void LibCluster::charge_matches(std::uint16_t node) {
    const std::uint64_t received = cluster_.engine(node).counters().get(Counter::messages_received);
    if (received > matched_[node])  // less: another engine
        cluster_.charge(node,
                        static_cast<Nanos>(received - matched_[node]) * cluster_.costs(node).match);
    matched_[node] = received;
}

bool LibCluster::run(Nanos limit, const std::function<bool()>& done, Application application) {
    application_ = std::move(application);
    for (std::uint16_t rank = 0; rank < ranks(); ++rank)
        if (endpoint(rank) != nullptr) cluster_.set_program(rank, programs_[rank].get());
    const bool in_time = cluster_.run(limit, done);
    for (std::uint16_t rank = 0; rank < ranks(); ++rank)
        if (endpoint(rank) != nullptr) cluster_.set_program(rank, nullptr);
    return in_time;
}

void LibCluster::kill(std::uint16_t rank) {
    endpoints_[rank].reset();
    cluster_.kill_client(rank);
}

std::uint32_t LibCluster::shut_down() {
    endpoints_.clear();
    return cluster_.shut_down();
}

}  // namespace ulc::sim
