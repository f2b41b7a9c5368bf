// SPDX-License-Identifier: BSD-3-Clause
// The fixture of the tests of announced messages: an endpoint of three ranks against a scripted
// engine, the words of its peers, and what it says.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "client/p2p/rendezvous.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {

inline constexpr std::uint64_t kTag = 9;
inline constexpr std::uint64_t kExact = UINT64_MAX;

struct ClientRendezvous : ClientTest {
    ClientRendezvous() {
        engine.form(0, 3);
        EXPECT_EQ(ulc_set_rendezvous(ep, 10'000, 50'000), ULC_OK);
    }

    // --- the peer's words
    static std::string announcement(std::uint64_t tag, std::uint64_t length, std::uint32_t id,
                                    const std::string& first) {
        Announcement head{};
        head.tag = tag;
        head.length = length;
        head.id = id;
        head.first = static_cast<std::uint32_t>(first.size());
        return std::string(reinterpret_cast<const char*>(&head), sizeof head) + first;
    }
    void hear(std::uint16_t source, std::uint64_t tag, const std::string& text) {
        if (text.size() <= abi::kInlineOctetsMax) {
            engine.deliver_inline(source, tag, text);
        } else {
            engine.deliver_block(source, tag, next_block, text, 0, text.size());
            next_block = (next_block + 8192) % 32768;
        }
        ep->poll();
        (void)engine.released();
    }
    void announce(std::uint16_t source, const std::string& text, std::size_t first,
                  std::uint32_t id = 5) {
        hear(source, kTagAnnouncement, announcement(kTag, text.size(), id, text.substr(0, first)));
    }
    void ask(std::uint16_t source, std::uint32_t id, std::uint64_t up_to) {
        Ask word{};
        word.id = id;
        word.up_to = up_to;
        hear(source, kTagAsk, std::string(reinterpret_cast<const char*>(&word), sizeof word));
    }
    void hold(std::uint16_t source, std::uint32_t value) {
        Hold word{};
        word.hold = value;
        hear(source, kTagHold, std::string(reinterpret_cast<const char*>(&word), sizeof word));
    }
    // --- what the endpoint says
    template <typename Word>
    Word said(std::uint16_t to, std::uint64_t tag) {
        Word word{};
        const auto record = engine.take_any();
        EXPECT_TRUE(record.has_value());
        if (!record.has_value()) return word;
        EXPECT_EQ(record->stream, to);
        EXPECT_EQ(record->tag, tag);
        EXPECT_EQ(record->inline_length, sizeof word);
        std::memcpy(&word, record->body.inline_octets, sizeof word);
        return word;
    }
    /// The payload of the next record, which is answered.
    std::string taken(std::uint64_t& tag) {
        const auto record = engine.take_any();
        EXPECT_TRUE(record.has_value());
        if (!record.has_value()) return {};
        tag = record->tag;
        if ((record->flags & abi::kSubmitInline) != 0)
            return {reinterpret_cast<const char*>(record->body.inline_octets),
                    record->inline_length};
        const abi::Block& block = record->body.block;
        std::string text(
            reinterpret_cast<const char*>(engine.region.tx(block.offset, block.length)),
            block.length);
        engine.send_done(record->cookie);
        ep->poll();
        return text;
    }
    /// The announcement that the endpoint sends, and its first part.
    Announcement announced(std::string& first) {
        std::uint64_t tag = 0;
        const std::string text = taken(tag);
        EXPECT_EQ(tag, kTagAnnouncement);
        Announcement head{};
        EXPECT_GE(text.size(), sizeof head);
        if (text.size() < sizeof head) return head;
        std::memcpy(&head, text.data(), sizeof head);
        first = text.substr(sizeof head);
        EXPECT_EQ(head.first, first.size());
        return head;
    }
    int receive(std::uint16_t from, std::string& into, ulc_request& request) {
        return ulc_receive(ep, from, kTag, kExact, into.data(), into.size(), &request);
    }
    [[nodiscard]] bool silent() { return !engine.take_any().has_value(); }

    std::uint32_t next_block = 0;
};

}  // namespace ulc::client
