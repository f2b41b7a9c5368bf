// SPDX-License-Identifier: BSD-3-Clause
#include "script_runner.h"

#include <deque>
#include <map>
#include <sstream>
#include <vector>

#include "script_text.h"
#include "wire/build.h"

namespace ulc::urtp::test {
namespace {

class Script {
public:
    void run_line(const Line& line) {
        if (line.verb == "job") return job(line);
        if (member_ == nullptr) throw Failed("the first line must be `job SIZE …`");
        if (line.verb == "at") return run_until(kStart + time_of(line.words.at(0)));
        if (line.verb == "recv") return recv(line);
        if (line.verb == "send") return send(line);
        if (line.verb == "expect") return expect(line);
        if (line.verb == "nothing") return nothing(line);
        if (line.verb == "deliver") return deliver(line);
        if (line.verb == "event") return event(line);
        if (line.verb == "port") return port(line);
        if (line.verb == "count") return count(line);
        if (line.verb == "receive") return (void)member_->expect(rank_of(line.get("from")), now_);
        if (line.verb == "gone") {
            return member_->peer_gone(rank_of(line.words.at(0)), EventKind::kPeerLeft, now_);
        }
        if (line.verb == "group") {
            std::vector<Rank> ranks;
            for (const auto& r : split(line.get("ranks"), ','))
                ranks.push_back(rank_of(r));
            if (member_->add_group(group_handle(line.words.at(0)), ranks) != Err::kOk)
                throw Failed("no group");
            return;
        }
        if (line.verb == "drained") {
            collect();
            if (!member_->drained()) throw Failed("not drained");
            return;
        }
        throw Failed("unknown verb " + line.verb);
    }
    void finish() {
        collect();
        if (!out_.empty()) throw Failed("not expected: " + text_of(out_.front().fields));
    }

private:
    struct Sent {
        Nanos at;
        Fields fields;
    };
    static constexpr Nanos kStart = kSecond;
    static Rank rank_of(const std::string& text) { return static_cast<Rank>(std::stoul(text)); }

    void job(const Line& line) {
        Params p;
        p.req_spread = 0;
        p.probe_slot = 0;
        p.control_one_by_one = line.number("control_one_by_one") != 0;
        p.window = line.number("window", p.window);
        p.ack_window = line.number("ack_window", p.ack_window);
        p.rx_pool_packets = line.number("rx_pool_packets", p.rx_pool_packets);
        const std::map<std::string, Nanos*> times = {
            {"ack_delay", &p.ack_delay},         {"ack_delay_max", &p.ack_delay_max},
            {"reorder_wait", &p.reorder_wait},   {"req_spread", &p.req_spread},
            {"repair_gather", &p.repair_gather}, {"min_req_gap", &p.min_req_gap},
            {"min_recv_wait", &p.min_recv_wait}, {"max_recv_wait", &p.max_recv_wait},
            {"initial_rtt", &p.initial_rtt},     {"probe_slot", &p.probe_slot},
            {"max_send_wait", &p.max_send_wait}, {"peer_dead", &p.peer_dead}};
        for (const auto& [key, value] : line.fields) {
            if (const auto at = times.find(key); at != times.end()) *at->second = time_of(value);
        }
        const auto size = static_cast<std::uint16_t>(std::stoul(line.words.at(0)));
        roster_ = roster_of(size);
        const std::string profile = line.get("profile", std::string(kDefaultProfile));
        TransportConfig config = config_of(0, p, line.number("first"), profile);
        config.departures = &departures_;
        member_ = std::make_unique<Transport>(config, roster_, pool_.table(), counters_);
    }

