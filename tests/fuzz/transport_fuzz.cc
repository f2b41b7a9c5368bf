// SPDX-License-Identifier: BSD-3-Clause
// Two to four transports and a wire between them, all driven by the fuzzer: local calls with
// groups, subsets and messages of several packets; frames that arrive, are lost, doubled, late,
// changed or made up. After each step the invariants of every transport hold. At the end no
// segment is out. If no frame was changed or made up and no peer ended, each receiver gets each
// source's packets once and in order, and all of them come.
//
//   input: profile (1), its second word (1), shape (1): nodes 2 bits, CRC 1, window 2, pool 2, wrap
//   then operations until the input ends: one octet says which (transport_fuzz.h)
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport_fuzz.h"
#include "transport_nodes.h"
#include "urtp/fast.h"
#include "urtp/policy.h"
#include "urtp/transport.h"
#include "wire/build.h"
#include "wire/parse.h"
#include "wire/short_frame.h"

namespace {

using namespace ulc;
using namespace ulc::urtp;
using namespace ulc::fuzz;

class World {
public:
    explicit World(Input& in) : profile_(profile_of(in)), shape_(in.octet()) {
        Policy policy;
        Params params;
        ULC_CHECK(resolve(profile_, policy, params) == Err::kOk);
        recovers_ = policy.recovers;
        params = {};
        params.window = 4U << (shape_ >> 3 & 3U) * 2;
        params.rx_pool_packets = shape_ % 2 == 0 ? 256 : 4;
        std::vector<Peer> roster(nodes());
        for (Rank r = 0; r < nodes(); ++r)
            roster[r] = {mac_of(r), handle_of(r), 1};
        for (Rank r = 0; r < nodes(); ++r) {
            TransportConfig config;
            config.rank = r;
            config.mac = mac_of(r);
            config.mtu = kMtu;
            config.world = fuzz::kWorld;
            config.crc = (shape_ >> 2 & 1U) != 0;
            config.seed = 77U + r;
            config.first_seq = Seq{(shape_ & 0x80U) != 0 ? UINT32_MAX - 3 : 100};
            config.params = params;
            config.profile = profile_;
            auto& node = nodes_[r] = std::make_unique<Node>(limit());
            node->transport =
                std::make_unique<Transport>(config, roster, node->sending.table(), node->counters);
        }
    }

    void step(Input& in) {
        const unsigned op = in.octet();
        const auto at = static_cast<Rank>(op / fuzz::kWireOps % nodes());
        act(static_cast<WireOp>(op % fuzz::kWireOps), at, in);
        check();
    }

    /// Lets everything arrive that an honest wire would bring.
    void settle() {
        if (!honest_) return;
        for (Rank r = 0; r < nodes(); ++r)
            finish_messages(r);
        for (int turn = 0; turn < 4000 && honest_; ++turn) {
            for (Rank r = 0; r < nodes(); ++r) {
                transmit(r, 64);
                take(r, 64);
                hear(r);
            }
            while (!flights_.empty()) {
                const Flight flight = std::move(flights_.front());
                flights_.pop_front();
                deliver(flight.to, flight.frame, false);
            }
            if (finished()) return;
            pass_time(std::clamp<Nanos>(next_timer() - now_, kMicrosecond, 100 * kMillisecond));
        }
        ULC_CHECK(!honest_ || !recovers_);
    }

private:
    [[nodiscard]] Rank nodes() const { return static_cast<Rank>(2 + (shape_ & 3U) % 3); }
    [[nodiscard]] std::uint32_t limit() const {
        constexpr std::array<std::uint32_t, 4> kLimits{4096, 64, 8, kForControl + 1};
        return kLimits[shape_ >> 5 & 3U];
    }
    /// Returns the transport for any call: what is predicted may not hold after it.
    Transport& transport(Rank rank) {
        nodes_[rank]->next.reset();
        return *nodes_[rank]->transport;
    }

    void act(WireOp op, Rank at, Input& in) {
        switch (op) {
            case WireOp::kSend:
                return begin_message(at, in);
            case WireOp::kContinue:
                return continue_message(at, stream_of(in));
            case WireOp::kShort:
                return send_short(at, in);
            case WireOp::kTransmit:
                return transmit(at, 1U + in.below(16));
            case WireOp::kArrive:
                return arrive(in);
            case WireOp::kChanged:
                return arrive_changed(in);
            case WireOp::kOld:
                return arrive_old(at, in);
            case WireOp::kForged:
                return arrive_forged(at, in);
            case WireOp::kTake:
                return take(at, 1U + in.below(16));
            case WireOp::kExpect:
                return (void)transport(at).expect(in.below(nodes() + 1U), now_);
            case WireOp::kTime:
                return pass_time(Nanos{1} << in.below(36));
            case WireOp::kAddGroup:
                return add_group(at, in);
            case WireOp::kRemoveGroup:
                return remove_group(at, fuzz::kGroup + in.below(fuzz::kGroups));
            case WireOp::kGone:
                honest_ = false;
                transport(at).peer_gone(
                    in.below(nodes() + 1U),
                    in.octet() % 2 == 0 ? EventKind::kPeerLeft : EventKind::kPeerDied, now_);
                return hear(at);
            case WireOp::kPressure:
                return press(at, in);
        }
    }

