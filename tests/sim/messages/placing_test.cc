// SPDX-License-Identifier: BSD-3-Clause
// Tests long messages to applications with an embedded engine. Frames are copied into the buffers
// of posted receives, and payloads land there without a frame, also when frames are lost,
// retransmitted or overtaken, and before any receive is posted. A buffer is freed as soon as its
// receive is done, so the address sanitizer finds a later write.
#include <gtest/gtest.h>
#include <ulc.h>
#include <ulc_memory.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0} >> 2;
constexpr std::uint64_t kTags = 4;
// One packet carries more than the shortest message that has a place, so some have one packet only.
constexpr std::size_t kMtu = 9000;
static_assert(kMtu > 2 * abi::kPlacedMin);

ClusterConfig config_of(std::uint64_t seed, double loss) {
    ClusterConfig config;
    config.net.ports = 3;
    config.net.mtu = kMtu;
    config.net.faults = {.loss = loss, .duplicate = loss / 4, .reorder = loss / 2};
    config.net.seed = config.seed = seed;
    config.embedded = Embedded::kAll;
    return config;
}

/// One message, at its sender and at its receiver.
struct Sent {
    std::vector<std::byte> payload;
    std::uint16_t from;
    std::uint16_t to;
    std::uint64_t tag;
    ulc_request request;
    bool done = false;
};
struct Awaited {
    std::vector<std::byte> buffer;
    std::uint16_t from;  ///< ULC_RANK_ANY: any
    ulc_request request;
    bool done = false;
};

/// Each rank sends random messages to the next one, or to the next two in turns, and posts a
/// receive for each, some before and some after it came.
class Traffic {
public:
    Traffic(const ClusterConfig& config, std::size_t messages, std::uint16_t receivers = 1)
        : lib_(config), random_(config.seed), messages_(messages), receivers_(receivers) {}

