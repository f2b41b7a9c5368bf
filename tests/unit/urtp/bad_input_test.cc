// SPDX-License-Identifier: BSD-3-Clause
// Injects one frame of each kind of bad input at a time into a session with traffic. Each is
// counted under its reason and dropped, and the session continues unaffected.
// tests/unit/wire/parse_test.cc has every field; hostile_test.cc combines all of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/urtp/world.h"
#include "urtp/policy.h"
#include "wire/build.h"

namespace ulc::urtp::test {
namespace {

constexpr std::uint32_t kFirst = 0xfffffff0U;  // numbers wrap soon
constexpr std::uint32_t kSent = 40;            // by 1 to 0 before the bad frame
constexpr std::uint32_t kWindow = 64;

/// A frame from 1 to 0 in which a test spoils a part.
struct Spoiled {
    std::vector<std::byte> octets;
    [[nodiscard]] wire::Header& header() {
        return *reinterpret_cast<wire::Header*>(octets.data() + sizeof(wire::EthernetHeader));
    }
};

wire::FrameHead head_from_1(wire::FrameType type) {
    wire::FrameHead head;
    head.destination = mac_of(0);
    head.source = mac_of(1);
    head.type = type;
    head.handle = handle_of(0);
    head.rank = 1;
    return head;
}

Spoiled data(Seq seq, std::span<const wire::AfterEntry> after = {}) {
    Spoiled frame{std::vector<std::byte>(200)};
    wire::FrameHead head = head_from_1(wire::FrameType::kData);
    head.seq = seq;
    head.flags = wire::kFlagFirst | wire::kFlagLast;
    wire::Extensions extensions;
    if (!after.empty()) head.flags |= wire::kFlagAfter;
    for (const wire::AfterEntry& entry : after)
        extensions.after[extensions.after_count++] = entry;
    frame.octets.resize(wire::build_data(frame.octets.data(), head, extensions, 64));
    return frame;
}

Spoiled ack(StreamId stream, Seq next) {
    Spoiled frame{std::vector<std::byte>(200)};
    const wire::AckEntry entries[] = {{stream, next.value, 64, 0}};
    frame.octets.resize(
        wire::build_ack(frame.octets.data(), head_from_1(wire::FrameType::kAck), entries));
    return frame;
}

Spoiled request(StreamId stream, Seq next, std::span<const std::byte> bitmap) {
    Spoiled frame{std::vector<std::byte>(400)};
    frame.octets.resize(wire::build_req(frame.octets.data(), head_from_1(wire::FrameType::kReq),
                                        {stream, next.value, 64, 0}, bitmap));
    return frame;
}

Spoiled probe(StreamId stream, Seq first_unsent) {
    Spoiled frame{std::vector<std::byte>(200)};
    wire::FrameHead head = head_from_1(wire::FrameType::kProbe);
    head.seq = first_unsent;
    frame.octets.resize(wire::build_probe(frame.octets.data(), head, stream));
    return frame;
}

class Session : public testing::TestWithParam<std::string> {
protected:
    Session() : w(3, params(), {}, 1, kFirst, GetParam()) {
        exchange(kSent);
        w.run_for(kSecond);
    }
    static Params params() {
        Params params;
        params.window = kWindow;
        return params;
    }
    /// Sends `n` packets each way, all of which arrive.
    void exchange(std::uint32_t n) {
        std::uint32_t sent[2] = {};
        std::uint32_t got[2] = {};
        for (int i = 0; i < 2000 && (got[0] < n || got[1] < n); ++i) {
            for (const Rank from : {Rank{0}, Rank{1}}) {
                const Rank to = 1 - from;
                if (sent[from] < n &&
                    w.send(from, to, std::to_string(sent[from])) == Admission::kYes)
                    ++sent[from];
                for (const std::string& text : w.receive(to, from))
                    ASSERT_EQ(text, std::to_string(got[from]++));
            }
            (void)w.step(w.now + 100 * kMicrosecond);
        }
        ASSERT_EQ(got[0], n);
        ASSERT_EQ(got[1], n);
    }
    /// Injects a frame as the engine does: parses it, finds the endpoint, passes it on.
    void inject(const Spoiled& frame) {
        Segment* segment = w.pool.table().get();
        std::memcpy(segment->frame, frame.octets.data(), frame.octets.size());
        segment->length = static_cast<std::uint32_t>(frame.octets.size());
        wire::FrameView view;
        Counter reason =
            wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view);
        if (reason == Counter::kCount && view.handle != handle_of(0))
            reason = Counter::drop_unknown_handle;
        if (reason != Counter::kCount) {
            w.counters[0]->add(reason);
            w.pool.table().drop(segment);
            return;
        }
        w.members[0]->on_frame(view, segment, w.now);
    }
    /// Expects that the frame is counted once, that nothing is kept, and that the session
    /// continues.
    void expect_harmless(const Spoiled& frame, Counter reason) {
        const std::uint64_t before = w.count(0, reason);
        const std::uint32_t held = w.pool.live();
        inject(frame);
        EXPECT_EQ(w.count(0, reason), before + 1);
        EXPECT_EQ(w.pool.live(), held);
        w.run_for(kSecond);
        exchange(2 * kWindow);
        w.run_for(kSecond);
        EXPECT_TRUE(w.drained());
        Event event;
        EXPECT_FALSE(w.members[0]->poll_event(event));
    }
    static constexpr Seq kNext{kFirst + kSent};
    World w;
};

std::string name_of(const testing::TestParamInfo<std::string>& parameter) {
    std::string name = parameter.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}
INSTANTIATE_TEST_SUITE_P(Profiles, Session, testing::Values("urtp", "gbn", "urtp-1997"), name_of);

TEST_P(Session, a_version_from_the_future) {
    Spoiled frame = data(kNext);
    frame.header().version_type = static_cast<std::uint8_t>((wire::kVersion + 1) << 4U | 1U);
    expect_harmless(frame, Counter::drop_version);
}

TEST_P(Session, a_type_from_the_future) {
    Spoiled frame = data(kNext);
    frame.header().version_type = static_cast<std::uint8_t>(wire::kVersion << 4U | 15U);
    expect_harmless(frame, Counter::drop_type);
}

// F-28
TEST_P(Session, a_truncated_frame) {
    Spoiled frame = data(kNext);
    frame.octets.resize(frame.octets.size() - 30);
    expect_harmless(frame, Counter::drop_short);
}

TEST_P(Session, a_length_beyond_the_frame) {
    Spoiled frame = data(kNext);
    frame.header().length = std::uint16_t{65};
    expect_harmless(frame, Counter::drop_short);
}

// F-28
TEST_P(Session, an_acknowledgement_of_what_was_never_sent) {
    expect_harmless(ack(1, kNext + 1), Counter::drop_ack_range);
    expect_harmless(ack(1, kNext + 0x40000000U), Counter::drop_ack_range);
}

// S-20
TEST_P(Session, an_acknowledgement_from_long_before_the_window) {
    const std::uint64_t frames = w.frames;
    inject(ack(1, Seq{kFirst - 1000}));
    w.run_for(kSecond);
    EXPECT_EQ(w.frames, frames) << "old news";
    expect_harmless(ack(1, Seq{kFirst - 1000}), Counter::ack_received);
}

// F-28
TEST_P(Session, an_acknowledgement_of_a_stream_that_is_not_there) {
    expect_harmless(ack(kGroupBit | 77, kNext), Counter::drop_ack_stream);
    expect_harmless(ack(2, kNext), Counter::drop_ack_stream);
}

// S-29
TEST_P(Session, a_request_beyond_what_was_sent) {
    const std::byte everything[] = {std::byte{0}, std::byte{0}};
    const std::uint64_t before = w.count(0, Counter::req_unsent);
    const std::uint64_t frames = w.frames;
    inject(request(1, kNext, everything));  // `next` is right, the numbers have not been sent
    EXPECT_EQ(w.count(0, Counter::req_unsent), before + 16);
    w.run_for(kSecond);
    EXPECT_EQ(w.frames, frames);
    expect_harmless(request(1, kNext + 1, everything), Counter::drop_ack_range);
}

// S-29
TEST_P(Session, a_request_for_what_is_committed_and_not_on_the_wire_yet) {
    const std::byte everything[] = {std::byte{0}, std::byte{0}};
    const std::uint64_t before = w.count(0, Counter::req_unsent);
    ASSERT_EQ(w.send(0, 1, "a"), Admission::kYes);
    ASSERT_EQ(w.send(0, 1, "b"), Admission::kYes);
    inject(request(1, kNext, everything));
    EXPECT_EQ(w.count(0, Counter::req_unsent), before + 16) << "the two among them";
    w.run_for(kSecond);
    EXPECT_EQ(w.receive(1, 0), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(w.drained());
}

TEST_P(Session, a_request_for_what_was_acknowledged) {
    const std::byte everything[] = {std::byte{0}, std::byte{0}};
    const std::uint64_t frames = w.frames;
    inject(request(1, Seq{kFirst + 2}, everything));
    w.run_for(kSecond);
    EXPECT_EQ(w.frames, frames);
    expect_harmless(request(1, Seq{kFirst + 2}, everything), Counter::req_received);
}

// H-16, S-7
TEST_P(Session, a_number_beyond_the_window) {
    expect_harmless(data(kNext + kWindow), Counter::drop_beyond_window);
    expect_harmless(data(kNext + 0x7fffffffU), Counter::drop_beyond_window);
}

// H-16, S-6
TEST_P(Session, a_number_of_another_life_under_the_handle_of_this_one) {
    // Looks like an old frame whose endpoint had the same handle: behind the window, so a
    // duplicate.
    expect_harmless(data(Seq{kFirst - 5}), Counter::drop_duplicate);
}

// H-3
TEST_P(Session, a_frame_of_another_life_of_the_endpoint) {
    Spoiled frame = data(kNext);
    frame.header().handle = handle_of(0) + (1U << 12U);
    expect_harmless(frame, Counter::drop_unknown_handle);
}

// H-4
TEST_P(Session, a_frame_of_somebody_else_in_the_peers_name) {
    Spoiled frame = data(kNext);
    reinterpret_cast<wire::EthernetHeader*>(frame.octets.data())->source = mac_of(2);
    expect_harmless(frame, Counter::drop_wrong_source);
}

// O-6
TEST_P(Session, an_entry_that_can_never_be_met) {
    const wire::AfterEntry far[] = {{kWorld, kFirst + 5000}};
    expect_harmless(data(kNext, far), Counter::drop_after_unmeetable);
    const wire::AfterEntry itself[] = {{0, (kNext + 2 * 2 * kWindow).value}};
    inject(data(Seq{kNext.value + 2 * kWindow}, itself));
    EXPECT_EQ(w.count(0, Counter::drop_after_unmeetable), 2U);
}

TEST_P(Session, a_question_about_numbers_beyond_the_window) {
    expect_harmless(probe(0, kNext + kWindow + 1), Counter::drop_ack_range);
    expect_harmless(probe(kGroupBit | 77, kNext), Counter::drop_ack_stream);
}

// O-5, S-7
TEST_P(Session, an_entry_that_is_not_met_holds_no_more_than_the_window) {
    // A source promises a multicast and never sends it. Its packets wait, within the window, and
    // other sources are not affected.
    const wire::AfterEntry promised[] = {{kWorld, kFirst}};
    const std::uint32_t before = w.pool.live();
    for (std::uint32_t i = 0; i < 10 * kWindow; ++i)
        inject(data(kNext + i, promised));
    EXPECT_LE(w.pool.live(), before + kWindow);
    ASSERT_EQ(w.send(2, 0, "x"), Admission::kYes);
    w.run_for(10 * kMillisecond);
    EXPECT_EQ(w.receive(0, 2), std::vector<std::string>{"x"});
    EXPECT_TRUE(w.receive(0, 1).empty());
}

}  // namespace
}  // namespace ulc::urtp::test
