// SPDX-License-Identifier: BSD-3-Clause
// Tests the timing of a collective at the rank that ends last, on ranks that are threads. That rank
// is found and timed by one clock [NN97]. Each thread has a virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/last_process.h"

namespace ulc::bench {
namespace {

constexpr std::uint16_t kRanks = 3;

constexpr double kWay = 0.010;  ///< seconds that a word takes
constexpr double kRounding = 1e-9;

/// A word from one rank to another: one at a time is under way.
struct Mailbox {
    std::binary_semaphore is_sent{0};
    double sent_at = 0;
};

/// Words between the threads, their times, and the value of a broadcast.
struct Board {
    std::barrier<> all{kRanks};
    std::array<Mailbox, std::size_t{kRanks} * kRanks> words;  ///< by source and destination
    std::array<double, kRanks> times{};                       ///< at the last barrier
    std::uint16_t chosen = 0;
};

/// Only what time_to_last() calls; each other call fails the test.
class Threads : public Transport {
public:
    Threads(Board& board, std::uint16_t rank) : board_(board), rank_(rank) {}

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::uint16_t rank() const override { return rank_; }
    [[nodiscard]] std::uint16_t size() const override { return kRanks; }
    [[nodiscard]] bool has_algorithms() const override { return false; }
    /// The rank computes.
    void pass(double seconds) { now_ += seconds; }
    [[nodiscard]] double now() const { return now_; }
    void barrier(const char*) override {
        board_.times[rank_] = now_;
        board_.all.arrive_and_wait();
        now_ = *std::ranges::max_element(board_.times);
        board_.all.arrive_and_wait();
    }
    void send(std::uint16_t peer, const void*, std::size_t) override {
        Mailbox& box = board_.words[std::size_t{rank_} * kRanks + peer];
        box.sent_at = now_;
        box.is_sent.release();
    }
    void receive(std::uint16_t peer, void*, std::size_t) override {
        Mailbox& box = board_.words[std::size_t{peer} * kRanks + rank_];
        box.is_sent.acquire();
        now_ = std::max(now_, box.sent_at + kWay);
    }
    void broadcast(std::uint16_t root, void* buffer, std::size_t octets, const char*) override {
        ASSERT_EQ(octets, sizeof board_.chosen);
        auto& value = *static_cast<std::uint16_t*>(buffer);
        if (rank_ == root) board_.chosen = value;
        barrier(nullptr);
        value = board_.chosen;
        barrier(nullptr);
    }

    void round_trip(std::uint16_t, const void*, void*, std::size_t) override { FAIL(); }
    void echo(std::uint16_t, void*, std::size_t) override { FAIL(); }
    void stream_out(std::uint16_t, const void*, std::size_t, unsigned) override { FAIL(); }
    bool stream_in(std::uint16_t, void*, const void*, std::size_t, unsigned) override {
        ADD_FAILURE();
        return false;
    }
    void exchange(std::span<const std::uint16_t>, const unsigned char*, unsigned char*,
                  std::size_t) override {
        FAIL();
    }
    void allgather(const void*, void*, std::size_t, const char*) override { FAIL(); }
    void gather(std::uint16_t, const void*, void*, std::size_t, const char*) override { FAIL(); }
    void scatter(std::uint16_t, const void*, void*, std::size_t, const char*) override { FAIL(); }
    void alltoall(const void*, void*, std::size_t, const char*) override { FAIL(); }
    void reduce(std::uint16_t, const double*, double*, std::size_t, const char*) override {
        FAIL();
    }
    void allreduce(const double*, double*, std::size_t, const char*) override { FAIL(); }
    void reduce_scatter(const double*, double*, std::size_t, const char*) override { FAIL(); }
    void scan(const double*, double*, std::size_t, const char*) override { FAIL(); }
    void exscan(const double*, double*, std::size_t, const char*) override { FAIL(); }

private:
    Board& board_;
    std::uint16_t rank_;
    double now_ = 0;
    std::string name_ = "threads";
};

/// Runs a call that rank r ends after delays[r] seconds. Returns each rank's result.
std::array<LastProcess, kRanks> time_calls(const std::array<double, kRanks>& delays) {
    Board board;
    std::array<LastProcess, kRanks> results;
    std::vector<std::jthread> ranks;
    for (std::uint16_t rank = 0; rank < kRanks; ++rank)
        ranks.emplace_back([&, rank] {
            Threads transport(board, rank);
            const auto call = [&] { transport.pass(delays[rank]); };
            results[rank] = time_to_last(transport, call, 3, 3, [&] { return transport.now(); });
        });
    ranks.clear();  // joins
    return results;
}

TEST(last_process, the_rank_that_ends_last_is_found_and_its_end_is_timed) {
    const auto results = time_calls({0.025, 0.200, 0.100});
    EXPECT_EQ(results[0].rank, 1);
    EXPECT_NEAR(results[0].seconds, 0.200, kRounding) << "less the way of the word";
    EXPECT_NEAR(results[0].ahead_seconds, 0.100, kRounding);
    for (const std::uint16_t other : {1, 2}) {
        EXPECT_EQ(results[other].seconds, 0) << "only rank 0 has the clock";
        EXPECT_EQ(results[other].rank, 0);
    }
}

TEST(last_process, rank_0_that_ends_last_is_timed_without_a_word) {
    const auto results = time_calls({0.200, 0.025, 0.100});
    EXPECT_EQ(results[0].rank, 0);
    EXPECT_NEAR(results[0].seconds, 0.200, kRounding);
    EXPECT_NEAR(results[0].ahead_seconds, kWay, kRounding) << "it sees no word before its own end";
}

}  // namespace
}  // namespace ulc::bench
