// SPDX-License-Identifier: BSD-3-Clause
// Payloads in pieces, sent and received, and sends that complete when they are delivered. Against a
// scripted engine.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

using abi::SubmitKind;

constexpr std::uint64_t kTag = 9;

/// Memory in pieces of the lengths given, and the list of them.
struct Scattered {
    explicit Scattered(const std::vector<std::size_t>& lengths) {
        for (const std::size_t length : lengths) {
            parts.emplace_back(length, '-');
            list.push_back({parts.back().data(), length});
        }
        for (std::size_t n = 0; n < lengths.size(); ++n)  // the vector has moved short strings
            list[n].base = parts[n].data();
    }
    void fill(const std::string& text) {
        std::size_t at = 0;
        for (std::string& part : parts) {
            part.assign(text, at, part.size());
            at += part.size();
        }
        for (std::size_t n = 0; n < parts.size(); ++n)
            list[n].base = parts[n].data();
    }
    [[nodiscard]] std::string joined() const {
        std::string text;
        for (const std::string& part : parts)
            text += part;
        return text;
    }
    [[nodiscard]] unsigned count() const { return static_cast<unsigned>(list.size()); }

    std::vector<std::string> parts;
    std::vector<ulc_piece> list;
};

struct ClientPieces : ClientTest {
    ClientPieces() { engine.form(0, 3); }
};

TEST_F(ClientPieces, short_pieces_travel_in_the_record) {
    Scattered from({3, 0, 5, 12});
    from.fill(pattern(20));
    ulc_request request;
    ASSERT_EQ(ulc_sendv(ep, 1, kTag, from.list.data(), from.count(), 0, &request), ULC_OK);
    EXPECT_EQ(test(request), ULC_OK);
    const auto record = engine.take(SubmitKind::kSend);
    ASSERT_TRUE(record.has_value());
    ASSERT_EQ(record->inline_length, 20U);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(record->body.inline_octets), 20),
              pattern(20));
    ASSERT_EQ(ulc_sendv(ep, 1, kTag, nullptr, 0, 0, nullptr), ULC_OK);
    EXPECT_EQ(engine.take(SubmitKind::kSend)->inline_length, 0U);
}

