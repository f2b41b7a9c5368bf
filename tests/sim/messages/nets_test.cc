// SPDX-License-Identifier: BSD-3-Clause
// One engine on two nets: both work, nothing crosses, and a net that goes down affects only itself.
//
//   net 0:  left ── middle                    middle is one engine with a port on each
//   net 1:          middle ── right
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"
#include "tests/sim/cluster/ring_client.h"
#include "tests/sim/cluster/sim_net.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kMiddle = 0;  ///< its port on either net
constexpr std::uint16_t kOther = 1;

std::vector<std::byte> octets_of(std::string_view text) {
    std::vector<std::byte> out(text.size());
    std::memcpy(out.data(), text.data(), text.size());
    return out;
}

NetConfig net_config(std::uint64_t seed) {
    NetConfig config;
    config.seed = seed;
    return config;
}

constexpr Nanos kStep = kMicrosecond;

/// Three engines on two nets, clients on their rings.
class TwoNets {
public:
    enum Node : std::uint8_t { kLeft, kBoth, kRight };

    TwoNets() : nets_{SimNet(net_config(1)), SimNet(net_config(2))} {
        add_engine({port(0, kOther)});
        add_engine({port(0, kMiddle), port(1, kMiddle)});
        add_engine({port(1, kOther)});
    }
    ~TwoNets() {
        engines_.clear();
        for (SimNet& net : nets_)
            net.drop_all();
    }
    TwoNets(const TwoNets&) = delete;
    TwoNets& operator=(const TwoNets&) = delete;

    std::size_t add_client(Node node, std::uint32_t net) {
        const abi::RegionSizes sizes{64, 64, 256U << 10, 256U << 10};
        Client client;
        client.node = node;
        client.memory = std::make_unique<RegionMemory>(sizes);
        const auto id = engines_[node]->attach(client.memory->base(), client.memory->layout(), net);
        ULC_CHECK(id.ok());
        client.endpoint = id.value();
        client.rings = std::make_unique<RingClient>(client.memory->base(), client.memory->layout());
        clients_.push_back(std::move(client));
        return clients_.size() - 1;
    }
    /// Starts a job of two.
    void join(std::size_t zero, std::size_t one, std::string_view name = "job") {
        ASSERT_TRUE(client(zero).join(name, 0, 2));
        ASSERT_TRUE(client(one).join(name, 1, 2));
    }
    bool run(Nanos limit, const std::function<bool()>& done) {
        const Nanos end = now() + limit;
        while (!done()) {
            if (now() >= end) return false;
            for (Client& client : clients_)
                client.rings->poll();
            for (auto& engine : engines_)
                poll(*engine);
            advance(end);
        }
        return true;
    }
    /// Advances to the next event of a net or an engine, at most to `end`; one step if an engine
    /// waits for its port.
    void advance(Nanos end) {
        Nanos next = std::min({nets_[0].next_event(), nets_[1].next_event(), end});
        for (const auto& engine : engines_)
            next = std::min(next, std::max(engine->next_deadline(), now() + kStep));
        next = std::max(next, now());
        for (SimNet& net : nets_)
            net.advance(next);
    }
    void poll(engine::Engine& engine) {
        for (SimNet& net : nets_) {
            for (const std::uint16_t port : {kMiddle, kOther})
                net.begin_turn(port);
        }
        while (engine.poll(now())) {
        }
    }
    bool formed(std::size_t a, std::size_t b) {
        return run(5 * kSecond, [&] { return client(a).formed() && client(b).formed(); });
    }
    /// Sends one message each way; returns true if both came, once, as sent.
    bool talk(std::size_t a, std::size_t b, std::string_view text) {
        client(a).messages.clear();
        client(b).messages.clear();
        if (!client(a).send(client(a).rank == 0 ? 1U : 0U, 1, octets_of(text))) return false;
        if (!client(b).send(client(b).world, 1, octets_of(text))) return false;
        const bool came = run(
            kSecond, [&] { return !client(a).messages.empty() && !client(b).messages.empty(); });
        return came && client(a).messages[0].payload == octets_of(text) &&
               client(b).messages[0].payload == octets_of(text);
    }
    /// Detaches all. Returns the number of segments that are not back in their pools.
    std::uint32_t shut_down() {
        for (const Client& client : clients_)
            engines_[client.node]->detach(client.endpoint, engine::DetachReason::kClosed, now());
        EXPECT_TRUE(run(60 * kSecond, [&] {
            return std::ranges::all_of(engines_, [](const auto& e) { return e->drained(); });
        }));
        engines_.clear();
        std::uint32_t out = 0;
        for (SimNet& net : nets_) {
            net.drop_all();
            out += net.segments_out(kMiddle) + net.segments_out(kOther);
        }
        return out;
    }

