// SPDX-License-Identifier: BSD-3-Clause
// A small world for tests of the transport: a counting segment pool, and members joined by a wire
// of virtual time with seeded loss, duplication and reordering, or with a hook that decides frame
// by frame.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fnv.h"
#include "base/prng.h"
#include "base/state/archive.h"
#include "urtp/fast.h"
#include "urtp/transport.h"
#include "wire/parse.h"

namespace ulc::urtp::test {

/// Allocates segments from the heap and counts those in use.
class CountingPool {
public:
    explicit CountingPool(std::uint32_t limit = UINT32_MAX) : limit_(limit) {}
    ~CountingPool() {
        EXPECT_EQ(live_, 0U) << "segments leaked";
        for (Counted* segment : free_)
            delete segment;
    }
    CountingPool(const CountingPool&) = delete;
    CountingPool& operator=(const CountingPool&) = delete;

    [[nodiscard]] SegmentPool table() {
        return {this,
                [](void* self) { return static_cast<CountingPool*>(self)->get(); },
                [](void*, Segment* s) { ++static_cast<Counted*>(s)->references; },
                [](void* self, Segment* s) { static_cast<CountingPool*>(self)->release(s); },
                [](void*, const Segment* s) { return static_cast<const Counted*>(s)->references; },
                [](void* self) {
                    const auto* pool = static_cast<CountingPool*>(self);
                    return pool->limit_ - pool->live_;
                }};
    }
    [[nodiscard]] std::uint32_t live() const { return live_; }
    void set_limit(std::uint32_t limit) { limit_ = limit; }

private:
    struct Counted : Segment {
        std::uint32_t references = 0;
        std::byte bytes[2048];
    };
    Segment* get() {
        if (live_ >= limit_) return nullptr;
        ++live_;
        Counted* segment;
        if (free_.empty()) {
            segment = new Counted;
        } else {
            segment = free_.back();
            free_.pop_back();
        }
        segment->frame = segment->bytes;
        segment->capacity = sizeof segment->bytes;
        segment->length = 0;
        segment->tail = nullptr;
        segment->references = 1;
        return segment;
    }
    void release(Segment* s) {
        auto* segment = static_cast<Counted*>(s);
        ASSERT_GT(segment->references, 0U) << "released twice";
        if (--segment->references > 0) return;
        --live_;
        std::memset(segment->bytes, 0xdd, sizeof segment->bytes);
        free_.push_back(segment);
    }

