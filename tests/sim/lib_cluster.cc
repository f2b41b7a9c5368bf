#include "lib_cluster.h"

#include "base/check.h"

namespace ulc::sim {

LibCluster::LibCluster(const ClusterConfig& config) : cluster_(config) {
    for (std::uint16_t node = 0; node < config.net.ports; ++node) {
        const std::size_t index = cluster_.add_client(node);
        // The ring client of that index is not used: the region belongs to the endpoint.
        endpoints_.push_back(client::make_endpoint(cluster_.client(index).region(), {}));
        ULC_CHECK(endpoints_.back() != nullptr);
        events_.push_back(0);
    }
}

LibCluster::~LibCluster() { endpoints_.clear(); }

bool LibCluster::form(Nanos limit) {
    for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
        if (ulc_join(endpoint(rank), "lib", rank, ranks(), nullptr) != ULC_OK) return false;
    }
    const auto formed = [&] {
        for (const auto& ep : endpoints_) {
            if (ulc_job_state(ep.get()) != ULC_OK) return false;
        }
        return true;
    };
    return run(limit, formed, [](std::uint16_t) {});
}

bool LibCluster::run(Nanos limit, const std::function<bool()>& done,
                     const std::function<void(std::uint16_t)>& application) {
    return cluster_.run(limit, done, [&] {
        for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
            ulc_endpoint* ep = endpoint(rank);
            if (ep == nullptr) continue;
            events_[rank] = ulc_poll(ep);
            application(rank);
            ep->announce_awaited();
        }
    });
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
