// SPDX-License-Identifier: BSD-3-Clause
// The page protocol of bench/apps/dsm by random programs on a network that delays at random, in
// order between two processes: at each step one writer or only readers, each read sees the last
// write, and each program ends.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "bench/apps/dsm/protocol.h"

namespace ulc::dsm {
namespace {

constexpr unsigned kWords = 2;  ///< in a page
using Bytes = std::array<std::uint32_t, kWords>;

struct Packet {
    Message message;
    Bytes bytes{};
};

class World;

/// A process: its view of the pages, and a program that reads and writes at random.
class Process : public Surroundings {
public:
    Process(World& world, std::uint16_t self, std::uint32_t pages)
        : world_(world), self_(self), access_(pages), bytes_(pages), node(self, pages, *this) {}

    void send(std::uint16_t to, const Message& message) override;
    void protect(std::uint32_t page, Access access) override { access_[page] = access; }
    void install(std::uint32_t page) override { bytes_[page] = arrived; }
    void wake(std::uint32_t) override {}

    void step(Prng& random, unsigned steps);
    [[nodiscard]] Access access(std::uint32_t page) const { return access_[page]; }

    Bytes arrived{};
    unsigned done = 0;

private:
    World& world_;
    std::uint16_t self_;
    std::vector<Access> access_;
    std::vector<Bytes> bytes_;
    bool has_operation_ = false;
    std::uint32_t page_ = 0, word_ = 0;
    bool writes_ = false;

public:
    Node node;
};

class World {
public:
    World(std::uint16_t processes, std::uint32_t pages, std::uint64_t seed)
        : random(seed), truth(pages), pages_(pages), channels(std::size_t{processes} * processes) {
        for (std::uint16_t self = 0; self < processes; ++self)
            all.push_back(std::make_unique<Process>(*this, self, pages));
    }

    /// One writer, or readers only.
    void check_copies() const {
        for (std::uint32_t page = 0; page < pages_; ++page) {
            unsigned readers = 0;
            unsigned writers = 0;
            for (const auto& process : all) {
                readers += process->access(page) == Access::kRead ? 1 : 0;
                writers += process->access(page) == Access::kWrite ? 1 : 0;
            }
            ASSERT_LE(writers, 1U);
            ASSERT_TRUE(writers == 0 || readers == 0) << "page " << page;
        }
    }

    void deliver_one() {
        const auto start = random.below(channels.size());
        for (std::size_t n = 0; n < channels.size(); ++n) {
            const std::size_t at = (start + n) % channels.size();
            if (channels[at].empty()) continue;
            const Packet packet = channels[at].front();
            channels[at].pop_front();
            Process& to = *all[at % all.size()];
            to.arrived = packet.bytes;
            ASSERT_TRUE(
                to.node.on_message(static_cast<std::uint16_t>(at / all.size()), packet.message));
            return;
        }
    }

    void run(unsigned operations) {
        constexpr unsigned kStepsMax = 200'000;
        for (unsigned steps = 0; steps < kStepsMax; ++steps) {
            bool ended = true;
            for (const auto& process : all)
                ended = ended && process->done >= operations;
            if (ended) return;
            if (random.below(2) == 0) {
                deliver_one();
            } else {
                all[random.below(all.size())]->step(random, operations);
            }
            check_copies();
            if (testing::Test::HasFatalFailure()) return;
        }
        FAIL() << "a program does not end";
    }

    Prng random;
    std::vector<Bytes> truth;
    std::uint32_t last = 0;  ///< value written last
    std::uint32_t pages_;
    std::vector<std::deque<Packet>> channels;  ///< from × processes + to
    std::vector<std::unique_ptr<Process>> all;
};

void Process::send(std::uint16_t to, const Message& message) {
    world_.channels[self_ * world_.all.size() + to].push_back({message, bytes_[message.page]});
}

void Process::step(Prng& random, unsigned steps) {
    if (done >= steps) {
        for (std::uint32_t page = 0; page < access_.size(); ++page)
            if (node.is_held(page)) node.resume(page);
        return;
    }
    if (!has_operation_) {
        has_operation_ = true;
        page_ = static_cast<std::uint32_t>(random.below(access_.size()));
        word_ = static_cast<std::uint32_t>(random.below(kWords));
        writes_ = random.below(3) == 0;
    }
    if (!node.allows(page_, writes_)) {
        node.fault(page_, writes_);
        return;
    }
    // The thread goes on at times only after the page is gone again.
    if (node.is_held(page_) && random.below(8) == 0) {
        node.resume(page_);
        if (!node.allows(page_, writes_)) return;
    }
    ASSERT_GE(access_[page_], writes_ ? Access::kWrite : Access::kRead);
    if (writes_) {
        bytes_[page_][word_] = world_.truth[page_][word_] = ++world_.last;
    } else {
        ASSERT_EQ(bytes_[page_][word_], world_.truth[page_][word_]);
    }
    has_operation_ = false;
    ++done;
    if (node.is_held(page_)) node.resume(page_);
}

TEST(DsmProtocol, random_programs_are_sequentially_consistent_and_end) {
    for (std::uint64_t seed = 1; seed <= 1'500; ++seed) {
        World world(static_cast<std::uint16_t>(2 + seed % 5), 1 + seed / 5 % 3, seed);
        world.run(60);
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    }
}

TEST(DsmProtocol, after_the_end_nothing_is_under_way) {
    World world(4, 2, 7);
    world.run(200);
    for (int n = 0; n < 10'000; ++n) {
        world.deliver_one();
        for (const auto& process : world.all)
            process->step(world.random, 0);
    }
    unsigned owners = 0;
    for (const auto& process : world.all)
        for (std::uint32_t page = 0; page < 2; ++page) {
            EXPECT_TRUE(process->node.is_quiet(page));
            owners += process->access(page) == Access::kWrite ? 1 : 0;
        }
    EXPECT_LE(owners, 2U);
    for (const auto& channel : world.channels)
        EXPECT_TRUE(channel.empty());
}

TEST(DsmProtocol, messages_that_the_state_does_not_allow_change_nothing) {
    World world(2, 1, 1);
    Node& owner = world.all[0]->node;
    Node& other = world.all[1]->node;
    EXPECT_FALSE(owner.on_message(1, {Kind::kCopy, 0, 0, 0}));
    EXPECT_FALSE(owner.on_message(1, {Kind::kOwnership, 0, 0, 0}));
    EXPECT_FALSE(owner.on_message(1, {Kind::kInvalidate, 0, 0, 0}));
    EXPECT_FALSE(owner.on_message(1, {Kind::kInvalidated, 0, 0, 0}));
    EXPECT_FALSE(other.on_message(0, {Kind::kCopy, 0, 1, 0}));
    EXPECT_FALSE(other.on_message(0, {Kind::kReadRequest, kProcessesMax, 0, 0}));
    EXPECT_TRUE(owner.allows(0, true));
    EXPECT_FALSE(other.allows(0, false));
}

}  // namespace
}  // namespace ulc::dsm