    // --- local calls
    StreamId stream_of(Input& in) { return fuzz::stream_of(in.octet()); }

    void begin_message(Rank from, Input& in) {
        Open message;
        PacketMeta& meta = message.meta;
        meta.stream = stream_of(in);
        const unsigned flags = in.octet();
        meta.ack_now = flags % 2 != 0;
        meta.has_tag = (flags & 2U) != 0;
        meta.tag = flags;
        message.packets_left = 1 + (flags >> 2 & 3U);
        message.payload = 4 + in.octet() % (kPayloadMax - 3);
        const auto members = transport(from).members(meta.stream);
        if ((flags & 16U) != 0 && !members.empty()) {
            meta.has_subset = true;
            meta.subset = (flags >> 5) & ((1U << members.size()) - 1);
            if (meta.subset == 0) return;
        }
        meta.message_length = std::uint64_t{message.packets_left} * message.payload;
        auto& open = nodes_[from]->open;
        if (open.contains(meta.stream)) return;  // the engine ends a message before the next one
        open[meta.stream] = message;
        continue_message(from, meta.stream);
    }

    /// Commits the next packet of the stream's message if it may be sent.
    void continue_message(Rank from, StreamId stream) {
        auto& open = nodes_[from]->open;
        const auto found = open.find(stream);
        if (found == open.end()) return;
        Open& message = found->second;
        const PacketMeta& meta = message.meta;
        const std::uint64_t left = std::uint64_t{message.packets_left} * message.payload;
        const Admission admission = transport(from).may_send(stream, meta.subset, meta.has_subset,
                                                             now_, {meta.message_length, left});
        if (admission == Admission::kPeerGone || admission == Admission::kUnknown) {
            honest_ = honest_ && meta.first;  // else a part of a message was sent
            open.erase(found);
            return;
        }
        if (admission != Admission::kYes) return;
        message.meta.last = message.packets_left == 1;
        const PacketPlan plan = transport(from).plan(meta, now_);
        const SegmentPool pool = nodes_[from]->sending.table();
        if (pool.available(pool.context) <= kForControl) return transport(from).want_segments(now_);
        Segment* segment = pool.get();
        const std::uint32_t number = ++sent_;
        ULC_CHECK(plan.payload_max >= message.payload);
        std::memset(segment->frame + plan.payload_offset, 0, message.payload);
        std::memcpy(segment->frame + plan.payload_offset, &number, sizeof number);
        transport(from).commit(meta, plan, segment, message.payload, now_);
        expect_at_receivers(from, meta, number);
        message.meta.first = false;
        if (--message.packets_left == 0) open.erase(found);
    }

    void send_short(Rank from, Input& in) {
        ShortMessage message;
        message.stream = in.below(nodes() + 1U);
        const std::uint8_t how = in.octet();
        message.has_tag = how % 2 != 0;
        const std::uint32_t number = sent_ + 1;
        message.payload = &number;
        message.octets = sizeof number;
        if (nodes_[from]->open.contains(message.stream)) return;
        Transport& sender = transport(from);
        Session* session = sender.find_session(message.stream);
        if (session == nullptr || session->tx == nullptr) return;
        if ((how & 2U) != 0 && !sender.has_tx()) {
            Segment* frame = sender.transmit_next(sender.predict(*session), message, now_);
            if (frame == nullptr) return;
            launch(from, frame);
        } else if (!sender.queue_next(sender.predict(*session), message, now_)) {
            return;
        }
        ++sent_;
        nodes_[message.stream]->expected[from].push_back(number);
    }

    void expect_at_receivers(Rank from, const PacketMeta& meta, std::uint32_t number) {
        if (!is_group(meta.stream)) {
            nodes_[meta.stream]->expected[from].push_back(number);
            return;
        }
        const auto members = transport(from).members(meta.stream);
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (members[i] == from || (meta.has_subset && (meta.subset >> i & 1U) == 0)) continue;
            nodes_[members[i]]->expected[from].push_back(number);
        }
    }

    void finish_messages(Rank from) {
        std::vector<StreamId> streams;
        for (const auto& [stream, message] : nodes_[from]->open)
            streams.push_back(stream);
        for (const StreamId stream : streams)
            continue_message(from, stream);
    }

