// SPDX-License-Identifier: BSD-3-Clause
// The state of a transport (docs/design/UPGRADE.md). First the names of groups, sessions and
// streams, which an import makes; then the fields of each part; then the timers, as they lie in
// their heap.
//
//   Context → peers → groups → sessions → streams of groups → Sender → Receiver → queue → timers
#include "urtp/transport.h"

#include "urtp/state/values.h"

namespace ulc::urtp {

namespace {

constexpr std::size_t kMembersMax = 4096;

}  // namespace

/// The world group is there already.
void Transport::group_names(state::Archive& archive) {
    const std::size_t own = sessions_.groups().size();
    const std::size_t count = archive.count(own, Sessions::kGroupsMax, "too many groups");
    const std::size_t first = sessions_.for_links() ? 0 : 1;
    archive.require(sessions_.for_links() ? count == 0 : count > 0, "the world group is missing");
    for (std::size_t i = first; archive.ok() && i < count; ++i) {
        GroupHandle handle = 0;
        std::vector<Rank> ranks;
        if (archive.exporting()) {
            handle = sessions_.groups()[i]->handle;
            ranks = sessions_.groups()[i]->ranks;
        }
        archive.values(handle);
        archive.sequence(ranks, kMembersMax, "a group has too many members");
        if (archive.importing() && archive.ok())
            archive.require(add_group(handle, ranks) == Err::kOk, "a group cannot be made");
    }
}

void Transport::session_names(state::Archive& archive) {
    for (std::size_t i = 0; archive.ok() && i < sessions_.size(); ++i) {
        const auto rank = static_cast<Rank>(i);
        Session* session = sessions_.find(rank);
        bool made = session != nullptr;
        bool sends = made && session->tx != nullptr;
        archive.values(made, sends);
        if (archive.exporting() || !made) continue;
        const bool may = rank != context_.config.rank && !sessions_.is_vacant(rank);
        if (!archive.require(may && session == nullptr, "a session has no peer")) return;
        session = open_session(rank);
        if (sends) sender_.begin(*session);
    }
}

void Transport::group_streams(state::Archive& archive, Group& group) {
    bool sends = group.tx != nullptr;
    archive.values(sends);
    if (archive.importing() && sends) sender_.begin(group);
    const std::size_t count =
        archive.count(group.rx.size(), group.ranks.size(), "a group has too many streams");
    for (std::size_t i = 0; archive.ok() && i < count; ++i) {
        Rank rank = archive.exporting() ? group.rx[i]->session->rank : Rank{0};
        archive.values(rank);
        if (archive.exporting()) continue;
        Session* session = rank < sessions_.size() ? sessions_.find(rank) : nullptr;
        const bool fits = session != nullptr && Sessions::heard(group, *session) == nullptr &&
                          receiver_.group_stream(group, *session) != nullptr;
        archive.require(fits, "a stream of a group has no source");
    }
}

Timer* Transport::timer_named(TimerOwner kind, Rank rank, StreamId stream) noexcept {
    Session* session = rank < sessions_.size() ? sessions_.find(rank) : nullptr;
    switch (kind) {
        case TimerOwner::kReceive: {
            RxStream* rx = session != nullptr ? find_stream(*session, stream) : nullptr;
            return rx != nullptr ? &rx->timer : nullptr;
        }
        case TimerOwner::kSend: {
            TxStream* tx = find_named(sessions_, stream, static_cast<const TxStream*>(nullptr));
            return tx != nullptr ? &tx->timer : nullptr;
        }
        case TimerOwner::kSession:
            return session != nullptr ? &session->expect_timer : nullptr;
        case TimerOwner::kGroup:
            break;
    }
    const Group* group = sessions_.find_group(stream);
    return group != nullptr ? group->rules->timer() : nullptr;
}

void Transport::timer_fields(state::Archive& archive) {
    const auto armed = context_.timers.armed();
    const std::size_t count = archive.count(armed.size(), UINT32_MAX, "too many timers");
    for (std::size_t i = 0; archive.ok() && i < count; ++i) {
        TimerOwner kind{};
        Rank rank = 0;
        StreamId stream = 0;
        Nanos due = 0;
        if (archive.exporting()) {
            kind = armed[i]->kind;
            due = armed[i]->due;
            const void* owner = armed[i]->owner;
            if (kind == TimerOwner::kReceive) {
                const auto* rx = static_cast<const RxStream*>(owner);
                rank = rx->session->rank;
                stream = rx->id;
            } else if (kind == TimerOwner::kSend) {
                stream = static_cast<const TxStream*>(owner)->id;
            } else if (kind == TimerOwner::kSession) {
                rank = static_cast<const Session*>(owner)->rank;
            } else {
                stream = static_cast<const Group*>(owner)->handle;
            }
        }
        archive.values(kind, rank, stream, due);
        if (archive.exporting()) continue;
        Timer* timer = timer_named(kind, rank, stream);
        archive.require(timer != nullptr && context_.timers.restore(*timer, due),
                        "a timer has no owner, is twice, or is out of order");
    }
}

void Transport::fields(state::Archive& archive) {
    ULC_STATE(archive, Transport, 1, (context_, sessions_), (control_, receiver_, sender_));
    if (archive.importing()) sessions_.each([](const Session&) { ULC_CHECK(!"a new transport"); });
    group_names(archive);
    session_names(archive);
    for (const auto& group : sessions_.groups()) {
        if (!archive.ok()) return;
        group_streams(archive, *group);
        group->fields(archive);
    }
    if (!archive.ok()) return;
    sender_.fields(archive);
    if (!archive.ok()) return;
    receiver_.fields(archive);
    if (!archive.ok()) return;
    control_.fields(archive, sessions_);
    sessions_.news_fields(archive);
    timer_fields(archive);
}

}  // namespace ulc::urtp
