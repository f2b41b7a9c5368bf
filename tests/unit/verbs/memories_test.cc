// SPDX-License-Identifier: BSD-3-Clause
// Payloads that an RDMA device reads in the memory of clients: registered within bounds, not
// copied, and given back only when no frame refers to them any more.
#include "verbs/memories.h"
#include "tests/unit/verbs/ports.h"

namespace ulc::verbs {
namespace {

using Bytes = std::vector<std::byte>;

class VerbsMemories : public VerbsPorts {
protected:
    static std::uint32_t add(const VerbsPort& port, std::span<const std::byte> memory) {
        return port.port().add_memory(port.port().context, memory);
    }
    static void remove(const VerbsPort& port, const Bytes& memory) {
        port.port().remove_memory(port.port().context, memory.data());
    }
    /// Sends a frame whose last octets lie in the memory.
    static void send_tail(const VerbsPort& from, const Mac& to, const std::byte* tail,
                          std::uint32_t octets, std::uint32_t key) {
        Segment* segment = frame(from, to, 40 + octets);
        segment->tail = tail;
        segment->tail_octets = octets;
        segment->tail_key = key;
        ASSERT_EQ(from.port().tx(from.port().context, &segment, 1), 1);
    }
    static std::uint64_t copied(const VerbsPort& port) {
        return port.port().costs(port.port().context).copied_bytes;
    }
    std::size_t registered(std::uint8_t number) { return device(number).regions.size() - 2; }
};

TEST_F(VerbsMemories, a_payload_of_a_client_is_sent_without_a_copy) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    Bytes memory(4096, std::byte{0x33});
    const std::uint32_t key = add(a, memory);
    ASSERT_NE(key, 0U);
    EXPECT_EQ(add(a, memory), key) << "once";
    EXPECT_EQ(registered(0), 1U);
    EXPECT_EQ(device(0).read_only, 1) << "the device may not write there";
    const std::uint64_t before = copied(a);
    device(0).two_pieces = 0;
    send_tail(a, mac(b), memory.data() + 4096 - 900, 900, key);
    EXPECT_EQ(copied(a), before);
    EXPECT_EQ(device(0).two_pieces, 1);
    Segment* got = nullptr;
    ASSERT_EQ(b.port().rx(b.port().context, &got, 1), 1);
    EXPECT_EQ(got->length, 940U);
    EXPECT_EQ(got->frame[39], std::byte{0x5a});
    EXPECT_EQ(got->frame[40], std::byte{0x33});
    EXPECT_EQ(got->frame[939], std::byte{0x33});
    b.port().pool.drop(got);
}

TEST_F(VerbsMemories, a_tail_outside_of_the_memory_or_with_another_key_is_copied) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const Bytes all(8192, std::byte{0x44});
    const std::span<const std::byte> memory = std::span(all).subspan(2048, 4096);
    const std::uint32_t key = add(a, memory);
    ASSERT_NE(key, 0U);
    const struct {
        const std::byte* tail;
        std::uint32_t key;
    } kCases[] = {
        {memory.data() - 1, key},    {memory.data() + 4096 - 899, key},
        {memory.data() + 4096, key}, {memory.data(), key + 1},
        {memory.data(), 0},
    };
    std::uint64_t before = copied(a);
    for (const auto& [tail, named] : kCases) {
        send_tail(a, mac(b), tail, 900, named);
        EXPECT_EQ(copied(a), before += 900) << tail - memory.data();
        EXPECT_EQ(take(b), std::vector<std::uint32_t>{940});
    }
}

TEST_F(VerbsMemories, memory_stays_registered_until_the_device_has_sent_its_frames) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const Bytes memory(4096, std::byte{0x33});
    const std::uint32_t key = add(a, memory);
    device(0).holds_sends = true;
    send_tail(a, mac(b), memory.data(), 900, key);
    remove(a, memory);
    EXPECT_TRUE(look(a));
    EXPECT_EQ(registered(0), 1U) << "the device reads it";
    const std::uint64_t before = copied(a);
    send_tail(a, mac(b), memory.data(), 900, key);
    EXPECT_EQ(copied(a), before + 900) << "its key is of no use any more";
    const std::uint32_t again = add(a, memory);  // the same place, mapped for another client
    EXPECT_NE(again, 0U);
    EXPECT_NE(again, key) << "the old key names the old pages";
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
    EXPECT_TRUE(look(a));
    EXPECT_EQ(registered(0), 1U);
    device(0).holds_sends = false;
    send_tail(a, mac(b), memory.data(), 900, again);
    EXPECT_EQ(copied(a), before + 900);
}

