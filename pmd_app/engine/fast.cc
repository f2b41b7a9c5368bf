// Quiet rounds, and the fast path of short messages through them (engine.h draws the round).
//
// In a quiet round nothing is due: the engine looks at its ports and at the submissions of its
// clients, and no more. A short message that comes then takes no other step than its own:
//
//   record ─ read_short ─▶ transmit_short ─▶ burst ─▶ port          (send_short, multicast_short)
//                     └──▶ pass ─────────▶ completion on this node  (pass_short)
//   port ─ parse_short ─▶ predict ─▶ take_short ─▶ completion       (deliver_short)
//
// Everything is decided before the first store. All else that comes goes through the general steps
// in the same round, as do messages that any of their rules has a say in.
#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/core.h"
#include "engine/engine.h"
#include "urtp/fast.h"

namespace ulc::engine {
namespace {

using abi::SubmissionRecord;
using abi::SubmitKind;

constexpr std::size_t kPrefetchAhead = 2;

/// The first word of a record.
struct RecordHead {
    std::uint32_t mark;
    SubmitKind kind;
    std::uint8_t flags;
    std::uint16_t inline_length;
};
static_assert(offsetof(RecordHead, kind) == offsetof(SubmissionRecord, kind) &&
              offsetof(RecordHead, flags) == offsetof(SubmissionRecord, flags) &&
              offsetof(RecordHead, inline_length) == offsetof(SubmissionRecord, inline_length));

/// Reads a record in shared memory, each word once: it is a whole message inside itself, with no
/// answer. False: it may be anything else. The payload is not read; its octets decide nothing.
bool read_short(const SubmissionRecord& record, urtp::ShortMessage& out) noexcept {
    constexpr auto word = [](const auto& first) {
        return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(&first), __ATOMIC_RELAXED);
    };
    static_assert(offsetof(SubmissionRecord, stream) == 8);
    const auto head = std::bit_cast<RecordHead>(word(record.mark));
    constexpr std::uint8_t kMay = abi::kSubmitHasTag | abi::kSubmitFirst | abi::kSubmitLast;
    if (head.kind != SubmitKind::kSend || (head.flags & ~kMay) != abi::kSubmitInline ||
        head.inline_length > abi::kInlineOctetsMax)
        return false;
    out.stream = static_cast<StreamId>(word(record.stream));
    out.octets = head.inline_length;
    out.payload = record.body.inline_octets;
    out.tag = word(record.tag);
    out.has_tag = (head.flags & abi::kSubmitHasTag) != 0;
    return true;
}

/// The message goes to an endpoint of this node. Returns that; nullptr: nothing was changed.
/// message: by value, so that send_short() keeps its own in registers.
inline Endpoint* pass_to(Core& core, Endpoint& from, urtp::Session& session,
                         const urtp::ShortMessage message, Nanos now) {
    const Mac& here = from.net->port.info.mac;
    const urtp::Peer& peer = from.member->peer(static_cast<Rank>(message.stream));
    Endpoint* to = core.find(peer.handle);
    if (to == nullptr || to->net != from.net || to->job != from.job ||
        to->state != EndpointState::kOpen || to->member == nullptr || peer.mac != here)
        return nullptr;
    const Rank rank = from.member->rank();
    if (rank >= to->member->size() || to->member->peer(rank).mac != here) return nullptr;
    abi::CompletionRecord* out = to->deliverer->claim_short(rank, message.octets, message.has_tag,
                                                            message.tag, to->completions);
    if (out == nullptr || !from.member->pass(message, session, *to->member, now)) return nullptr;
    to->deliverer->complete_short(rank, message, *out, to->completions, core.counters);
    if (!to->sends.empty()) to->work |= kWorkSend;
    if (to->member->has_tx()) to->work |= kWorkTransmit;
    core.counters.add(Counter::passed_messages);
    return to;
}

/// The endpoint that a short frame was for; nullptr: nothing was changed.
[[gnu::always_inline]] inline Endpoint* deliver_short(Core& core, Net& net, Segment& segment,
                                                      Nanos now) {
    wire::ShortFrame frame;
    if (!urtp::kFastPath || core.config.crc || segment.tail != nullptr ||
        !wire::parse_short(segment.frame, segment.length, core.config.ether_type, frame))
        return nullptr;
    LocalGroup* group = nullptr;
    Endpoint* endpoint = nullptr;
    if (frame.to_group()) {
        group = net.groups.find(frame.handle);
        if (group == nullptr || group->members.size() != 1) return nullptr;
        endpoint = group->members[0];
    } else {
        endpoint = core.find(frame.handle);
    }
    if (endpoint == nullptr || endpoint->net != &net || endpoint->state != EndpointState::kOpen ||
        endpoint->member == nullptr)
        return nullptr;
    urtp::Transport& member = *endpoint->member;
    urtp::RxStream* stream = member.predict(frame);
    if (stream == nullptr || frame.rank >= endpoint->gone.size() ||
        endpoint->gone[frame.rank] != kHere)
        return nullptr;
    abi::CompletionRecord* out = endpoint->deliverer->claim_short(
        frame.rank, frame.length, frame.has_tag(), frame.tag, endpoint->completions);
    if (out == nullptr) return nullptr;
    net.jobs.heard(endpoint->nodes[frame.rank], now);
    const StreamId name = member.take_short(frame, *stream, now);
    if (group != nullptr) ++group->frames;
    endpoint->deliverer->complete_short(
        frame.rank, {name, frame.length, frame.payload, frame.tag, frame.has_tag()}, *out,
        endpoint->completions, core.counters);
    net.port.pool.drop(&segment);
    if (member.has_tx()) endpoint->work |= kWorkTransmit;
    if (!endpoint->sends.empty()) endpoint->work |= kWorkSend;
    return endpoint;
}

/// Settles an endpoint that short messages changed: its timer, and a client that sleeps.
inline void settle_short(Core& core, Endpoint& endpoint) {
    const Nanos timer = endpoint.member->next_timer();
    endpoint.timer = timer;
    core.quiet_until = endpoint.work != 0 ? 0 : std::min(core.quiet_until, timer);
    if (endpoint.completions.produced() == endpoint.woken_at) return;
    endpoint.woken_at = endpoint.completions.produced();
    if (endpoint.notified) notify_client(core, endpoint);
}

/// A short message to the members of a group, of which this endpoint is the only one here. Returns
/// its frame; nullptr: nothing was changed.
[[gnu::noinline]] Segment* multicast_short(Endpoint& endpoint, const urtp::ShortMessage message,
                                           Nanos now) {
    if (!is_group(message.stream)) return nullptr;
    const LocalGroup* here = endpoint.net->groups.find(message.stream);
    const urtp::Group* group = endpoint.member->find_group(message.stream);
    if (here == nullptr || group == nullptr || here->members.size() != 1 ||
        here->members[0] != &endpoint)
        return nullptr;
    return endpoint.member->transmit_short(message, *group, now);
}

struct Sent {
    std::uint32_t records = 0;  ///< taken
    bool all = false;           ///< else it left a record that drain() is to judge
};

/// Short messages of one client, the first of which has come, in a round in which nothing else is
/// due.
[[gnu::always_inline]] inline Sent send_short(Core& core, Look& look, Nanos now) {
    Endpoint& endpoint = *look.endpoint;
    if (endpoint.state != EndpointState::kOpen || endpoint.member == nullptr ||
        !endpoint.sends.passes_short() || endpoint.completions.room() == 0)
        return {};
    Net& net = *endpoint.net;
    Transmitter& wire = net.transmitter;
    const SegmentPool& pool = net.port.pool;
    const bool shared = core.accounts.users().size() > 1;
    Sent sent;
    Endpoint* passed_to = nullptr;
    do {
        sent.all = false;
        urtp::ShortMessage message;
        if (!read_short(endpoint.submissions.peek(), message)) break;
        urtp::Session* session = endpoint.member->find_session(message.stream);
        if (session != nullptr && session->local) [[unlikely]] {
            Endpoint* to = pass_to(core, endpoint, *session, message, now);
            if (to == nullptr) break;
            if (passed_to != nullptr && passed_to != to) settle_short(core, *passed_to);
            passed_to = to;
        } else {
            const bool may = shared ? wire.may_push_shared() : wire.may_push();
            if (!may || !net.link_is_up || pool.available(pool.context) <= kKeptForControl) break;
            Segment* frame = session != nullptr
                                 ? endpoint.member->transmit_short(message, *session, now)
                                 : multicast_short(endpoint, message, now);
            if (frame == nullptr) break;
            wire.push(frame);
        }
        endpoint.submissions.pop();
        look.next = endpoint.submissions.next();
        sent.all = true;
        ++sent.records;
    } while (look.next.has_come() && sent.records < core.config.records_per_round);
    if (passed_to != nullptr) settle_short(core, *passed_to);
    settle_short(core, endpoint);
    core.counters.add(Counter::submissions, sent.records);
    core.counters.add(Counter::messages_sent, sent.records);
    return sent;
}

/// The frames of a net. False: some were more than short messages.
[[gnu::always_inline]] inline bool receive_short(Core& core, Net& net, Nanos now) {
    const std::uint32_t count = net.came;
    net.came = 0;
    std::uint64_t octets = 0;
    Endpoint* last = nullptr;
    bool all = true;
    for (std::uint32_t n = 0; n < count; ++n) {
        Segment& segment = *net.burst[n];
        if (n + kPrefetchAhead < count) __builtin_prefetch(net.burst[n + kPrefetchAhead]->frame);
        octets += segment.length;
        Endpoint* endpoint = deliver_short(core, net, segment, now);
        if (endpoint == nullptr) [[unlikely]] {
            take_frame(core, net, &segment, now);
            all = false;
            continue;
        }
        if (endpoint != last && last != nullptr) settle_short(core, *last);
        last = endpoint;
    }
    if (last != nullptr) settle_short(core, *last);
    core.counters.add(Counter::rx_frames, count);
    core.counters.add(Counter::rx_bytes, octets);
    return all;
}

/// The next quiet round looks at the next few clients. The first time after all, at the first.
[[gnu::noinline]] void look_at_next(Core& core) noexcept {
    Look* const end = core.looks.data() + core.looks.size();
    core.looks_from = core.looks_to == end ? core.looks.data() : core.looks_to;
    const auto left = static_cast<std::size_t>(end - core.looks_from);
    core.looks_to = core.looks_from + std::min<std::size_t>(left, core.config.looks_per_round);
}

[[gnu::noinline]] void ask_port(Net& net, Nanos now) noexcept { net.transmitter.begin_round(now); }

/// Takes the frames in Net::came of all nets, in a round in which something moved.
[[gnu::noinline, gnu::hot]] void take_frames(Core& core, Nanos now) {
    bool all = true;
    for (const auto& net : core.nets)
        if (net->came != 0) all &= receive_short(core, *net, now);
    if (!all) [[unlikely]]
        finish_round(core, now);
}

void count_moved(Core& core) noexcept {
    core.moved = true;
    core.still_rounds = 0;
    if (core.looks_turn_after != UINT32_MAX) look_at_all(core);
    ++core.turn;
    core.counters.add(Counter::rounds_busy);
}

/// Looks at the ports. True: some brought frames, which are in Net::came. asked: the net whose port
/// has said already what has left; nullptr: none.
[[gnu::always_inline]] inline bool look_at_ports(Core& core, const Net* asked, Nanos now) {
    bool came = false;
    for (const auto& net : core.nets) {
        if (!net->transmitter.idle() && net.get() != asked) ask_port(*net, now);
        const std::uint16_t count = net->port.rx(net->port.context, net->burst, kRxBurst);
        if (count == 0) continue;
        net->came = count;
        came = true;
    }
    return came;
}

/// A quiet round in which a client has submitted: its messages go first, as in each round. look:
/// the first one's.
[[gnu::noinline, gnu::hot]] bool take_submissions(Core& core, Look& look, Nanos now) {
    for (const Look* other = &look + 1; other != core.looks_to; ++other)
        if (other->next.has_come()) return poll_general(core, now);
    Endpoint& endpoint = *look.endpoint;
    Transmitter& wire = endpoint.net->transmitter;
    wire.begin_round(now);
    const Sent sent = send_short(core, look, now);
    if (!sent.all && may_take(endpoint)) [[unlikely]]
        return poll_general(core, now);
    wire.flush();
    if (wire.kept()) core.quiet_until = 0;
    const bool came = look_at_ports(core, endpoint.net, now);
    if (sent.records == 0 && !came) {  // records wait for a client that takes no completions
        core.moved = false;
        return false;
    }
    count_moved(core);
    if (came) take_frames(core, now);
    return true;
}

/// A round while nothing is due.
[[gnu::always_inline]] inline bool poll_quiet(Core& core, Nanos now) {
    for (Look* look = core.looks_from; look != core.looks_to; ++look) {
        if (!look->next.has_come()) continue;
        return urtp::kFastPath ? take_submissions(core, *look, now) : poll_general(core, now);
    }
    if (look_at_ports(core, nullptr, now)) {
        if (!urtp::kFastPath) return poll_general(core, now);
        count_moved(core);
        take_frames(core, now);
        return true;
    }
    core.moved = false;
    if (++core.still_rounds >= core.looks_turn_after) look_at_next(core);
    return false;
}

}  // namespace

bool take_short_frame(Core& core, Net& net, Segment& segment, Nanos now) {
    Endpoint* endpoint = deliver_short(core, net, segment, now);
    if (endpoint == nullptr) return false;
    endpoint->work |= kWorkSettle;
    return true;
}

Endpoint* pass_short(Core& core, Endpoint& from, const urtp::ShortMessage& message, Nanos now) {
    urtp::Session* session = from.member->find_session(message.stream);
    return session == nullptr ? nullptr : pass_to(core, from, *session, message, now);
}

bool Engine::poll(Nanos now) {
    Core& core = *core_;
    core.now = now;
    core.counters.add(Counter::rounds);
    const bool quiet =
        now < core.quiet_until || (core.quiet_until != 0 && prolong_quiet(core, now));
    const bool moved = quiet ? poll_quiet(core, now) : poll_general(core, now);
#ifdef ULC_CHECK_ROUNDS  // debug builds
    check_invariants();
#endif
    return moved;
}

}  // namespace ulc::engine