    /// All members, or one alone: then they disagree.
    void add_group(Rank at, Input& in) {
        const GroupHandle handle = fuzz::kGroup + in.below(fuzz::kGroups);
        const unsigned bits = in.octet();
        std::vector<Rank> ranks;
        for (Rank r = 0; r < nodes(); ++r)
            if ((bits >> r & 1U) != 0) ranks.push_back(r);
        if ((bits & 0x40U) != 0) std::reverse(ranks.begin(), ranks.end());
        const bool alone = (bits & 0x80U) != 0;
        if (alone) honest_ = false;
        bool new_everywhere = true;
        for (Rank r = 0; r < nodes(); ++r)
            new_everywhere = new_everywhere && transport(r).members(handle).empty();
        if (!alone && !new_everywhere) return;
        for (Rank r = 0; r < nodes(); ++r)
            if (!alone || r == at) static_cast<void>(transport(r).add_group(handle, ranks));
    }

    void remove_group(Rank at, GroupHandle handle) {
        if (transport(at).remove_group(handle) != Err::kOk) return;
        nodes_[at]->open.erase(handle);
        honest_ = false;
    }

    void take(Rank at, unsigned packets) {
        Transport& receiver = transport(at);
        for (; packets > 0; --packets) {
            const Rank source = receiver.next_source();
            if (source == kNoRank) return;
            ReadyPacket packet;
            ULC_CHECK(source < nodes() && receiver.front(source, packet));
            if (packets % 2 == 0) {
                receiver.pull_front(source);
                ULC_CHECK(receiver.front(source, packet));
            }
            took(at, source, packet);
            receiver.pop(source, now_);
        }
    }

    void took(Rank at, Rank source, const ReadyPacket& packet) {
        std::uint32_t sum = 0;
        for (std::size_t i = 0; i < packet.length; ++i)
            sum += std::to_integer<std::uint32_t>(packet.payload[i]);
        sink_ = sink_ + sum;
        if (!honest_) return;
        std::uint32_t number = 0;
        ULC_CHECK(packet.length >= sizeof number);
        std::memcpy(&number, packet.payload, sizeof number);
        auto& expected = nodes_[at]->expected[source];
        while (!recovers_ && !expected.empty() && expected.front() < number)
            expected.pop_front();                                                    // lost
        if (!recovers_ && (expected.empty() || expected.front() != number)) return;  // overtaken
        ULC_CHECK(!expected.empty() && expected.front() == number);
        expected.pop_front();
    }

    void press(Rank at, Input& in) {
        Transport& under = transport(at);
        switch (in.octet() % 3) {
            case 0:
                return under.want_segments(now_);
            case 1:
                return under.pull_tails();
            default:
                return under.send_failed();
        }
    }

    /// Reads all events. A death ends the expectations: the peer's transport does not know of it.
    void hear(Rank at) {
        Event event;
        while (transport(at).poll_event(event)) {
            ULC_CHECK(event.rank < nodes() || event.kind == EventKind::kSendFailed);
            if (event.kind == EventKind::kPeerDied || event.kind == EventKind::kPeerLeft)
                honest_ = false;
        }
    }

    // --- the wire
    void transmit(Rank from, unsigned frames) {
        for (; frames > 0; --frames) {
            Segment* segment = transport(from).next_tx(now_);
            if (segment == nullptr) return;
            launch(from, segment);
        }
    }

    void launch(Rank from, Segment* segment) {
        Octets frame(segment->frame, segment->frame + segment->length);
        fuzz::HeapPool::release(segment);
        wire::FrameView view;
        ULC_CHECK(wire::parse(frame.data(), frame.size(), wire::kEtherTypeDefault, view) ==
                  Counter::kCount);
        ULC_CHECK(view.source == mac_of(from) && frame.size() <= kFrameOctets);
        for (Rank to = 0; to < nodes(); ++to) {
            const bool addressed =
                view.destination == kBroadcastMac || view.destination == mac_of(to);
            if (to == from || !addressed) continue;
            if (flights_.size() == kFlightsMax) flights_.pop_front();
            flights_.push_back({to, frame});
            if (old_.size() == kOldMax) old_.pop_front();
            old_.push_back({to, frame});
        }
    }