TEST_F(VerbsMemories, a_reset_gives_back_what_was_removed_and_keeps_the_rest) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const Bytes first(4096);
    const Bytes second(4096);
    const std::uint32_t key = add(a, first);
    EXPECT_TRUE(look(a));
    const std::uint32_t kept = add(a, second);
    ASSERT_NE(kept, 0U);
    device(0).holds_sends = true;
    send_tail(a, mac(b), first.data(), 900, key);
    remove(a, first);
    Fabric::raise(device(0), IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(look(a));
    EXPECT_TRUE(look(a));
    EXPECT_EQ(registered(0), 1U);
    EXPECT_EQ(add(a, second), kept);
}

TEST_F(VerbsMemories, what_may_be_locked_is_bounded) {
    const VerbsPort& a = open(0);
    EXPECT_EQ(add(a, {}), 0U);
    const Bytes large(Memories::kEachMax + 1);
    EXPECT_EQ(add(a, large), 0U) << "a larger arena is copied from";
    std::vector<Bytes> each(Memories::kCountMax + 1, Bytes(4096));
    EXPECT_NE(add(a, each[0]), 0U);
    EXPECT_EQ(add(a, each[1]), 0U) << "one in a look";
    for (std::size_t n = 1; n < Memories::kCountMax; ++n) {
        EXPECT_TRUE(look(a));
        EXPECT_NE(add(a, each[n]), 0U) << n;
    }
    EXPECT_TRUE(look(a));
    EXPECT_EQ(add(a, each.back()), 0U) << "there are enough";
    remove(a, each[5]);
    EXPECT_TRUE(look(a));
    EXPECT_NE(add(a, each.back()), 0U);
    for (const Bytes& memory : each)
        remove(a, memory);
    EXPECT_TRUE(look(a));
    EXPECT_EQ(registered(0), 0U);
    const std::size_t most = Memories::kOctetsMax / Memories::kEachMax;
    const Bytes shared(Memories::kEachMax + most + 1);
    for (std::size_t n = 0; n <= most; ++n) {
        EXPECT_TRUE(look(a));
        EXPECT_EQ(add(a, std::span(shared).subspan(n, Memories::kEachMax)) != 0, n < most) << n;
    }
}

TEST_F(VerbsMemories, a_registration_that_fails_is_tried_again_after_a_second) {
    const VerbsPort& a = open(0);
    const Bytes memory(4096);
    device(0).errors["reg_mr_to_read"] = ENOMEM;
    for (int n = 0; n < 300; ++n) {
        EXPECT_EQ(add(a, memory), 0U);
        EXPECT_TRUE(look(a));
    }
    EXPECT_EQ(device(0).read_only, 3);
    device(0).errors.clear();
    EXPECT_NE(add(a, memory), 0U);
    device(0).next_key = 0;  // a device that numbers from 0: that is no key here
    const Bytes other(4096);
    EXPECT_TRUE(look(a));
    EXPECT_EQ(add(a, other), 0U);
    EXPECT_EQ(registered(0), 1U);
}

TEST_F(VerbsMemories, a_device_that_is_gone_registers_nothing) {
    const VerbsPort& a = open(0);
    const Bytes memory(4096);
    EXPECT_NE(add(a, memory), 0U);
    Fabric::raise(device(0), IBV_EVENT_DEVICE_FATAL);
    EXPECT_FALSE(look(a));
    EXPECT_EQ(add(a, Bytes(64)), 0U);
    close(a);  // the fabric's end sees that all was given back
}

}  // namespace
}  // namespace ulc::verbs
