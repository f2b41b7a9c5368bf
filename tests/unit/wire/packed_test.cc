// SPDX-License-Identifier: BSD-3-Clause
// Tests the list of messages of a packet (wire/packed.h).
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "wire/packed.h"

namespace ulc::wire {
namespace {

using Octets = std::vector<std::byte>;

Octets octets_of(std::initializer_list<unsigned> values) {
    Octets octets;
    for (const unsigned value : values)
        octets.push_back(static_cast<std::byte>(value));
    return octets;
}

void add(Octets& list, const std::string& payload, bool has_tag, std::uint64_t tag) {
    const std::size_t at = list.size();
    list.resize(at + packed_head_octets(has_tag) + payload.size());
    std::byte* const to =
        put_packed_head(list.data() + at, static_cast<std::uint32_t>(payload.size()), has_tag, tag);
    std::memcpy(to, payload.data(), payload.size());
}

// M-14
TEST(Packed, a_message_is_its_length_its_tag_and_its_payload) {
    Octets list;
    add(list, "ab", false, 0);
    add(list, "", true, 0x0102030405060708);
    EXPECT_EQ(list, octets_of({0x00, 2, 'a', 'b', 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(count_packed(list), 2U);
    PackedMessage message;
    ASSERT_EQ(take_packed(list, message), 4U);
    EXPECT_FALSE(message.has_tag);
    EXPECT_EQ(message.length, 2U);
    EXPECT_EQ(message.payload, list.data() + 2);
    ASSERT_EQ(take_packed(std::span(list).subspan(4), message), 10U);
    EXPECT_TRUE(message.has_tag);
    EXPECT_EQ(message.tag, 0x0102030405060708U);
    EXPECT_EQ(message.length, 0U);
}

// M-16
TEST(Packed, a_list_that_does_not_add_up_is_refused_as_a_whole) {
    EXPECT_EQ(count_packed({}), 0U) << "no message";
    EXPECT_EQ(count_packed(octets_of({0})), 0U) << "half a length";
    EXPECT_EQ(count_packed(octets_of({0, 0})), 1U) << "an empty message";
    EXPECT_EQ(count_packed(octets_of({0, 1})), 0U) << "an octet is missing";
    EXPECT_EQ(count_packed(octets_of({0, 1, 7})), 1U);
    EXPECT_EQ(count_packed(octets_of({0, 1, 7, 0})), 0U) << "an octet is left";
    EXPECT_EQ(count_packed(octets_of({0x80, 0, 1, 2, 3, 4, 5, 6, 7})), 0U) << "half a tag";
    EXPECT_EQ(count_packed(octets_of({0x80, 1, 1, 2, 3, 4, 5, 6, 7, 8})), 0U);
    EXPECT_EQ(count_packed(octets_of({0, 1, 7, 0xff, 0xff, 7})), 0U) << "behind a good one";
}

// M-14
TEST(Packed, a_packet_has_64_messages_at_most) {
    Octets list(2 * kPackedMax);
    EXPECT_EQ(count_packed(list), 64U);
    list.resize(list.size() + 2);
    EXPECT_EQ(count_packed(list), 0U);
}

}  // namespace
}  // namespace ulc::wire