    [[nodiscard]] RingClient& client(std::size_t index) { return *clients_[index].rings; }
    [[nodiscard]] engine::Engine& engine(Node node) { return *engines_[node]; }
    [[nodiscard]] SimNet& net(std::size_t index) { return nets_[index]; }
    [[nodiscard]] Nanos now() const { return nets_[0].now(); }
    void link(std::size_t net, bool up) { link_up_[net] = up; }

private:
    struct Client {
        std::unique_ptr<RegionMemory> memory;
        std::unique_ptr<RingClient> rings;
        engine::EndpointId endpoint = 0;
        Node node = kLeft;
    };

    /// Returns a port whose link, and whose acceptance of frames, follows link_up_: a cable that
    /// can be unplugged.
    Port port(std::size_t net, std::uint16_t index) {
        Port port = nets_[net].port(index);
        if (index != kMiddle) return port;
        Cable& cable = cables_[net];
        cable = {port, &link_up_[net]};
        port.context = &cable;
        port.rx = [](void* context, Segment** out, std::uint16_t n) {
            auto* self = static_cast<Cable*>(context);
            return self->inner.rx(self->inner.context, out, n);
        };
        port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
            auto* self = static_cast<Cable*>(context);
            return *self->up ? self->inner.tx(self->inner.context, frames, n) : std::uint16_t{0};
        };
        port.tx_pending = [](void* context) {
            auto* self = static_cast<Cable*>(context);
            return self->inner.tx_pending(self->inner.context);
        };
        if (port.tx_failed != nullptr)
            port.tx_failed = [](void* context) {
                const Port& behind = static_cast<Cable*>(context)->inner;
                return behind.tx_failed(behind.context);
            };
        port.set_multicasts = [](void* context, std::span<const Mac> addresses) {
            const Port& behind = static_cast<Cable*>(context)->inner;
            return behind.set_multicasts(behind.context, addresses);
        };
        port.link_up = [](void* context) { return *static_cast<Cable*>(context)->up; };
        return port;
    }
    void add_engine(const std::vector<Port>& ports) {
        engine::EngineConfig config;
        config.seed = engines_.size() + 1;
        config.linger_max = kSecond;
        engines_.push_back(std::make_unique<engine::Engine>(config, ports));
    }

    struct Cable {
        Port inner;
        const bool* up = nullptr;
    };
    std::array<SimNet, 2> nets_;
    std::array<bool, 2> link_up_{true, true};
    std::array<Cable, 2> cables_;
    std::vector<std::unique_ptr<engine::Engine>> engines_;
    std::vector<Client> clients_;
};

TEST(Nets, two_jobs_of_one_name_form_on_two_nets_and_talk) {
    TwoNets nets;
    const auto left = nets.add_client(TwoNets::kLeft, 0);
    const auto middle_0 = nets.add_client(TwoNets::kBoth, 0);
    const auto middle_1 = nets.add_client(TwoNets::kBoth, 1);
    const auto right = nets.add_client(TwoNets::kRight, 0);
    nets.join(left, middle_0);
    nets.join(middle_1, right);
    ASSERT_TRUE(nets.formed(left, middle_0));
    ASSERT_TRUE(nets.formed(middle_1, right));
    EXPECT_TRUE(nets.talk(left, middle_0, "on net 0"));
    EXPECT_TRUE(nets.talk(middle_1, right, "on net 1"));
    EXPECT_EQ(nets.client(middle_0).messages.size(), 1U);
    EXPECT_EQ(nets.client(left).messages.size(), 1U);
    EXPECT_EQ(nets.shut_down(), 0U);
}

TEST(Nets, two_endpoints_of_one_engine_on_two_nets_do_not_meet) {
    TwoNets nets;
    const auto zero = nets.add_client(TwoNets::kBoth, 0);
    const auto one = nets.add_client(TwoNets::kBoth, 1);
    nets.join(zero, one);
    EXPECT_FALSE(nets.run(kSecond, [&] {
        return nets.client(zero).formed() || nets.client(one).formed();
    })) << "nothing joins the wires, so each waits for a rank that is not there";
    EXPECT_EQ(nets.engine(TwoNets::kBoth).counters().get(Counter::loopback_frames), 0U);
    EXPECT_EQ(nets.engine(TwoNets::kBoth).counters().get(Counter::passed_messages), 0U);
    EXPECT_EQ(nets.engine(TwoNets::kLeft).counters().get(Counter::tx_frames), 0U)
        << "left has no part in this; net 1 was never heard there";
}

