// SPDX-License-Identifier: BSD-3-Clause
// The four parts of a transport, put together by hand, so that a test can speak to one of them
// alone.
#pragma once

#include "tests/unit/urtp/world.h"
#include "urtp/transport.h"

namespace ulc::urtp::test {

struct Parts {
    explicit Parts(std::uint16_t size, Params params = {},
                   std::string_view profile = kDefaultProfile)
        : context(config_of(0, params, 0, profile), pool.table(), counters),
          sessions(context, roster_of(size)),
          control(context),
          receiver(context, sessions, control),
          sender(context, sessions, control, receiver) {}

    Session& open(Rank rank) {
        Session& session = sessions.make(rank);
        receiver.begin(session, sessions.ends_of(rank));
        return session;
    }
    Group& open_group(GroupHandle handle, std::vector<Rank> ranks) {
        Group* group = nullptr;
        EXPECT_EQ(sessions.add_group(handle, ranks, group), Err::kOk);
        group->rules = std::make_unique<GroupRules>();
        return *group;
    }
    Admission commit(TxStream& tx, const std::string& payload) {
        const PacketMeta meta{.stream = tx.id, .message_length = payload.size()};
        const Admission admission = sender.may_send(tx, 0, false, now, {});
        if (admission != Admission::kYes) return admission;
        const PacketPlan plan = sender.plan(meta, now);
        Segment* segment = pool.table().get();
        std::memcpy(segment->frame + plan.payload_offset, payload.data(), payload.size());
        sender.commit(meta, plan, segment, static_cast<std::uint32_t>(payload.size()), now);
        return admission;
    }
    /// Takes the frame off the wire; false: there was none.
    bool drop(Segment* segment) {
        if (segment != nullptr) pool.table().drop(segment);
        return segment != nullptr;
    }
    /// Makes a DATA frame from `rank` and gives it to the receiver. Returns whether it was kept.
    bool arrive(Session& session, std::uint32_t seq, const std::string& payload = "x") {
        Segment* segment = pool.table().get();
        wire::FrameView view;
        view.type = wire::FrameType::kData;
        view.source = mac_of(session.rank);
        view.destination = mac_of(0);
        view.rank = session.rank;
        view.handle = handle_of(0);
        view.seq = Seq{seq};
        view.flags = wire::kFlagFirst | wire::kFlagLast;
        std::memcpy(segment->frame, payload.data(), payload.size());
        view.body = segment->frame;
        view.length = static_cast<std::uint16_t>(payload.size());
        const bool kept = receiver.on_packet(view, segment, session.unicast, now);
        if (!kept) pool.table().drop(segment);
        check();
        return kept;
    }
    void check() const {
        sessions.check_invariants();
        control.check_invariants();
        receiver.check_invariants();
        sender.check_invariants();
    }

    CountingPool pool;
    Counters counters;
    Nanos now = kMillisecond;
    Context context;
    Sessions sessions;
    ControlQueue control;
    Receiver receiver;
    Sender sender;
};

}  // namespace ulc::urtp::test