    void run() {
        ASSERT_TRUE(lib_.form());
        const std::uint16_t ranks = lib_.ranks();
        awaited_.resize(ranks);
        next_.assign(ranks, std::vector<std::size_t>(ranks));
        to_send_.assign(ranks, messages_);
        to_await_.assign(ranks, messages_);
        const auto over = [&] {
            return std::ranges::all_of(sent_, &Sent::done) && left(to_send_) == 0 &&
                   left(to_await_) == 0 &&
                   std::ranges::all_of(awaited_, [](const auto& one) { return one.empty(); });
        };
        ASSERT_TRUE(lib_.run(60 * kSecond, over, [this](std::uint16_t rank, Nanos now) {
            act(rank);
            const Nanos pause = random_.below(20) == 0 ? pauses_ : 0;
            if (pause != 0) lib_.cluster().pause_client(rank, now + pause);
            return now + 20 * kMicrosecond;
        }));
    }
    [[nodiscard]] LibCluster& lib() noexcept { return lib_; }
    /// Makes a rank compute for such times now and then, while its engine continues.
    void set_pauses(Nanos pauses) noexcept { pauses_ = pauses; }
    [[nodiscard]] std::uint64_t count(Counter counter) { return lib_.cluster().count(counter); }

private:
    static std::size_t left(const std::vector<std::size_t>& counts) {
        std::size_t sum = 0;
        for (const std::size_t count : counts)
            sum += count;
        return sum;
    }
    /// Returns a length near the limit of one packet, or of several.
    std::size_t some_length() {
        const std::size_t around[] = {0,    104,      abi::kPlacedMin, kMtu - 50, kMtu - 28,
                                      kMtu, 2 * kMtu, 30'000,          200'000};
        return around[random_.below(std::size(around))] + random_.below(40);
    }
    void act(std::uint16_t rank) {
        ulc_endpoint* ep = lib_.endpoint(rank);
        if (to_send_[rank] > 0 && random_.below(3) == 0) send(ep, rank);
        if (to_await_[rank] > 0 && random_.below(3) == 0) await(ep, rank);
        for (Sent& one : sent_) {
            ulc_status status;
            if (one.from != rank || one.done || ulc_test(ep, &one.request, &status) != ULC_OK)
                continue;
            one.done = true;
            EXPECT_EQ(status.error, ULC_OK);
        }
        // In the order of posting, which is that of matching if two could take the same message.
        std::erase_if(awaited_[rank], [&](const std::unique_ptr<Awaited>& one) {
            ulc_status status;
            if (ulc_test(ep, &one->request, &status) != ULC_OK) return false;
            take(rank, *one, status);
            return true;
        });
    }
    void send(ulc_endpoint* ep, std::uint16_t rank) {
        --to_send_[rank];
        Sent& one = sent_.emplace_back();
        one.from = rank;
        one.to =
            static_cast<std::uint16_t>((rank + 1 + to_send_[rank] % receivers_) % lib_.ranks());
        one.tag = random_.below(kTags);
        one.payload = Oracle::payload(sent_.size(), some_length());
        ASSERT_EQ(
            ulc_send(ep, one.to, one.tag, one.payload.data(), one.payload.size(), &one.request),
            ULC_OK);
    }
    // Posts a receive with any tag, so that the order of messages alone decides which one it gets.
    void await(ulc_endpoint* ep, std::uint16_t rank) {
        --to_await_[rank];
        auto one = std::make_unique<Awaited>();
        one->buffer.resize(210'000);
        one->from = receivers_ > 1 || random_.below(2) == 0
                        ? std::uint16_t{ULC_RANK_ANY}
                        : static_cast<std::uint16_t>((rank + lib_.ranks() - 1) % lib_.ranks());
        ASSERT_EQ(ulc_receive(ep, one->from, 0, ~kAllBits, one->buffer.data(), one->buffer.size(),
                              &one->request),
                  ULC_OK);
        awaited_[rank].push_back(std::move(one));
    }
    // Receives match the messages of one source in the order in which they were posted, so they
    // also end in that order.
    void take(std::uint16_t rank, const Awaited& one, const ulc_status& status) {
        EXPECT_EQ(status.error, ULC_OK);
        std::size_t& next = next_[rank][status.source];
        while (next < sent_.size() && (sent_[next].to != rank || sent_[next].from != status.source))
            ++next;
        ASSERT_LT(next, sent_.size());
        const Sent& expected = sent_[next++];
        EXPECT_EQ(status.tag, expected.tag);
        ASSERT_EQ(status.length, expected.payload.size());
        EXPECT_TRUE(
            std::equal(expected.payload.begin(), expected.payload.end(), one.buffer.begin()));
    }

    LibCluster lib_;
    Prng random_;
    std::size_t messages_;
    std::deque<Sent> sent_;
    std::vector<std::vector<std::unique_ptr<Awaited>>> awaited_;  ///< by rank
    std::vector<std::size_t> to_send_;
    std::vector<std::size_t> to_await_;
    std::vector<std::vector<std::size_t>>
        next_;  ///< by receiver and source: the next index in sent_
    std::uint16_t receivers_;
    Nanos pauses_ = 0;
};

TEST(Placing, random_traffic_with_losses_matches_in_order) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Traffic traffic(config_of(seed, seed % 3 == 0 ? 0 : 0.03), 80);
        traffic.run();
        if (HasFatalFailure()) return;
        EXPECT_GT(traffic.count(Counter::messages_placed), 30U);
        EXPECT_GT(traffic.count(Counter::payloads_landed), 100U);
        EXPECT_LT(traffic.count(Counter::messages_placed),
                  traffic.count(Counter::messages_received))
            << "some came before they were asked for";
        EXPECT_EQ(traffic.lib().shut_down(), 0U);
    }
}