TEST(Nets, a_frame_from_one_net_does_not_reach_an_endpoint_of_another) {
    TwoNets nets;
    const auto left = nets.add_client(TwoNets::kLeft, 0);
    const auto middle_0 = nets.add_client(TwoNets::kBoth, 0);
    nets.join(left, middle_0);
    ASSERT_TRUE(nets.formed(left, middle_0));
    // Copies each frame that left sends to the middle on net 0 to the middle's other wire.
    auto& counters = nets.engine(TwoNets::kBoth).counters();
    const std::uint64_t unknown = counters.get(Counter::drop_unknown_handle);
    Port tap = nets.net(0).port(kMiddle);
    ASSERT_TRUE(nets.client(left).send(1, 1, octets_of("for net 0 only")));
    nets.poll(nets.engine(TwoNets::kLeft));
    nets.net(0).advance(nets.now() + 50 * kMicrosecond);
    nets.net(1).advance(nets.now());
    nets.net(0).begin_turn(kMiddle);
    Segment* frames[8];
    const std::uint16_t count = tap.rx(tap.context, frames, 8);
    ASSERT_GT(count, 0);
    for (std::uint16_t n = 0; n < count; ++n) {
        nets.net(1).inject(kMiddle, frames[n]->frame, frames[n]->length);
        tap.pool.drop(frames[n]);  // lost on net 0
    }
    nets.poll(nets.engine(TwoNets::kBoth));
    nets.client(middle_0).poll();
    EXPECT_EQ(counters.get(Counter::drop_unknown_handle), unknown + count);
    EXPECT_TRUE(nets.client(middle_0).messages.empty());
    EXPECT_TRUE(nets.run(kSecond, [&] { return nets.client(middle_0).messages.size() == 1; }))
        << "repaired on its own net";
    EXPECT_EQ(nets.shut_down(), 0U);
}

TEST(Nets, a_link_that_is_down_hurts_only_its_net) {
    TwoNets nets;
    const auto left = nets.add_client(TwoNets::kLeft, 0);
    const auto middle_0 = nets.add_client(TwoNets::kBoth, 0);
    const auto middle_1 = nets.add_client(TwoNets::kBoth, 1);
    const auto right = nets.add_client(TwoNets::kRight, 0);
    nets.join(left, middle_0);
    nets.join(middle_1, right);
    ASSERT_TRUE(nets.formed(left, middle_0));
    ASSERT_TRUE(nets.formed(middle_1, right));
    nets.link(0, false);
    ASSERT_TRUE(nets.client(middle_0).send(0, 1, octets_of("into the void")));
    for (int n = 0; n < 200; ++n)
        ASSERT_TRUE(nets.talk(middle_1, right, "message " + std::to_string(n)));
    EXPECT_FALSE(nets.run(30 * kMillisecond, [] { return false; })) << "until the engine looks";
    ASSERT_TRUE(nets.talk(middle_1, right, "and after it has looked"));
    EXPECT_TRUE(nets.client(left).messages.empty());
    EXPECT_TRUE(nets.client(right).peers_died.empty());
    EXPECT_EQ(nets.engine(TwoNets::kBoth).counters().get(Counter::link_downs), 1U);
    nets.link(0, true);
    EXPECT_TRUE(nets.run(kSecond, [&] { return nets.client(left).messages.size() == 1; }))
        << "what waited is repaired when the link is back";
    EXPECT_EQ(nets.engine(TwoNets::kBoth).counters().get(Counter::link_ups), 1U);
    EXPECT_EQ(nets.shut_down(), 0U);
}

TEST(Nets, a_peer_that_dies_on_one_net_is_no_news_on_the_other) {
    TwoNets nets;
    const auto left = nets.add_client(TwoNets::kLeft, 0);
    const auto middle_0 = nets.add_client(TwoNets::kBoth, 0);
    const auto middle_1 = nets.add_client(TwoNets::kBoth, 1);
    const auto right = nets.add_client(TwoNets::kRight, 0);
    nets.join(left, middle_0);
    nets.join(middle_1, right);
    ASSERT_TRUE(nets.formed(left, middle_0));
    ASSERT_TRUE(nets.formed(middle_1, right));
    nets.net(0).faults().unplug(kOther);
    EXPECT_TRUE(nets.run(20 * kSecond, [&] { return !nets.client(middle_0).peers_died.empty(); }));
    EXPECT_TRUE(nets.client(middle_1).peers_died.empty());
    EXPECT_TRUE(nets.client(middle_1).peers_left.empty());
    EXPECT_TRUE(nets.talk(middle_1, right, "still here"));
}

TEST(Nets, a_net_that_is_not_there_is_refused) {
    TwoNets nets;
    EXPECT_FALSE(nets.engine(TwoNets::kBoth).reserve(2).ok());
    EXPECT_FALSE(nets.engine(TwoNets::kLeft).reserve(1).ok());
    EXPECT_TRUE(nets.engine(TwoNets::kBoth).reserve(1).ok());
}

}  // namespace
}  // namespace ulc::sim