    void collect() {
        while (Segment* segment = member_->next_tx(now_)) {
            wire::FrameView view;
            if (wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view) !=
                Counter::kCount) {
                throw Failed("sent a malformed frame");
            }
            out_.push_back({now_, describe(view)});
            pool_.table().drop(segment);
            ++departures_.next;
            if (!port_busy_) departures_.leave_until(departures_.next, now_);
        }
    }
    /// Fires the next timer if it is due by then; returns false if none is.
    bool next_timer_by(Nanos until) {
        const Nanos at = member_->next_timer();
        if (at > until) return false;
        now_ = std::max(now_, at);
        member_->on_timer(now_);
        collect();
        return true;
    }
    void run_until(Nanos until) {
        if (until < now_) throw Failed("time runs backwards");
        collect();
        while (next_timer_by(until)) {
        }
        now_ = until;
        collect();
    }

    void recv(const Line& line) {
        const Rank from = rank_of(line.get("from"));
        wire::FrameHead head;
        head.destination = mac_of(0);
        head.source = mac_of(rank_of(line.get("mac", line.get("from"))));
        head.handle = handle_of(0);
        head.rank = from;
        Segment* segment = pool_.table().get();
        const std::string& type = line.words.at(0);
        if (type == "DATA" || type == "MCAST") {
            segment->length = data_frame(line, head, segment, type == "MCAST");
        } else if (type == "ACK") {
            head.type = wire::FrameType::kAck;
            std::vector<wire::AckEntry> entries;
            for (const auto& e : split(line.get("entries"), ','))
                entries.push_back(entry_of(e));
            segment->length =
                static_cast<std::uint32_t>(wire::build_ack(segment->frame, head, entries));
        } else if (type == "REQ") {
            head.type = wire::FrameType::kReq;
            const std::string digits = line.get("bitmap");
            std::vector<std::byte> bitmap;
            for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
                bitmap.push_back(
                    static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
            }
            const auto ack =
                entry_of(line.get("stream", std::to_string(from)) + ':' + line.get("next"));
            segment->length =
                static_cast<std::uint32_t>(wire::build_req(segment->frame, head, ack, bitmap));
        } else if (type == "PROBE") {
            head.type = wire::FrameType::kProbe;
            head.seq = Seq{line.number("seq")};
            const StreamId stream = stream_of(line.get("stream", "0"));
            if (is_group(stream) && line.get("to") == "all") {
                head.handle = stream;
                head.destination = kBroadcastMac;
            }
            segment->length =
                static_cast<std::uint32_t>(wire::build_probe(segment->frame, head, stream));
        } else {
            throw Failed("unknown frame " + type);
        }
        wire::FrameView view;
        if (wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view) !=
            Counter::kCount) {
            throw Failed("the script's frame is malformed");
        }
        member_->on_frame(view, segment, now_);
        collect();
    }

    std::uint32_t data_frame(const Line& line, wire::FrameHead& head, Segment* segment,
                             bool group) const {
        head.type = group ? wire::FrameType::kMcast : wire::FrameType::kData;
        head.seq = Seq{line.number("seq")};
        head.flags = flags_of(line.get("flags", "FL"));
        wire::Extensions ext;
        if (group) {
            head.handle = stream_of(line.get("stream", "world"));
            if (line.get("to") != "0") head.destination = kBroadcastMac;
        }
        if (line.fields.contains("ack")) {
            head.flags |= wire::kFlagAck;
            ext.ack = entry_of(line.get("ack"));
        }
        if (line.fields.contains("after")) {
            head.flags |= wire::kFlagAfter;
            for (const auto& e : split(line.get("after"), ',')) {
                const auto parts = split(e, ':');
                ext.after[ext.after_count++] = {
                    stream_of(parts.at(0)), static_cast<std::uint32_t>(std::stoul(parts.at(1)))};
            }
        }
        if (line.fields.contains("subset")) {
            head.flags |= wire::kFlagSubset;
            ext.subset = line.number("subset");
        }
        const std::string text = line.get("text");
        std::memcpy(segment->frame + wire::payload_offset(head.flags, ext.after_count), text.data(),
                    text.size());
        return static_cast<std::uint32_t>(wire::build_data(segment->frame, head, ext, text.size()));
    }