TEST_F(ClientPieces, long_pieces_are_joined_by_the_chunks) {
    for (const bool multicast : {false, true}) {
        Scattered from({1, 40'000, 7, 30'000, 0, 1, 50'000, 3});
        const std::string text = pattern(120'012);
        from.fill(text);
        ulc_request request;
        ASSERT_EQ(multicast ? ulc_multicastv(ep, kWorld, ULC_SUBSET_ALL, kTag, from.list.data(),
                                             from.count(), 0, &request)
                            : ulc_sendv(ep, 2, kTag, from.list.data(), from.count(), 0, &request),
                  ULC_OK);
        unsigned chunks = 0;
        EXPECT_EQ(drain_message(&request, &chunks), text);
        EXPECT_GT(chunks, 1U);
        EXPECT_EQ(test(request), ULC_OK);
    }
}

TEST_F(ClientPieces, without_a_request_the_payload_is_copied_at_once) {
    Scattered from({20'000, 30'000});
    const std::string text = pattern(50'000);
    from.fill(text);
    ASSERT_EQ(ulc_sendv(ep, 2, kTag, from.list.data(), from.count(), 0, nullptr), ULC_OK);
    from.fill(std::string(50'000, 'x'));
    from.list.clear();
    EXPECT_EQ(drain_message(nullptr), text);
}

TEST_F(ClientPieces, bad_lists_and_flags_are_refused) {
    Scattered from(std::vector<std::size_t>(9, 1));
    ulc_request request;
    EXPECT_EQ(ulc_sendv(ep, 1, kTag, from.list.data(), 9, 0, &request), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_receivev(ep, 1, kTag, UINT64_MAX, from.list.data(), 9, &request),
              ULC_ERR_INVALID);
    EXPECT_EQ(ulc_sendv(ep, 1, kTag, nullptr, 1, 0, &request), ULC_ERR_INVALID);
    ulc_piece bad[2] = {{nullptr, 1}, {nullptr, 0}};
    EXPECT_EQ(ulc_sendv(ep, 1, kTag, bad, 2, 0, &request), ULC_ERR_INVALID);
    char octet = 0;
    bad[0] = {&octet, SIZE_MAX / 2};
    bad[1] = {&octet, SIZE_MAX / 2 + 1};
    EXPECT_EQ(ulc_sendv(ep, 1, kTag, bad, 2, 0, &request), ULC_ERR_INVALID) << "the sum overflows";
    EXPECT_EQ(ulc_sendv(ep, 1, kTag, from.list.data(), 1, 4, &request), ULC_ERR_INVALID);
    for (const unsigned flag : {ULC_SEND_DELIVERED, ULC_SEND_MATCHED})
        EXPECT_EQ(ulc_sendv(ep, 1, kTag, from.list.data(), 1, flag, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_multicastv(ep, ulc_world(ep), ULC_SUBSET_ALL, kTag, from.list.data(), 1,
                             ULC_SEND_MATCHED, &request),
              ULC_ERR_INVALID);
    EXPECT_FALSE(engine.take_any().has_value()) << "nothing was submitted";
}

TEST_F(ClientPieces, a_receive_fills_its_pieces_in_order) {
    const std::string text = pattern(3000);
    for (const bool posted : {true, false}) {
        Scattered into({1, 1022, 0, 500, 1477, 100});
        ulc_request request;
        ulc_status status;
        const auto receive = [&] {
            ASSERT_EQ(
                ulc_receivev(ep, 1, kTag, UINT64_MAX, into.list.data(), into.count(), &request),
                ULC_OK);
        };
        if (posted) receive();
        engine.deliver_block(1, kTag, 0, text.substr(0, 1024), 0, 3000);
        ep->poll();
        if (!posted) receive();
        engine.deliver_block(1, kTag, 1024, text.substr(1024), 1024, 3000);
        ep->poll();
        ASSERT_EQ(test(request, &status), ULC_OK);
        EXPECT_EQ(status.error, ULC_OK);
        EXPECT_EQ(status.length, 3000U);
        EXPECT_EQ(into.joined(), text + std::string(100, '-'));
    }
}

TEST_F(ClientPieces, a_message_longer_than_all_pieces_is_cut) {
    Scattered into({5, 10});
    ulc_request request;
    ulc_status status;
    ASSERT_EQ(ulc_receivev(ep, 1, kTag, UINT64_MAX, into.list.data(), 2, &request), ULC_OK);
    engine.deliver_inline(1, kTag, pattern(20));
    ep->poll();
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(into.joined(), pattern(15));
}

TEST_F(ClientPieces, a_message_to_oneself_goes_from_pieces_to_pieces) {
    const std::string text = pattern(3000);
    for (const bool posted : {true, false}) {
        Scattered from({1, 2000, 999});
        Scattered into({1500, 1400, 100});
        from.fill(text);
        ulc_request receive;
        ulc_request send;
        const auto start = [&] {
            ASSERT_EQ(ulc_receivev(ep, 0, kTag, UINT64_MAX, into.list.data(), 3, &receive), ULC_OK);
        };
        if (posted) start();
        ASSERT_EQ(ulc_sendv(ep, 0, kTag, from.list.data(), 3, ULC_SEND_DELIVERED, &send), ULC_OK);
        if (!posted) start();
        EXPECT_EQ(test(send), ULC_OK);
        ASSERT_EQ(test(receive), ULC_OK);
        EXPECT_EQ(into.joined(), text);
    }
}

TEST_F(ClientPieces, the_engine_is_told_the_pieces_of_a_receive) {
    const abi::Placer placer = ep->placer();
    const std::string text = pattern(3000);
    Scattered into({1000, 1500, 500});
    ulc_request request;
    ASSERT_EQ(ulc_receivev(ep, 1, kTag, UINT64_MAX, into.list.data(), 3, &request), ULC_OK);
    const abi::Beginning message{.source = 1,
                                 .stream = ep->membership().rank(),
                                 .tag = kTag,
                                 .length = 3000,
                                 .taken_at_least = 0};
    const abi::Place place = placer.place(placer.context, message);
    ASSERT_TRUE(place);
    EXPECT_EQ(place.contiguous(1000, 1500), static_cast<void*>(into.parts[1].data()));
    EXPECT_EQ(place.contiguous(2499, 1), static_cast<void*>(into.parts[1].data() + 1499));
    EXPECT_EQ(place.contiguous(999, 2), nullptr);
    EXPECT_EQ(place.contiguous(2999, 2), nullptr);
    const auto* octets = reinterpret_cast<const std::byte*>(text.data());
    place.write(0, octets, 1400);
    place.write(1400, octets + 1400, 1600);
    EXPECT_EQ(into.joined(), text);
    std::string back(1600, '-');
    place.read(900, reinterpret_cast<std::byte*>(back.data()), 1600);
    EXPECT_EQ(back, text.substr(900, 1600));
}

TEST_F(ClientPieces, a_delivered_send_waits_for_the_answer_to_its_last_record) {
    for (const std::size_t length : {5U, 5'000U, 120'000U}) {
        std::string text = pattern(length);
        const ulc_piece piece{text.data(), length};
        ulc_request request;
        ASSERT_EQ(ulc_sendv(ep, 1, kTag, &piece, 1, ULC_SEND_DELIVERED, &request), ULC_OK);
        for (bool last = false; !last;) {
            const auto record = engine.take_any();
            if (!record.has_value()) {
                ASSERT_GT(ep->poll(), 0);
                continue;
            }
            last = (record->flags & abi::kSubmitLast) != 0;
            EXPECT_EQ((record->flags & abi::kSubmitNotifyAcked) != 0, last);
            if (!last) {
                engine.send_done(record->cookie);
                continue;
            }
            ep->poll();
            EXPECT_EQ(test(request), ULC_ERR_AGAIN) << length;
            engine.send_done(record->cookie, length == 5'000U ? Err::kPeerDied : Err::kOk);
        }
        ep->poll();
        ulc_status status;
        ASSERT_EQ(test(request, &status), ULC_OK) << length;
        EXPECT_EQ(status.error, length == 5'000U ? ULC_ERR_PEER_DIED : ULC_OK);
    }
}

}  // namespace
}  // namespace ulc::client