// On a wire of shared memory the writer may overtake a reader that was stopped: the landed data are
// worthless and come again.
TEST(Placing, what_was_overtaken_while_it_landed_comes_again) {
    ClusterConfig config = config_of(7, 0.01);
    config.net.overtaken_every = 5;
    Traffic traffic(config, 60);
    traffic.run();
    EXPECT_GT(traffic.count(Counter::payloads_landed), 100U);
    EXPECT_EQ(traffic.lib().shut_down(), 0U);
}

// With few slots a client stalls its engine repeatedly between the payload's landing and its
// delivery, and another source's message may get the receive in that time.
TEST(Placing, a_stalled_client_gets_what_has_landed_later) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ClusterConfig config = config_of(seed, 0.01);
        config.sizes = {8, 8, 64U << 10, 64U << 10};
        Traffic traffic(config, 100, static_cast<std::uint16_t>(1 + seed % 2));
        traffic.set_pauses(2 * kMillisecond);
        traffic.run();
        if (HasFatalFailure()) return;
        EXPECT_GT(traffic.count(Counter::messages_placed), 10U);
        EXPECT_GT(traffic.count(Counter::client_stalled), 0U);
        EXPECT_EQ(traffic.lib().shut_down(), 0U);
    }
}

// Both wait for space in the completion ring, and had landed in the buffer of the one receive that
// either may get.
TEST(Placing, two_that_stall_do_not_share_a_buffer) {
    constexpr std::size_t kEach = 12;
    constexpr std::size_t kLength = abi::kPlacedMin + 1;
    ClusterConfig config = config_of(12, 0);
    config.sizes = {64, 8, 64U << 10, 64U << 10};
    LibCluster lib(config);
    ASSERT_TRUE(lib.form());
    std::vector<std::vector<std::byte>> buffers(2 * kEach, std::vector<std::byte>(kLength));
    std::vector<ulc_request> receives(2 * kEach);
    for (std::size_t n = 0; n < 2 * kEach; ++n)
        ASSERT_EQ(ulc_receive(lib.endpoint(0), ULC_RANK_ANY, 0, ~kAllBits, buffers[n].data(),
                              kLength, &receives[n]),
                  ULC_OK);
    const Nanos resumes = lib.cluster().now() + 5 * kMillisecond;
    lib.cluster().pause_client(0, resumes);
    std::deque<ulc_request> sends;
    std::deque<std::vector<std::byte>> payloads;
    for (std::uint16_t rank = 1; rank <= 2; ++rank) {
        for (std::size_t n = 0; n < kEach; ++n) {
            payloads.push_back(Oracle::payload(rank * 100U + n, kLength));
            ASSERT_EQ(ulc_send(lib.endpoint(rank), 0, rank * 100U + n, payloads.back().data(),
                               kLength, &sends.emplace_back()),
                      ULC_OK);
        }
    }
    std::vector<ulc_status> got(2 * kEach);
    std::size_t done = 0;
    ASSERT_TRUE(lib.run(
        20 * kSecond, [&] { return done == got.size(); },
        [&](std::uint16_t rank, Nanos) {
            while (rank == 0 && done < got.size() &&
                   ulc_test(lib.endpoint(0), &receives[done], &got[done]) == ULC_OK)
                ++done;
            return kNever;
        }));
    EXPECT_GT(lib.cluster().now(), resumes);
    EXPECT_GT(lib.cluster().count(Counter::client_stalled), 0U);
    EXPECT_EQ(lib.cluster().count(Counter::messages_placed), 2 * kEach);
    for (std::size_t n = 0; n < got.size(); ++n)
        EXPECT_EQ(buffers[n], Oracle::payload(got[n].tag, kLength)) << got[n].tag;
    EXPECT_EQ(lib.shut_down(), 0U);
}

