// SPDX-License-Identifier: BSD-3-Clause
// The rounds of express_sync() among up to 70 processes, with messages that take any time. Each
// process sends log2 n messages, rounded up; none passes before all have begun; and each learns how
// many messages were sent to it.
#include <gtest/gtest.h>

#include <bit>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "express/sync_rounds.h"

namespace ulc::express {
namespace {

using Counts = SyncRounds::Counts;

/// All processes of a job. Messages between two of them keep their order, and no other.
class Job {
public:
    Job(unsigned size, unsigned seed) : processes_(size), random_(seed) {
        for (unsigned rank = 0; rank < size; ++rank)
            processes_[rank].rounds.resize(rank, size);
    }

    [[nodiscard]] unsigned size() const { return static_cast<unsigned>(processes_.size()); }
    [[nodiscard]] unsigned draw(unsigned below) { return random_() % below; }
    [[nodiscard]] unsigned sent_by(unsigned rank) const { return processes_[rank].sent; }
    [[nodiscard]] const SyncRounds& rounds(unsigned rank) const { return processes_[rank].rounds; }
    [[nodiscard]] bool has_message() const { return !links_.empty(); }

    void begin(unsigned rank, const Counts& sent) {
        processes_[rank].sent = 0;
        processes_[rank].rounds.begin(sent);
        if (!rounds(rank).is_over()) send(rank);
        advance(rank);
    }

    /// One message arrives, of a random link.
    void deliver() {
        auto link = links_.begin();
        std::advance(link, draw(static_cast<unsigned>(links_.size())));
        const auto [from, to] = link->first;
        SyncRounds& rounds = processes_[to].rounds;
        ASSERT_TRUE(rounds.take(static_cast<std::uint16_t>(from), link->second.front()));
        link->second.pop_front();
        if (link->second.empty()) links_.erase(link);
        advance(to);
    }

private:
    struct One {
        SyncRounds rounds;
        unsigned sent = 0;
    };

    void advance(unsigned rank) {
        SyncRounds& rounds = processes_[rank].rounds;
        while (!rounds.is_over() && rounds.has_come()) {
            rounds.pass();
            if (!rounds.is_over()) send(rank);
        }
    }
    void send(unsigned rank) {
        const auto counts = rounds(rank).counts();
        links_[{rank, rounds(rank).partner().to}].emplace_back(counts.begin(), counts.end());
        ++processes_[rank].sent;
    }

    std::vector<One> processes_;
    std::map<std::pair<unsigned, unsigned>, std::deque<Counts>> links_;
    std::mt19937 random_;
};

/// Runs barriers that begin at random times; a process that is through may begin the next one.
void run_barriers(unsigned size, unsigned barriers) {
    Job job(size, size);
    const auto least = static_cast<unsigned>(std::bit_width(size - 1));  // ⌈log2 n⌉
    // total[b][p]: messages to p before barrier b
    std::vector<Counts> total(barriers, Counts(size));
    std::vector<unsigned> passed(size);
    std::vector<unsigned> begun_of(barriers);
    unsigned through = 0;
    while (through < size) {
        const unsigned rank = job.draw(size);
        const SyncRounds& rounds = job.rounds(rank);
        if (rounds.is_over() && passed[rank] < rounds.begun()) {
            const unsigned barrier = passed[rank]++;
            EXPECT_EQ(begun_of[barrier], size) << "passed before all had begun";
            EXPECT_EQ(rounds.expected(), total[barrier][rank]);
            EXPECT_EQ(job.sent_by(rank), least);
            if (passed[rank] == barriers) ++through;
        } else if (rounds.is_over() && rounds.begun() < barriers) {
            Counts sent(size);
            for (unsigned to = 0; to < size; ++to)
                total[rounds.begun()][to] += sent[to] = job.draw(5);
            ++begun_of[rounds.begun()];
            job.begin(rank, sent);
        } else if (job.has_message()) {
            job.deliver();
        }
    }
    EXPECT_FALSE(job.has_message());
}

TEST(ExpressSync, each_process_sends_log2_n_messages_and_learns_what_was_sent_to_it) {
    for (unsigned size = 1; size <= 70; ++size)
        run_barriers(size, 6);
}

TEST(ExpressSync, takes_one_message_ahead_of_a_partner_and_none_of_another_process) {
    SyncRounds rounds;
    rounds.resize(0, 5);  // takes 2 counts from 2, one from 3 and one from 4
    EXPECT_FALSE(rounds.take(1, {1}));
    EXPECT_FALSE(rounds.take(0, {1}));
    EXPECT_FALSE(rounds.take(500, {1}));
    EXPECT_FALSE(rounds.take(3, {}));
    EXPECT_FALSE(rounds.take(3, {1, 2}));
    EXPECT_TRUE(rounds.take(2, {1, 2}));  // it has begun, and this process has not
    EXPECT_FALSE(rounds.take(2, {3, 4}));
    rounds.begin(Counts(5));
    EXPECT_TRUE(rounds.take(2, {3, 4}));
    EXPECT_FALSE(rounds.take(2, {5, 6}));
    rounds.pass();
    EXPECT_EQ(rounds.expected(), 1U);
}

TEST(ExpressSync, an_error_holds_behind_the_messages_that_came_before) {
    SyncRounds rounds;
    rounds.resize(1, 4);  // takes from 3, then from 0
    EXPECT_FALSE(rounds.take_error(2, 7));
    EXPECT_TRUE(rounds.take(3, {1, 1}));
    EXPECT_TRUE(rounds.take_error(3, 7));
    rounds.begin(Counts(4));
    EXPECT_TRUE(rounds.has_come());
    rounds.pass();
    EXPECT_EQ(rounds.partner().error, 0);
    EXPECT_TRUE(rounds.take(0, {1}));
    rounds.pass();
    EXPECT_TRUE(rounds.is_over());
    rounds.begin(Counts(4));
    EXPECT_FALSE(rounds.has_come());
    EXPECT_EQ(rounds.partner().error, 7);
}

}  // namespace
}  // namespace ulc::express
