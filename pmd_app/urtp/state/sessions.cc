// SPDX-License-Identifier: BSD-3-Clause
// Peers, sessions and groups, without their streams; the queue of those that speak.
#include "urtp/sessions.h"

#include "urtp/control_queue.h"
#include "urtp/state/values.h"

namespace ulc::urtp {

void Sessions::fields(state::Archive& archive) {
    // The roster gives their number; what else it has is made by its owner (transport.cc).
    archive.same_length(peers_);
    archive.same_length(ends_);
}

void Sessions::news_fields(state::Archive& archive) {
    list_fields(archive, news_, *this);
    each([&](const Session& session) {
        archive.require(news_.holds(session) == (session.gone_untold || session.lost > 0),
                        "a peer with news is not listed as such");
    });
}

void Session::fields(state::Archive& archive) {
    ULC_STATE(
        archive, Session, 3,
        (gone, gone_untold, gone_as, unanswered, spoke, lost, counts, unanswered_since, rtt, reply,
         expected_since, expect_at, expect_wait),
        (rank, local, starved, reserved_used, in_doubt, expecting, in_slot, held_untold, blocked,
         held, unicast, unacked_group, tx, ready_head, ready_tail, reserved, reserved_octets,
         ask_by, expect_timer, ready_link, control_link, starved_link, news_link, awaited_link));
    ULC_STATE_BIT(archive, starved);
    ULC_STATE_BIT(archive, in_doubt);
    ULC_STATE_BIT(archive, expecting);
    ULC_STATE_BIT(archive, in_slot);
    ULC_STATE_BIT(archive, held_untold);
    // The order in which its streams speak.
    for (RxStream* rx = &unicast; rx->sibling != nullptr; rx = rx->sibling) {
        StreamId id = rx->sibling->id;
        archive.values(id);
        if (archive.exporting()) continue;
        RxStream* before = rx;
        while (before->sibling != nullptr && before->sibling->id != id)
            before = before->sibling;
        RxStream* found = before->sibling;
        if (!archive.require(found != nullptr, "a session has no such stream")) return;
        before->sibling = found->sibling;
        found->sibling = rx->sibling;
        rx->sibling = found;
    }
    const auto stream = [&](RxStream*& named, bool group) {
        bool set = named != nullptr;
        StreamId id = set ? named->id : 0;
        archive.values(set, id);
        if (archive.exporting()) return;
        named = set ? find_stream(*this, id) : nullptr;
        const bool fits = !set || (named != nullptr && (!group || named->group != nullptr));
        if (!archive.require(fits, "a session has no such stream")) named = nullptr;
    };
    stream(unacked_group, true);
    stream(ask_by, false);
}

void Group::fields(state::Archive& archive) {
    ULC_STATE(archive, Group, 1, (address),
              (handle, ranks, index_of, own, ack_modulus, window, tx, holders, rx, rules, counted,
               control_link));
    rules->fields(archive);
}

void ControlQueue::fields(state::Archive& archive, const Sessions& named) {
    ULC_STATE(archive, ControlQueue, 1, (run_, ticket_, sent_at_),
              (context_, sessions_, probes_, groups_));
    archive.require(run_ <= kRunMax, "too many control frames in a row");
    list_fields(archive, sessions_, named);
    list_fields(archive, probes_, named);
    list_fields(archive, groups_, named);
    for (const Session* s = sessions_.front(); s != nullptr; s = sessions_.next(*s))
        archive.require(!s->gone, "a peer that is gone wants to speak");
}

}  // namespace ulc::urtp
