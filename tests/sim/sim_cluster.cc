#include "sim_cluster.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::sim {
namespace {

constexpr Nanos kPollGap = 500;       ///< a busy engine looks again after this
constexpr Nanos kPollGapSlow = 4000;  ///< the same on Fast Ethernet, where a small frame takes 7 µs
constexpr unsigned kRoundsMax = 100'000;

}  // namespace

SimCluster::SimCluster(const ClusterConfig& config) : config_(config), net_(config.net) {
    for (std::uint16_t node = 0; node < config.net.ports; ++node) {
        engine::EngineConfig engine = config.engine;
        engine.seed = config.seed * 1000 + node;
        engine.wake_context = &wakes_;
        engine.wake = [](void* context, engine::EndpointId, std::atomic<std::uint32_t>*) {
            ++*static_cast<std::uint64_t*>(context);
        };
        const Port port = net_.port(node);
        engines_.push_back(
            std::make_unique<engine::Engine>(engine, std::span<const Port>(&port, 1)));
    }
}

SimCluster::~SimCluster() {
    engines_.clear();
    net_.drop_all();
}

std::size_t SimCluster::add_client(std::uint16_t node) {
    Client client;
    client.node = node;
    client.memory = std::make_unique<RegionMemory>(config_.sizes);
    const auto id = engines_[node]->attach(client.memory->base(), client.memory->layout(), 0);
    ULC_CHECK(id.ok());
    client.endpoint = id.value();
    client.client = std::make_unique<RingClient>(client.memory->base(), client.memory->layout());
    clients_.push_back(std::move(client));
    return clients_.size() - 1;
}

bool SimCluster::form(std::size_t ranks, const std::function<std::uint16_t(std::size_t)>& place,
                      Nanos limit) {
    const std::size_t first = clients_.size();
    for (std::size_t n = 0; n < ranks; ++n)
        add_client(place(n));
    for (std::size_t n = 0; n < ranks; ++n)
        if (!client(first + n).join("job" + std::to_string(first), static_cast<Rank>(n),
                                    static_cast<std::uint16_t>(ranks)))
            return false;
    const auto poll = [&] {
        for (std::size_t n = 0; n < ranks; ++n)
            client(first + n).poll();
    };
    return run(
        limit,
        [&] {
            return std::all_of(clients_.begin() + static_cast<std::ptrdiff_t>(first),
                               clients_.end(), [](const Client& c) { return c.client->formed(); });
        },
        poll);
}

void SimCluster::kill_client(std::size_t index) {
    Client& client = clients_[index];
    if (client.gone) return;
    client.gone = true;
    engines_[client.node]->detach(client.endpoint, engine::DetachReason::kDied, now());
    client.client.reset();
    client.memory.reset();  // a later touch by the engine is a use after free
}

void SimCluster::close_client(std::size_t index) {
    Client& client = clients_[index];
    if (client.gone) return;
    client.gone = true;
    engines_[client.node]->detach(client.endpoint, engine::DetachReason::kClosed, now());
}

void SimCluster::kill_node(std::uint16_t node) {
    net_.unplug(node);
    engines_[node].reset();
    for (Client& client : clients_) {
        if (client.node == node) client.gone = true;
    }
}

void SimCluster::step(const std::function<void()>& tick) {
    if (tick) tick();
    Nanos deadline = kNever;
    for (auto& engine : engines_) {
        if (engine == nullptr) continue;
        unsigned rounds = 0;
        while (engine->poll(net_.now())) {
            ++rounds;
            ULC_CHECK(rounds < kRoundsMax);
        }
        deadline = std::min(deadline, engine->next_deadline());
    }
    const Nanos soon =
        net_.now() + (config_.net.bits_per_second <= 100'000'000 ? kPollGapSlow : kPollGap);
    Nanos next = std::min(net_.next_event(), std::max(deadline, soon));
    if (next == kNever) next = net_.now() + kMillisecond;
    net_.advance(std::max(next, net_.now() + 1));
}

bool SimCluster::run(Nanos limit, const std::function<bool()>& done,
                     const std::function<void()>& tick) {
    const Nanos end = now() + limit;
    while (!done()) {
        if (now() >= end) return false;
        step(tick);
    }
    return true;
}

std::uint32_t SimCluster::shut_down() {
    for (std::size_t n = 0; n < clients_.size(); ++n)
        close_client(n);
    const auto drained = [&] {
        return std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) {
            return engine == nullptr || engine->drained();
        });
    };
    (void)run(30 * kSecond, drained);
    engines_.clear();
    net_.drop_all();
    std::uint32_t out = 0;
    for (std::uint16_t node = 0; node < config_.net.ports; ++node)
        out += net_.segments_out(node);
    return out;
}

std::uint64_t SimCluster::count(Counter counter) const {
    std::uint64_t sum = 0;
    for (const auto& engine : engines_)
        if (engine != nullptr) sum += engine->counters().get(counter);
    return sum;
}

}  // namespace ulc::sim