// A receive is taken back while frames are copied and land in its buffer, which is freed at once.
TEST(Placing, a_buffer_that_was_taken_back_is_not_written_to) {
    constexpr std::size_t kLength = 1U << 20;
    LibCluster lib(config_of(14, 0.01));
    ASSERT_TRUE(lib.form());
    const std::vector<std::byte> payload = Oracle::payload(1, kLength);
    auto buffer = std::make_unique<std::vector<std::byte>>(kLength);
    ulc_request receive;
    ulc_request sends[2];
    ASSERT_EQ(ulc_receive(lib.endpoint(0), 1, 1, kAllBits, buffer->data(), kLength, &receive),
              ULC_OK);
    for (std::uint64_t tag = 1; tag <= 2; ++tag)
        ASSERT_EQ(ulc_send(lib.endpoint(1), 0, tag, payload.data(), kLength, &sends[tag - 1]),
                  ULC_OK);
    const auto act = [](std::uint16_t, Nanos now) { return now + 20 * kMicrosecond; };
    const auto begun = [&] {
        return buffer->front() == payload.front() && (*buffer)[kLength / 4] == payload[kLength / 4];
    };
    ASSERT_TRUE(lib.run(5 * kSecond, begun, act));
    ASSERT_EQ(ulc_test(lib.endpoint(0), &receive, nullptr), ULC_ERR_AGAIN);
    ASSERT_EQ(ulc_abandon(lib.endpoint(0), &receive), ULC_OK);
    buffer.reset();
    std::vector<std::byte> next(kLength);
    ASSERT_EQ(ulc_receive(lib.endpoint(0), 1, 2, kAllBits, next.data(), kLength, &receive), ULC_OK);
    ASSERT_TRUE(lib.run(
        20 * kSecond, [&] { return ulc_test(lib.endpoint(0), &receive, nullptr) == ULC_OK; }, act));
    EXPECT_EQ(next, payload);
    EXPECT_EQ(lib.shut_down(), 0U);
}

// The answer to a message comes with its acknowledgement. A client that posts the receive when its
// send is done still gets the payload without a copy by the engine, but for the first packets.
TEST(Placing, a_receive_posted_with_the_acknowledgement_is_in_time) {
    constexpr std::size_t kLength = 1U << 20;
    constexpr unsigned kAnswers = 20;
    ClusterConfig config = config_of(13, 0);
    config.net.ports = 2;
    config.net.bits_per_second = 100'000'000'000;
    LibCluster lib(config);
    ASSERT_TRUE(lib.form());
    struct Side {
        std::vector<std::byte> buffer = std::vector<std::byte>(kLength);
        ulc_request request;
        bool sends = false;
        unsigned received = 0;
    };
    std::vector<Side> sides(2);
    const auto send = [&](std::uint16_t rank) {
        Side& side = sides[rank];
        side.sends = true;
        return ulc_send(lib.endpoint(rank), 1U - rank, 3, side.buffer.data(), kLength,
                        &side.request);
    };
    const auto receive = [&](std::uint16_t rank) {
        Side& side = sides[rank];
        side.sends = false;
        return ulc_receive(lib.endpoint(rank), 1U - rank, 3, kAllBits, side.buffer.data(), kLength,
                           &side.request);
    };
    sides[0].buffer = Oracle::payload(1, kLength);
    ASSERT_EQ(receive(1), ULC_OK);
    ASSERT_EQ(send(0), ULC_OK);
    ASSERT_TRUE(lib.run(
        20 * kSecond, [&] { return sides[1].received == kAnswers; },
        [&](std::uint16_t rank, Nanos now) {
            Side& side = sides[rank];
            if (side.received == kAnswers ||
                ulc_test(lib.endpoint(rank), &side.request, nullptr) != ULC_OK)
                return now + kMicrosecond / 5;
            side.received += side.sends ? 0 : 1;
            EXPECT_EQ(side.sends ? receive(rank) : send(rank), ULC_OK);
            return now + kMicrosecond / 5;
        }));
    EXPECT_EQ(sides[1].buffer, Oracle::payload(1, kLength));
    const std::uint64_t packets = 2 * kAnswers * (kLength / kMtu);
    EXPECT_GT(lib.cluster().count(Counter::messages_placed), 2 * kAnswers - 3);
    EXPECT_GT(lib.cluster().count(Counter::payloads_landed), packets * 19 / 20);
}

