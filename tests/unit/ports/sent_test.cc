// SPDX-License-Identifier: BSD-3-Clause
// Which ports a report of failed messages names (ports/sent_ports.h), for random messages and
// reports against a model.
#include "ports/sent_ports.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/prng.h"

namespace ulc::ports {
namespace {

using Set = std::bitset<GAMMA_PORTS>;

Set taken(SentPorts& log, std::uint64_t messages) {
    Set out;
    log.take_last(messages, out);
    return out;
}

Set of(std::initializer_list<unsigned> ports) {
    Set out;
    for (const unsigned port : ports)
        out.set(port);
    return out;
}

TEST(SentPorts, names_the_ports_of_the_last_messages_once) {
    SentPorts log;
    for (const PortNumber port : {7, 3, 3, 9})
        log.add(port);
    EXPECT_EQ(taken(log, 2), of({3, 9}));
    EXPECT_EQ(taken(log, 1), of({3})) << "the part of another report lies before it";
    EXPECT_EQ(taken(log, 5), of({7}));
    EXPECT_EQ(taken(log, 1), of({}));
}

TEST(SentPorts, does_not_name_a_message_whose_sender_knows) {
    SentPorts log;
    log.add(1);
    log.add(2);
    const std::uint64_t known = log.last();
    log.add(4);
    EXPECT_TRUE(log.forget(known));
    EXPECT_EQ(taken(log, 3), of({1, 4}));
    EXPECT_FALSE(log.forget(known)) << "it was taken";
}

TEST(SentPorts, is_right_for_any_order_of_messages_and_reports) {
    Prng random(21);
    SentPorts log;
    std::deque<PortNumber> model;
    for (int step = 0; step < 200'000; ++step) {
        if (random.below(10) < 8) {
            const auto port = static_cast<PortNumber>(random.below(GAMMA_PORTS));
            log.add(port);
            model.push_back(port);
            if (model.size() > SentPorts::kKept) model.pop_front();
            continue;
        }
        const std::uint64_t messages = random.below(step % 1000 == 0 ? 10'000 : 6);
        Set expected;
        for (std::uint64_t n = 0; n < messages && !model.empty(); ++n) {
            expected.set(model.back());
            model.pop_back();
        }
        ASSERT_EQ(taken(log, messages), expected) << "step " << step;
    }
}

}  // namespace
}  // namespace ulc::ports
