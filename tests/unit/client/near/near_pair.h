// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints of one node whose rings are memory of the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"
#include "client/near/near_memory.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {

inline constexpr std::uint64_t kTag = 9;

/// Memory that this process keeps, in place of the kernel's.
inline std::map<std::uint32_t, std::byte*> made;
inline unsigned named = 0;
inline bool refuses = false;
inline bool sees = true;
inline std::uint32_t mapped_of = 0;  ///< the process of which a ring was mapped last

inline const NearMemory kOwnMemory = {
    [](const abi::NearRows&) noexcept { return sees; },
    [](NearOffer& offer) noexcept -> std::byte* {
        auto* memory = static_cast<std::byte*>(std::aligned_alloc(abi::kPageOctets, kNearBytes));
        std::memset(memory, 0, kNearBytes);
        offer = {};
        offer.descriptor = ++named;
        made[named] = memory;
        return memory;
    },
    [](const abi::ProcessRow& owner, const NearOffer& offer) noexcept -> std::byte* {
        mapped_of = owner.pid;
        return refuses || !made.contains(offer.descriptor) ? nullptr : made[offer.descriptor];
    },
    [](const NearOffer&) noexcept {},
    [](std::byte*) noexcept {},
};

struct ClientNear : testing::Test {
    ClientNear() {
        refuses = false;
        sees = true;
        mapped_of = 0;
        for (ScriptedEngine* one : {&first, &second})
            EXPECT_EQ(one->endpoint->messages().prepare_near(kOwnMemory), ULC_OK);
        first.form(0, 3);
        second.form(1, 3);
        EXPECT_EQ(ulc_near_peer(a, 1), ULC_OK);
        EXPECT_EQ(ulc_near_peer(b, 0), ULC_OK);
        answer(first, 1);
        answer(second, 0);
    }
    ~ClientNear() override {
        first.endpoint.reset();
        second.endpoint.reset();
        for (const auto& [number, memory] : made)
            std::free(memory);
        made.clear();
    }

    /// The engine answers the endpoint's question about a peer: it is in process 100 + peer.
    static void answer(ScriptedEngine& engine, std::uint16_t peer, bool near = true) {
        const auto asked = engine.take(abi::SubmitKind::kNear);
        ASSERT_TRUE(asked.has_value());
        EXPECT_EQ(asked->stream, peer);
        abi::CompletionRecord& record = engine.claim(abi::CompletionKind::kNear);
        record.source = peer;
        if (near) {
            const abi::NearRows rows{{7, 1, 5}, {100U + peer, 1, 6}};
            record.flags = abi::kCompleteInline;
            record.inline_length = sizeof rows;
            std::memcpy(record.body.inline_octets, &rows, sizeof rows);
        } else {
            record.status = ULC_ERR_UNSUPPORTED;
        }
        engine.completions.publish();
        EXPECT_GT(engine.endpoint->poll(), 0);
    }
    /// Carries the next record from the first endpoint to the second. False: there is none.
    bool carry() { return carry(first, second, 0); }
    /// Takes back the blocks that the second endpoint has released.
    void take_back() {
        for (const std::uint32_t block : second.released())
            blocks.push_back(block);
    }
    bool carry_back() { return carry(second, first, 1); }
    bool carry(ScriptedEngine& from, ScriptedEngine& to, std::uint16_t source) {
        const auto record = from.take_any();
        if (!record.has_value()) return false;
        EXPECT_EQ(record->kind, abi::SubmitKind::kSend);
        if ((record->flags & abi::kSubmitInline) != 0) {
            to.deliver_inline(
                source, record->tag,
                {reinterpret_cast<const char*>(record->body.inline_octets), record->inline_length});
            return true;
        }
        const abi::Block& block = record->body.block;
        const std::string chunk(
            reinterpret_cast<const char*>(from.region.tx(block.offset, block.length)),
            block.length);
        EXPECT_FALSE(blocks.empty());
        to.deliver_block(source, record->tag, blocks.front(), chunk, block.message_offset,
                         block.message_length);
        blocks.pop_front();
        from.send_done(record->cookie);
        return true;
    }
    /// The first endpoint's messages go through a ring from now on, but for the first.
    void connect() {
        send("hello");
        ASSERT_TRUE(carry());
        second.endpoint->poll();
        EXPECT_EQ(next(), "hello");
        ASSERT_TRUE(carry_back());
        first.endpoint->poll();
        ASSERT_FALSE(made.empty());
    }
    void send(const std::string& text) {
        EXPECT_EQ(ulc_send(a, 1, kTag, text.data(), text.size(), nullptr), ULC_OK);
    }
    /// The first message that the second endpoint has; "none": it has none.
    std::string next(std::uint64_t tag = kTag) {
        std::string text(60'000, '.');
        ulc_status status;
        if (ulc_probe(b, 0, tag, UINT64_MAX, &status) != ULC_OK) return "none";
        ulc_request request;
        EXPECT_EQ(ulc_receive(b, 0, tag, UINT64_MAX, text.data(), text.size(), &request), ULC_OK);
        // The rest of a long message may be on its way.
        while (ulc_test(b, &request, &status) == ULC_ERR_AGAIN && carry()) {
            second.endpoint->poll();
            first.endpoint->poll();
            take_back();
        }
        EXPECT_EQ(status.error, ULC_OK);
        EXPECT_EQ(status.source, 0);
        EXPECT_EQ(status.group, 0U);
        return text.substr(0, status.length);
    }
    [[nodiscard]] bool silent() { return !first.take_any().has_value(); }
    /// The ring that the second endpoint reads.
    [[nodiscard]] std::byte* ring() const { return made.begin()->second; }
    [[nodiscard]] abi::SubmissionRecord& slot(std::uint32_t n) const {
        return reinterpret_cast<abi::SubmissionRecord*>(ring() + kNearSlotsAt)[n];
    }

    ScriptedEngine first{kSmall};
    ScriptedEngine second{kSmall};
    ulc_endpoint* a = first.endpoint.get();
    ulc_endpoint* b = second.endpoint.get();
    std::deque<std::uint32_t> blocks{0, 8192, 16384, 24576, 32768, 40960, 49152, 57344};
};

}  // namespace ulc::client