    Flight chosen(Input& in, bool keep) {
        const std::size_t index = in.octet() % flights_.size();
        Flight flight = flights_[index];
        if (!keep) flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(index));
        return flight;
    }

    /// fate: 0 lost, 1 doubled, 2 and 3 by the short way of whole messages where that takes it.
    void arrive(Input& in) {
        if (flights_.empty()) return;
        const unsigned fate = in.octet() % 8;
        const Flight flight = chosen(in, fate == 1);
        if (fate != 0) deliver(flight.to, flight.frame, fate < 4);
    }

    void arrive_changed(Input& in) {
        if (flights_.empty()) return;
        Flight flight = chosen(in, false);
        honest_ = false;
        for (unsigned changes = 1 + in.octet() % 4; changes > 0; --changes) {
            const std::size_t offset = 14 + in.octet() % (flight.frame.size() - 14);
            flight.frame[offset] = static_cast<std::byte>(in.octet());
        }
        if (in.octet() % 8 == 0) flight.frame.resize(in.octet() % (flight.frame.size() + 1));
        deliver(flight.to, flight.frame, in.octet() % 2 == 0);
    }

    void arrive_old(Rank to, Input& in) {
        if (old_.empty()) return;
        const Flight& flight = old_[in.octet() % old_.size()];
        const bool as_it_was = in.octet() % 4 != 0;
        if (!as_it_was) honest_ = false;
        deliver(as_it_was ? flight.to : to, Octets(flight.frame), false);
    }

    void arrive_forged(Rank to, Input& in) {
        honest_ = false;
        const Octets frame = fuzz::forged_frame(in, mac_of(to), handle_of(to), nodes(), mac_of);
        deliver(to, frame, in.octet() % 2 == 0);
    }

    /// Parses a frame, drops it if its handle is not known here, else gives it to the transport.
    void deliver(Rank to, const Octets& octets, bool short_way) {
        Segment* segment = nodes_[to]->receiving.received(octets);
        if (short_way && nodes_[to]->next && take_predicted(to, *segment)) return;  // kept
        wire::FrameView view;
        Transport& receiver = transport(to);
        const Counter verdict =
            wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view);
        const bool named = is_group(view.handle) ? !receiver.members(view.handle).empty()
                                                 : view.handle == handle_of(to);
        if (verdict != Counter::kCount || !named) {
            fuzz::HeapPool::release(segment);
            return;
        }
        RxPrediction fresh;
        if (short_way && segment->length >= wire::kFrameOctetsMin &&
            wire::has_short_head(segment->frame, wire::kEtherTypeDefault) &&
            receiver.predict(segment->frame, fresh)) {
            nodes_[to]->next = fresh;
            if (take_predicted(to, *segment)) return;
        }
        transport(to).on_frame(view, segment, now_);
        hear(to);
    }

    /// Takes a short frame by the prediction that is kept. False: nothing was changed.
    bool take_predicted(Rank to, Segment& segment) {
        Node& node = *nodes_[to];
        const RxPrediction& next = *node.next;
        node.transport->check_prediction(next);
        wire::ShortBody body;
        if (segment.length < wire::kFrameOctetsMin || !next.head.matches(segment.frame) ||
            !node.transport->is_next(next, segment.frame, segment.length, body))
            return false;
        wire::FrameView view;
        ULC_CHECK(wire::parse(segment.frame, segment.length, wire::kEtherTypeDefault, view) ==
                  Counter::kCount);
        ULC_CHECK(view.body == body.payload && view.length == body.length);
        ULC_CHECK(view.ack == body.ack && view.after_count == 0 && view.subset == 0);
        const bool had_tx = node.transport->has_tx();
        const bool more = node.transport->take_next(next, body, now_);
        ULC_CHECK(more || node.transport->has_tx() == had_tx);
        ReadyPacket packet;
        packet.stream = next.rx->id;
        packet.payload = body.payload;
        packet.length = static_cast<std::uint16_t>(body.length);
        took(to, next.rx->session->rank, packet);
        fuzz::HeapPool::release(&segment);
        return true;
    }

    // --- time and ends
    [[nodiscard]] Nanos next_timer() {
        Nanos next = kNever;
        for (Rank r = 0; r < nodes(); ++r)
            next = std::min(next, transport(r).next_timer());
        return next;
    }
    void pass_time(Nanos span) {
        now_ += span;
        for (Rank r = 0; r < nodes(); ++r) {
            if (transport(r).next_timer() <= now_) transport(r).on_timer(now_);
            ULC_CHECK(transport(r).next_timer() > now_);
            hear(r);
        }
    }
    [[nodiscard]] bool finished() {
        for (Rank r = 0; r < nodes(); ++r) {
            finish_messages(r);
            if (!nodes_[r]->open.empty() || !transport(r).drained()) return false;
            for (const auto& expected : nodes_[r]->expected)
                if (!expected.empty()) return false;
        }
        return true;
    }
    void check() {
        for (Rank r = 0; r < nodes(); ++r)
            transport(r).check_invariants();
    }

    const std::string profile_;
    const unsigned shape_;
    std::array<std::unique_ptr<Node>, kNodesMax> nodes_;
    std::deque<Flight> flights_;
    std::deque<Flight> old_;
    Nanos now_ = kSecond;
    std::uint32_t sent_ = 0;
    bool recovers_ = true;
    bool honest_ = true;  ///< nothing was changed, made up or ended
    volatile std::uint32_t sink_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    World world(in);
    for (int steps = 0; !in.done() && steps < 300; ++steps)
        world.step(in);
    world.settle();
    return 0;
}