    std::uint32_t limit_;
    std::uint32_t live_ = 0;
    std::vector<Counted*> free_;
};

inline Mac mac_of(Rank rank) {
    return Mac{{2, 0, 0, 0, static_cast<std::uint8_t>(rank >> 8), static_cast<std::uint8_t>(rank)}};
}
inline Handle handle_of(Rank rank) { return 0x1000U + rank; }
inline constexpr GroupHandle kWorld = 0x80000001U;

inline std::vector<Peer> roster_of(std::uint16_t size) {
    std::vector<Peer> roster(size);
    for (Rank r = 0; r < size; ++r)
        roster[r] = {mac_of(r), handle_of(r), 1};
    return roster;
}

inline TransportConfig config_of(Rank rank, Params params = {}, std::uint32_t first = 0,
                                 std::string_view profile = kDefaultProfile) {
    TransportConfig config;
    config.rank = rank;
    config.mac = mac_of(rank);
    config.first_seq = Seq{first};
    config.world = kWorld;
    config.seed = 1000U + rank;
    config.params = params;
    config.profile = profile;
    return config;
}

/// Commits one packet if it may be sent.
inline Admission submit(Transport& member, const SegmentPool& pool, PacketMeta meta,
                        const std::string& payload, Nanos now) {
    const std::uint64_t octets = std::max<std::uint64_t>(meta.message_length, payload.size());
    const Admission admission =
        member.may_send(meta.stream, meta.subset, meta.has_subset, now, {octets, octets});
    if (admission != Admission::kYes) return admission;
    const PacketPlan plan = member.plan(meta, now);
    EXPECT_LE(payload.size(), plan.payload_max);
    Segment* segment = pool.get();
    EXPECT_NE(segment, nullptr);
    std::memcpy(segment->frame + plan.payload_offset, payload.data(), payload.size());
    member.commit(meta, plan, segment, static_cast<std::uint32_t>(payload.size()), now);
    return admission;
}

struct Faults {
    double loss = 0;
    double duplicate = 0;
    double reorder = 0;  ///< delayed by up to `late`
    Nanos latency = 5 * kMicrosecond;
    Nanos late = 100 * kMicrosecond;
    Nanos gap = 0;  ///< wire time of one frame
};

/// Verdict of a hook on one frame to one receiver.
enum class Fate : std::uint8_t { kPass, kLose };

class World {
public:
    World(std::uint16_t size, Params params = {}, Faults faults = {}, std::uint64_t seed = 1,
          std::uint32_t first_seq = 0, std::string_view profile = kDefaultProfile)
        : faults_(faults), random_(seed), busy_until_(size) {
        const std::vector<Peer> roster = roster_of(size);
        counters.resize(size);
        for (Rank r = 0; r < size; ++r) {
            counters[r] = std::make_unique<Counters>();
            TransportConfig config = config_of(r, params, first_seq, profile);
            config.seed = seed * 7919 + r;
            members.push_back(
                std::make_unique<Transport>(config, roster, pool.table(), *counters[r]));
            configs_.push_back(config);
            dead.push_back(false);
        }
    }
    ~World() {
        members.clear();
        while (!flights_.empty()) {
            pool.table().drop(flights_.top().segment);
            flights_.pop();
        }
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Admission send(Rank from, PacketMeta meta, const std::string& payload) {
        forget(from);
        return submit(*members[from], pool.table(), meta, payload, now);
    }
    Admission send(Rank from, StreamId stream, const std::string& payload) {
        return send(from, PacketMeta{.stream = stream, .message_length = payload.size()}, payload);
    }

    /// Sends a short message by the fast path, if its frame is the next to be transmitted by any
    /// member.
    bool transmit_short(Rank from, const ShortMessage& message) {
        for (const auto& member : members)
            if (member->has_tx()) return false;
        Session* session = members[from]->find_session(message.stream);
        const Group* group = members[from]->find_group(message.stream);
        if (dead[from] || busy_until_[from] > now) return false;
        if (group != nullptr ? group->tx == nullptr : session == nullptr || session->tx == nullptr)
            return false;
        auto known = next_messages_.find({from, message.stream});
        const bool kept = known != next_messages_.end();
        if (!kept) {
            const TxPrediction fresh = group != nullptr ? members[from]->predict(*group)
                                                        : members[from]->predict(*session);
            known = next_messages_.insert_or_assign({from, message.stream}, fresh).first;
        }
        members[from]->check_prediction(known->second);
        Segment* frame = members[from]->transmit_next(known->second, message, now);
        if (frame == nullptr) return false;
        if (kept) ++sent_by_prediction;
        launch(from, frame);
        return true;
    }

    /// Queues a short message by the fast path.
    bool queue_short(Rank from, const ShortMessage& message) {
        Session* session = members[from]->find_session(message.stream);
        if (session == nullptr || session->tx == nullptr) return false;
        return members[from]->queue_next(members[from]->predict(*session), message, now);
    }

    /// Takes and returns everything that has come in order from `source` to `rank`.
    std::vector<std::string> receive(Rank rank, Rank source) {
        std::vector<std::string> out = std::exchange(taken_[{rank, source}], {});
        ReadyPacket packet;
        while (members[rank]->front(source, packet)) {
            forget(rank);
            out.emplace_back(reinterpret_cast<const char*>(packet.payload), packet.length);
            members[rank]->pop(source, now);
            members[rank]->check_invariants();
        }
        return out;
    }

    /// Performs one step of virtual time: transmits, delivers, fires timers. Returns false if no
    /// event is left before `until`.
    bool step(Nanos until) {
        for (Rank r = 0; r < static_cast<Rank>(members.size()); ++r)
            transmit(r);
        Nanos at = flights_.empty() ? kNever : flights_.top().at;
        for (Rank r = 0; r < static_cast<Rank>(members.size()); ++r) {
            if (dead[r]) continue;
            at = std::min(at, members[r]->next_timer());
            if (members[r]->has_tx()) at = std::min(at, busy_until_[r] - 2 * faults_.gap);
        }
        if (at > until) {
            now = std::max(now, until);
            return false;
        }
        now = std::max(now, at);
        while (!flights_.empty() && flights_.top().at <= now) {
            const Flight flight = flights_.top();
            flights_.pop();
            deliver(flight);
        }
        for (Rank r = 0; r < static_cast<Rank>(members.size()); ++r) {
            if (dead[r] || members[r]->next_timer() > now) continue;
            if (by_fast_path && members[r]->put_off_timers(now) > now) {
                ++put_off;
                continue;
            }
            forget(r);
            members[r]->on_timer(now);
            members[r]->check_invariants();
        }
        return true;
    }
    void run_for(Nanos span) {
        const Nanos until = now + span;
        while (step(until)) {
        }
    }
    /// Replaces a member by another that imports its state. The octets: for the caller.
    state::Image upgrade(Rank rank) {
        forget(rank);
        state::Exporter exporter;
        exporter.values(*members[rank]);
        EXPECT_TRUE(exporter.ok()) << exporter.why();
        state::Image image = exporter.finish();
        auto next = fresh(rank);
        state::Importer importer(image.octets, image.frames);
        importer.values(*next);
        EXPECT_TRUE(importer.finish()) << importer.why();
        state::Exporter again;
        again.values(*next);
        EXPECT_TRUE(again.finish().octets == image.octets) << "export(import(x)) is not x";
        if (!::testing::Test::HasFailure()) members[rank] = std::move(next);
        members[rank]->check_invariants();
        return image;
    }
    /// Returns a new member with the configuration of this one.
    [[nodiscard]] std::unique_ptr<Transport> fresh(Rank rank) {
        return std::make_unique<Transport>(configs_[rank], roster_of(members[rank]->size()),
                                           pool.table(), *counters[rank]);
    }
    [[nodiscard]] bool drained() const {
        for (Rank r = 0; r < static_cast<Rank>(members.size()); ++r) {
            if (!dead[r] && !members[r]->drained()) return false;
        }
        return true;
    }
    [[nodiscard]] std::uint64_t count(Rank rank, Counter id) const {
        return counters[rank]->get(id);
    }

    CountingPool pool;
    std::vector<std::unique_ptr<Counters>> counters;
    std::vector<std::unique_ptr<Transport>> members;
    std::vector<bool> dead;  ///< neither receives nor sends any more
    Nanos now = 1'000'000;
    std::function<Fate(const wire::FrameView&, Rank to)> hook;
    bool takes_at_once = false;  ///< receivers take packets as they come
    bool by_fast_path = false;   ///< and by Transport::take_next(), if that takes them
    std::uint64_t put_off = 0;   ///< number of times that only put_off_timers() had work
    std::uint64_t sent_by_prediction = 0;
    std::uint64_t taken_by_prediction = 0;
    std::uint64_t taken_at_once = 0;
    std::uint64_t multicasts_taken_at_once = 0;
    std::uint64_t frames = 0;
    std::uint64_t digest = 0;  ///< all frames' bytes, in order (FNV-1a)
    std::uint64_t times = 0;   ///< the same of their times

private:
    struct Flight {
        Nanos at;
        std::uint64_t order;
        Rank to;
        Segment* segment;
        bool operator<(const Flight& other) const {
            return at != other.at ? at > other.at : order > other.order;
        }
    };

    void transmit(Rank from) {
        while (busy_until_[from] <= now + 2 * faults_.gap) {  // the ring holds two frames
            Segment* segment = members[from]->next_tx(now);
            if (segment == nullptr) break;
            forget(from);
            launch(from, segment);
        }
    }

    void launch(Rank from, Segment* segment) {
        ++frames;
        times = fnv1a(times, static_cast<std::uint64_t>(now));
        for (std::uint32_t i = 0; i < segment->length; ++i)
            digest = fnv1a(digest, std::to_integer<std::uint64_t>(segment->frame[i]));
        wire::FrameView view;
        EXPECT_EQ(wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        busy_until_[from] = std::max(busy_until_[from], now) + faults_.gap;
        for (Rank to = 0; to < members.size() && !dead[from]; ++to) {
            const bool addressed =
                view.destination == kBroadcastMac || view.destination == mac_of(to);
            if (to == from || dead[to] || !addressed) continue;
            if (hook && hook(view, to) == Fate::kLose) continue;
            const int copies = random_.chance(faults_.loss)        ? 0
                               : random_.chance(faults_.duplicate) ? 2
                                                                   : 1;
            for (int i = 0; i < copies; ++i) {
                Nanos at = busy_until_[from] + faults_.latency;
                if (random_.chance(faults_.reorder))
                    at +=
                        static_cast<Nanos>(random_.below(static_cast<std::uint64_t>(faults_.late)));
                Segment* copy = pool.table().get();
                copy_frame(copy->frame, *segment);
                copy->length = segment->length;
                flights_.push({at, order_++, to, copy});
            }
        }
        pool.table().drop(segment);
        members[from]->check_invariants();
    }

    void deliver(const Flight& flight) {
        wire::FrameView view;
        const Counter verdict = wire::parse(flight.segment->frame, flight.segment->length,
                                            wire::kEtherTypeDefault, view);
        const bool named = is_group(view.handle) ? !members[flight.to]->members(view.handle).empty()
                                                 : view.handle == handle_of(flight.to);
        if (verdict != Counter::kCount || dead[flight.to] || !named) {  // the engine's early drop
            pool.table().drop(flight.segment);
            return;
        }
        if (by_fast_path && take_short(flight, view)) return;
        forget(flight.to);
        members[flight.to]->on_frame(view, flight.segment, now);
        members[flight.to]->check_invariants();
        for (Rank source = 0; takes_at_once && source < members.size(); ++source) {
            std::vector<std::string> all = receive(flight.to, source);
            taken_[{flight.to, source}] = std::move(all);
        }
    }

    /// Takes a short frame by a prediction, which it makes or has kept. Returns false if nothing
    /// was changed.
    bool take_short(const Flight& flight, const wire::FrameView& view) {
        Transport& member = *members[flight.to];
        const std::byte* octets = flight.segment->frame;
        auto known = next_frames_.find({flight.to, view.handle, view.rank});
        const bool kept = known != next_frames_.end() && known->second.head.matches(octets);
        if (!kept) {
            RxPrediction fresh;
            if (flight.segment->length < wire::kFrameOctetsMin ||
                !wire::has_short_head(octets, wire::kEtherTypeDefault) ||
                !member.predict(octets, fresh))
                return false;
            known = next_frames_.insert_or_assign({flight.to, view.handle, view.rank}, fresh).first;
        }
        member.check_prediction(known->second);
        wire::ShortBody frame;
        if (!member.is_next(known->second, octets, flight.segment->length, frame)) return false;
        ++(is_group(view.handle) ? multicasts_taken_at_once : taken_at_once);
        if (kept) ++taken_by_prediction;
        const bool had = member.has_tx();
        const bool more = member.take_next(known->second, frame, now);
        EXPECT_TRUE(more || member.has_tx() == had);
        counters[flight.to]->add(Counter::data_received);
        taken_[{flight.to, view.rank}].emplace_back(reinterpret_cast<const char*>(frame.payload),
                                                    frame.length);
        pool.table().drop(flight.segment);
        member.check_invariants();
        return true;
    }

    /// Notes that something other than the fast path changes the member.
    void forget(Rank rank) {
        std::erase_if(next_messages_, [&](const auto& one) { return one.first.first == rank; });
        std::erase_if(next_frames_,
                      [&](const auto& one) { return std::get<0>(one.first) == rank; });
    }

    std::map<std::pair<Rank, Rank>, std::vector<std::string>> taken_;  ///< by receiver and source
    std::map<std::pair<Rank, StreamId>, TxPrediction> next_messages_;
    std::map<std::tuple<Rank, Handle, Rank>, RxPrediction> next_frames_;
    std::vector<TransportConfig> configs_;
    Faults faults_;
    Prng random_;
    std::vector<Nanos> busy_until_;
    std::priority_queue<Flight> flights_;
    std::uint64_t order_ = 0;
};

}  // namespace ulc::urtp::test