// Two members on each node: a frame is for both, so it lands at neither.
TEST(Placing, what_two_members_of_one_node_share_lands_at_neither) {
    constexpr std::uint16_t kRanks = 4;
    constexpr std::size_t kLength = 50'000;
    ClusterConfig config = config_of(11, 0.02);
    config.net.ports = 2;
    LibCluster lib(config, kRanks);
    ASSERT_TRUE(lib.form());
    for (std::uint16_t root = 0; root < kRanks; ++root) {
        const std::vector<std::byte> payload = Oracle::payload(root, kLength);
        std::vector<std::vector<std::byte>> buffers(kRanks, std::vector<std::byte>(kLength));
        std::vector<ulc_request> requests(kRanks);
        for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
            ulc_endpoint* ep = lib.endpoint(rank);
            ASSERT_EQ(rank == root ? ulc_multicast(ep, ulc_world(ep), ULC_SUBSET_ALL, 3,
                                                   payload.data(), kLength, &requests[rank])
                                   : ulc_receive(ep, root, 3, kAllBits, buffers[rank].data(),
                                                 kLength, &requests[rank]),
                      ULC_OK);
        }
        std::vector<bool> done(kRanks);
        ASSERT_TRUE(lib.run(
            20 * kSecond, [&] { return std::ranges::count(done, true) == kRanks; },
            [&](std::uint16_t rank, Nanos now) {
                if (!done[rank])
                    done[rank] = ulc_test(lib.endpoint(rank), &requests[rank], nullptr) == ULC_OK;
                return now + 20 * kMicrosecond;
            }));
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            EXPECT_TRUE(rank == root || buffers[rank] == payload) << root << " to " << rank;
    }
    EXPECT_EQ(lib.cluster().count(Counter::messages_placed), kRanks * (kRanks - 1U));
    EXPECT_EQ(lib.cluster().count(Counter::payloads_landed), 0U);
    EXPECT_EQ(lib.shut_down(), 0U);
}

TEST(Placing, nothing_is_written_once_the_source_is_dead) {
    LibCluster lib(config_of(9, 0));
    ASSERT_TRUE(lib.form());
    auto buffer = std::make_unique<std::vector<std::byte>>(4U << 20);
    const std::vector<std::byte> payload = Oracle::payload(1, buffer->size());
    ulc_request receive;
    ulc_request send;
    ASSERT_EQ(
        ulc_receive(lib.endpoint(0), 1, 5, kAllBits, buffer->data(), buffer->size(), &receive),
        ULC_OK);
    ASSERT_EQ(ulc_send(lib.endpoint(1), 0, 5, payload.data(), payload.size(), &send), ULC_OK);
    const auto idle = [](std::uint16_t, Nanos) { return kNever; };
    const auto begun = [&] { return lib.cluster().count(Counter::payloads_landed) > 50; };
    ASSERT_TRUE(lib.run(kSecond, begun, idle));
    lib.kill(1);
    ulc_status status;
    ASSERT_TRUE(lib.run(
        20 * kSecond, [&] { return ulc_test(lib.endpoint(0), &receive, &status) == ULC_OK; },
        idle));
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    buffer.reset();
    (void)lib.run(
        kSecond / 10, [] { return false; }, idle);
    EXPECT_EQ(lib.shut_down(), 0U);
}

TEST(Placing, who_has_no_engine_inside_is_never_asked) {
    ClusterConfig config = config_of(10, 0.01);
    config.embedded = Embedded::kNone;
    Traffic traffic(config, 20);
    traffic.run();
    EXPECT_EQ(traffic.count(Counter::messages_placed), 0U);
    EXPECT_EQ(traffic.count(Counter::payloads_landed), 0U);
    EXPECT_EQ(traffic.lib().shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