    static wire::AckEntry entry_of(const std::string& text) {
        const auto parts = split(text, ':');
        const auto credit = parts.size() > 2 ? std::stoul(parts[2]) : 256;
        const auto delay = parts.size() > 3 ? std::stoul(parts[3]) : 0;
        return {stream_of(parts.at(0)), static_cast<std::uint32_t>(std::stoul(parts.at(1))),
                static_cast<std::uint16_t>(credit), static_cast<std::uint16_t>(delay)};
    }

    void send(const Line& line) {
        PacketMeta meta{.stream = stream_of(line.get("stream"))};
        meta.has_subset = line.fields.contains("subset");
        meta.subset = line.number("subset");
        meta.message_length = line.get("text").size();
        const Admission got = submit(*member_, pool_.table(), meta, line.get("text"), now_);
        const bool blocked = !line.words.empty();
        if ((got != Admission::kYes) != blocked)
            throw Failed(blocked ? "was admitted" : "was refused");
        collect();
    }

    void expect(const Line& line) {
        collect();
        const Nanos until = now_ + time_of(line.get("within", "0us"));
        while (out_.empty() && next_timer_by(until)) {
        }
        Fields wanted = line.fields;
        wanted["type"] = line.words.at(0);
        wanted.erase("within");
        if (out_.empty()) throw Failed("no frame came: " + text_of(wanted));
        const Fields got = out_.front().fields;
        out_.pop_front();
        for (const auto& [key, value] : wanted) {
            const auto at = got.find(key);
            if ((at != got.end() ? at->second : "") != value) {
                throw Failed("expected " + text_of(wanted) + ", got " + text_of(got));
            }
        }
    }
    void nothing(const Line& line) {
        finish();
        run_until(now_ + time_of(line.get("for")));
        finish();
    }
    void deliver(const Line& line) {
        std::vector<std::string> got;
        ReadyPacket packet;
        const Rank from = rank_of(line.get("from"));
        while (member_->front(from, packet)) {
            got.emplace_back(reinterpret_cast<const char*>(packet.payload), packet.length);
            member_->pop(from, now_);
        }
        if (got == line.words) return collect();
        std::string text = "delivered:";
        for (const auto& one : got)
            text += ' ' + one;
        throw Failed(text);
    }
    void event(const Line& line) {
        const Nanos until = now_ + time_of(line.get("within", "0us"));
        Event event;
        while (!member_->poll_event(event)) {
            if (!next_timer_by(until)) throw Failed("no event");
            out_.clear();  // probes in between
        }
        const bool died = line.words.at(0) == "died";
        if (event.kind != (died ? EventKind::kPeerDied : EventKind::kPeerLeft) ||
            event.rank != rank_of(line.words.at(1))) {
            throw Failed("another event");
        }
    }
    /// `port busy`: frames stay in it; `port idle`: they have left, and all later ones leave at
    /// once.
    void port(const Line& line) {
        collect();
        port_busy_ = line.words.at(0) == "busy";
        if (!port_busy_) departures_.leave_until(departures_.next, now_);
    }
    void count(const Line& line) {
        for (std::size_t i = 0; i < kCounterCount; ++i) {
            if (kCounterInfo[i].id != line.words.at(0)) continue;
            const std::uint64_t got = counters_.get(static_cast<Counter>(i));
            if (got != std::stoull(line.words.at(1)))
                throw Failed("count is " + std::to_string(got));
            return;
        }
        throw Failed("no such counter");
    }

    CountingPool pool_;
    Counters counters_;
    std::vector<Peer> roster_;
    Departures departures_;
    bool port_busy_ = false;
    std::unique_ptr<Transport> member_;
    Nanos now_ = kStart;
    std::deque<Sent> out_;
};

}  // namespace

std::string run_script(const std::string& text) {
    Script script;
    std::istringstream in(text);
    std::string line;
    int number = 0;
    try {
        while (std::getline(in, line)) {
            ++number;
            const Line parsed(line);
            if (!parsed.verb.empty()) script.run_line(parsed);
        }
        script.finish();
    } catch (const std::exception& error) {
        return "line " + std::to_string(number) + ": " + error.what() + "\n    " + line;
    }
    return "";
}

}  // namespace ulc::urtp::test
