// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/trace/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tools/ulc/trace/frame_of.h"
#include "wire/mac_text.h"

namespace ulc::tools {
namespace {

// Tracks of the process: two for each net, then these.
constexpr std::uint32_t kClientTrack = 1000;
constexpr std::uint32_t kStallTrack = 1001;

constexpr const char* kTypes[] = {"frame", "DATA", "MCAST",   "ACK",    "REQ",  "PROBE", "JOB",
                                  "NODE",  "FLOW", "COUNTED", "STATUS", "NACK", "LINK"};

const char* name_of(wire::FrameType type) {
    const auto index = static_cast<std::size_t>(type);
    return index < std::size(kTypes) ? kTypes[index] : kTypes[0];
}

/// Returns microseconds, as the format wants them, with their nanoseconds.
std::string micros(Nanos time) {
    return fmt::format("{}.{:03}", time / kMicrosecond, time % kMicrosecond);
}

std::string track_of(const TimedRecord& record) {
    const bool in = record.kind == abi::TraceKind::kFrameIn;
    return std::to_string(1 + 2 * record.source + (in ? 0 : 1));
}

/// Returns the first acknowledgement or request entry of a frame; nullptr: it has none.
const wire::AckEntry* entry_of(const wire::FrameView& frame) {
    if (frame.ack != nullptr) return frame.ack;
    const bool has = (frame.type == wire::FrameType::kAck || frame.type == wire::FrameType::kReq) &&
                     frame.length >= sizeof(wire::AckEntry);
    return has ? reinterpret_cast<const wire::AckEntry*>(frame.body) : nullptr;
}

}  // namespace

Timeline::Timeline(const TraceFile& trace) : trace_(trace) {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    const auto named = [&](std::uint32_t track, const std::string& name) {
        event(fmt::format(R"("ph":"M","name":"thread_name","tid":{},"args":{{"name":"{}"}})", track,
                          name));
    };
    event(fmt::format(R"("ph":"M","name":"process_name","args":{{"name":"ulc-engine {}"}})",
                      trace.engine_pid()));
    for (std::size_t n = 0; n < trace.nets().size(); ++n) {
        named(static_cast<std::uint32_t>(1 + 2 * n), "net " + trace.nets()[n] + " in");
        named(static_cast<std::uint32_t>(2 + 2 * n), "net " + trace.nets()[n] + " out");
    }
    named(kClientTrack, "clients");
    named(kStallTrack, "stalls and repairs");
}

void Timeline::event(const std::string& fields) {
    if (text_.back() == '}') text_ += ",\n";
    text_ += fmt::format(R"({{"pid":{},{}}})", trace_.engine_pid(), fields);
}

void Timeline::add(const TimedRecord& record) {
    if (summary_.first == 0) summary_.first = record.at;
    summary_.last = std::max(summary_.last, record.at);
    record.kind == abi::TraceKind::kCounter ? add_counter(record) : add_frame(record);
}

void Timeline::add_counter(const TimedRecord& record) {
    const std::string& name = trace_.counters()[record.source];
    summary_.events[name] += record.amount;
    const bool of_client = name.starts_with("messages_") || name.starts_with("clients_");
    event(fmt::format(R"("ph":"i","s":"t","ts":{},"tid":{},"name":"{}","args":{{"count":{}}})",
                      micros(record.at), of_client ? kClientTrack : kStallTrack, name,
                      record.amount));
}

void Timeline::add_frame(const TimedRecord& record) {
    const bool in = record.kind == abi::TraceKind::kFrameIn;
    ++(in ? summary_.frames_in : summary_.frames_out);
    wire::FrameView frame;
    std::string name = "frame";
    std::string more;
    if (frame_of(trace_.ether_type(), record, frame_, frame)) {
        name = name_of(frame.type);
        more = fmt::format(R"(,"from":"{}","to":"{}","rank":{},"handle":{},"number":{})",
                           text_of(frame.source), text_of(frame.destination), frame.rank,
                           frame.handle, frame.seq.value);
        if (const auto* entry = entry_of(frame); entry != nullptr) {
            more += fmt::format(
                R"(,"stream":{},"next":{},"credit":{})", static_cast<std::uint32_t>(entry->stream),
                static_cast<std::uint32_t>(entry->next), static_cast<std::uint16_t>(entry->credit));
        }
        in ? follow_in(frame, record.at) : follow_out(frame, record.at, &name);
    } else {
        ++summary_.unreadable;
    }
    if (record.kind == abi::TraceKind::kGivenUp) name += " given up";
    event(fmt::format(R"("ph":"i","s":"t","ts":{},"tid":{},"name":"{}","args":{{"bytes":{}{}}})",
                      micros(record.at), track_of(record), name, record.amount, more));
}

void Timeline::follow_out(const wire::FrameView& frame, Nanos at, std::string* name) {
    if (is_data(frame)) {
        const auto number = frame.seq.value;
        const bool is_new = sent_
                                .insert(fmt::format("{} {} {} {}", name_of(frame.type), frame.rank,
                                                    frame.handle, number))
                                .second;
        if (!is_new) {
            ++summary_.sent_again;
            *name += " again";
        }
    }
    if (frame.type != wire::FrameType::kReq) return;
    ++summary_.requests_out;
    const auto* entry = entry_of(frame);
    if (entry == nullptr) return;
    const auto stream = static_cast<std::uint32_t>(entry->stream);
    const Gap gap{number_of(frame.destination), stream > UINT16_MAX ? stream : 0,
                  static_cast<std::uint32_t>(entry->next)};
    const auto [found, is_first] = gaps_.try_emplace(gap, Asked{at, gaps_made_, 0});
    if (is_first) ++gaps_made_;
    ++found->second.times;
}

void Timeline::follow_in(const wire::FrameView& frame, Nanos at) {
    if (frame.type == wire::FrameType::kReq) ++summary_.requests_in;
    if (const auto* entry = entry_of(frame);
        entry != nullptr && frame.type != wire::FrameType::kReq)
        event(fmt::format(
            R"("ph":"C","ts":{},"name":"credit of stream {:#x}","args":{{"packets":{}}})",
            micros(at), static_cast<std::uint32_t>(entry->stream),
            static_cast<std::uint16_t>(entry->credit)));
    if (!is_data(frame)) return;
    const Gap gap{number_of(frame.source), frame.type == wire::FrameType::kData ? 0 : frame.handle,
                  frame.seq.value};
    const auto found = gaps_.find(gap);
    if (found == gaps_.end()) return;
    ++summary_.repaired;
    summary_.longest_repair = std::max(summary_.longest_repair, at - found->second.at);
    end_gap(gap, found->second, at, "filled");
    gaps_.erase(found);
}

void Timeline::end_gap(const Gap& gap, const Asked& asked, Nanos at, const char* how) {
    const auto& [node, group, number] = gap;
    const std::string head = fmt::format(R"("cat":"repair","id":{},"tid":{},"name":"gap at {}")",
                                         asked.id, kStallTrack, number);
    event(fmt::format(R"("ph":"b","ts":{},{},"args":{{"group":{},"requests":{},"end":"{}"}})",
                      micros(asked.at), head, group, asked.times, how));
    event(fmt::format(R"("ph":"e","ts":{},{})", micros(std::max(at, asked.at)), head));
}

std::string Timeline::finish() {
    for (const auto& [gap, asked] : gaps_)
        end_gap(gap, asked, summary_.last, "open");
    gaps_.clear();
    return text_ + "\n]}\n";
}

}  // namespace ulc::tools
