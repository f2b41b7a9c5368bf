// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/trace/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "tools/ulc/trace/frame_of.h"
#include "wire/parse.h"

namespace ulc::tools {
namespace {

// The tag of a collective's message (libulc/client/collective/member_watch.h).
constexpr std::uint64_t kOfCollective = std::uint64_t{1} << 63;
constexpr unsigned kNumberBits = 12;
constexpr unsigned kSignatureBits = 19;
constexpr std::int64_t kNumbers = std::int64_t{1} << kNumberBits;

std::uint32_t group_of(std::uint64_t tag) {
    return static_cast<std::uint32_t>(tag >> (kNumberBits + kSignatureBits)) | kGroupBit;
}
std::int64_t operation_of(std::uint64_t tag) {
    return static_cast<std::int64_t>(tag >> kSignatureBits) & (kNumbers - 1);
}

double micros(Nanos time) { return static_cast<double>(time) / kMicrosecond; }

}  // namespace

void Collectives::add(std::uint16_t ether_type, Nanos realtime_ahead,
                      const std::vector<TimedRecord>& records) {
    std::vector<std::byte> space;
    for (const TimedRecord& record : records) {
        if (record.kind != abi::TraceKind::kFrameIn && record.kind != abi::TraceKind::kFrameOut)
            continue;
        wire::FrameView view;
        if (!frame_of(ether_type, record, space, view) || !is_data(view)) continue;
        Frame frame;
        frame.at = record.at + realtime_ahead;
        frame.node = nodes_;
        frame.out = record.kind == abi::TraceKind::kFrameOut;
        frame.stream = {number_of(view.source), static_cast<std::uint8_t>(view.type), view.rank,
                        view.handle};
        frame.seq = view.seq.value;
        frame.flags = view.flags;
        frame.tag = view.tag;
        frame.bytes = record.amount;
        frames_.push_back(frame);
    }
    ++nodes_;
}

void Collectives::align_clocks() {
    // shortest[from][to]: of the times that frames took by the clocks of their nodes.
    constexpr Nanos kNone = std::numeric_limits<Nanos>::max();
    std::vector<std::vector<Nanos>> shortest(nodes_, std::vector<Nanos>(nodes_, kNone));
    // Which sending arrived is not known of a packet that was sent again (Karn), so none counts.
    std::map<std::pair<Stream, std::uint32_t>, const Frame*> sent_once;
    for (const Frame& frame : frames_) {
        if (!frame.out) continue;
        const auto [known, is_new] = sent_once.try_emplace({frame.stream, frame.seq}, &frame);
        if (!is_new) known->second = nullptr;
    }
    for (const Frame& frame : frames_) {
        if (frame.out) continue;
        const auto found = sent_once.find({frame.stream, frame.seq});
        if (found == sent_once.end() || found->second == nullptr) continue;
        Nanos& least = shortest[found->second->node][frame.node];
        least = std::min(least, frame.at - found->second->at);
    }
    // Each node is aligned to one that is: by half of the difference of both directions.
    std::vector<std::optional<Nanos>> ahead(nodes_);
    for (std::size_t start = 0; start < nodes_; ++start) {
        if (ahead[start]) continue;
        ahead[start] = 0;
        std::vector<std::size_t> aligned{start};
        for (std::size_t i = 0; i < aligned.size(); ++i) {
            const std::size_t from = aligned[i];
            for (std::size_t to = 0; to < nodes_; ++to) {
                const Nanos there = shortest[from][to];
                const Nanos back = shortest[to][from];
                if (ahead[to] || there == kNone || back == kNone) continue;
                ahead[to] = *ahead[from] + (there - back) / 2;
                aligned.push_back(to);
            }
        }
    }
    for (Frame& frame : frames_)
        frame.at -= *ahead[frame.node];
}

void Collectives::name_operations() {
    std::stable_sort(frames_.begin(), frames_.end(),
                     [](const Frame& a, const Frame& b) { return a.at < b.at; });
    // Numbers go on beyond the bits that a tag has, as time goes on.
    std::map<std::uint32_t, std::int64_t> latest;
    std::map<Stream, std::map<std::uint32_t, Frame*>> streams;
    for (Frame& frame : frames_) {
        const bool is_first = streams[frame.stream].try_emplace(frame.seq, &frame).second;
        if (!is_first || (frame.flags & wire::kFlagFirst) == 0 || (frame.tag & kOfCollective) == 0)
            continue;
        const std::uint32_t group = group_of(frame.tag);
        const std::int64_t found = operation_of(frame.tag);
        std::int64_t& last = latest.try_emplace(group, found).first->second;
        std::int64_t number = last + ((found - last) & (kNumbers - 1));
        if (number - last >= kNumbers / 2) number -= kNumbers;
        last = std::max(last, number);
        frame.operation = {group, number};
    }
    // The further packets of a message follow its first one in the numbers of the stream. A message
    // that lies across the wrap of the numbers keeps its first part only.
    for (auto& [stream, packets] : streams) {
        Operation operation{};
        std::uint32_t next = 0;
        for (auto& [seq, frame] : packets) {
            if ((frame->flags & wire::kFlagFirst) != 0)
                operation = frame->operation;
            else if (seq != next)
                operation = {};
            frame->operation = operation;
            if ((frame->flags & wire::kFlagLast) != 0) operation = {};
            next = seq + 1;
        }
    }
    for (Frame& frame : frames_)
        frame.operation = streams[frame.stream][frame.seq]->operation;
}

std::vector<Collective> Collectives::find() {
    align_clocks();
    name_operations();
    sendings_.clear();
    operations_.clear();
    for (const Frame& frame : frames_) {
        if (frame.operation.first == 0) continue;
        operations_[frame.operation].push_back(&frame);
        if (frame.out) sendings_[{frame.stream, frame.seq}].push_back(&frame);
    }
    std::vector<Collective> out;
    for (const auto& [operation, frames] : operations_) {
        Collective one;
        one.group = operation.first;
        one.number = operation.second;
        std::optional<Nanos> start;
        std::optional<Nanos> end;
        for (const Frame* frame : frames) {
            if (frame->out) {
                if (!start) start = frame->at;
                ++one.frames;
                const auto& sent = sendings_.at({frame->stream, frame->seq});
                if (sent.front() != frame) ++one.repairs;
            } else if (sending_of(*frame, nullptr) != nullptr) {
                end = frame->at;
            }
        }
        if (!start || !end) continue;
        one.start = *start;
        one.took = *end - *start;
        out.push_back(one);
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Collective& a, const Collective& b) { return a.took > b.took; });
    return out;
}

const std::vector<const Collectives::Frame*>* Collectives::frames_of(const Collective& one) const {
    const auto found = operations_.find({one.group, one.number});
    return found == operations_.end() ? nullptr : &found->second;
}

/// Returns the last sending of a packet before it arrived; nullptr: no trace has it. By aligned
/// clocks too, a frame may arrive before its only sending.
const Collectives::Frame* Collectives::sending_of(const Frame& arrival, Nanos* first) const {
    const auto found = sendings_.find({arrival.stream, arrival.seq});
    if (found == sendings_.end()) return nullptr;
    const Frame* sending = found->second.front();
    if (first != nullptr) *first = sending->at;
    for (const Frame* frame : found->second)
        if (frame->at <= arrival.at) sending = frame;
    return sending;
}

std::vector<PathStep> Collectives::path(const Collective& one) const {
    std::vector<PathStep> steps;
    const auto* frames = frames_of(one);
    if (frames == nullptr) return steps;
    // The last of some node's arrivals before a time; nullptr: there is none.
    const auto arrival_before = [&](std::optional<std::size_t> node, Nanos time) {
        const Frame* found = nullptr;
        for (const Frame* frame : *frames)
            if (!frame->out && frame->at <= time && (!node || frame->node == *node) &&
                sending_of(*frame, nullptr) != nullptr)
                found = frame;
        return found;
    };
    const Frame* arrival = arrival_before({}, std::numeric_limits<Nanos>::max());
    while (arrival != nullptr && steps.size() < 2 * frames->size()) {
        Nanos first = 0;
        const Frame* sending = sending_of(*arrival, &first);
        const std::uint16_t rank = std::get<2>(sending->stream);
        const Frame* before = arrival_before(sending->node, first - 1);
        steps.push_back({.at = arrival->at - one.start,
                         .took = arrival->at - first,
                         .on_wire = true,
                         .node = arrival->node,
                         .rank = rank,
                         .bytes = arrival->bytes,
                         .repaired = sending->at - first});
        steps.push_back({.at = first - one.start,
                         .took = first - (before != nullptr ? before->at : one.start),
                         .on_wire = false,
                         .node = sending->node,
                         .rank = rank,
                         .bytes = sending->bytes,
                         .repaired = 0});
        arrival = before;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
}

std::vector<NodeStart> Collectives::starts(const Collective& one) const {
    std::vector<NodeStart> out;
    const auto* frames = frames_of(one);
    if (frames == nullptr) return out;
    std::vector<bool> seen(nodes_);
    for (const Frame* frame : *frames) {
        if (!frame->out || seen[frame->node]) continue;
        seen[frame->node] = true;
        out.push_back({frame->node, std::get<2>(frame->stream), frame->at - one.start});
    }
    return out;
}

std::string text_of(const Collectives& collectives, const Collective& one,
                    const std::vector<std::string>& names) {
    std::string out =
        fmt::format("collective {} of group {:#x}: {:.1f} µs, {} frames, {} of them repairs\n",
                    one.number, one.group, micros(one.took), one.frames, one.repairs);
    const auto starts = collectives.starts(one);
    for (const NodeStart& start : starts)
        out += fmt::format("  rank {} sent first at {:.1f} µs ({})\n", start.rank, micros(start.at),
                           names[start.node]);
    if (!starts.empty())
        out += fmt::format("arrival skew {:.1f} µs: rank {} was the last to send\n",
                           micros(starts.back().at), starts.back().rank);
    out += "critical path:\n";
    for (const PathStep& step : collectives.path(one)) {
        if (step.on_wire) {
            out += fmt::format("{:>10.1f} µs  +{:.1f}  wire: {} B of rank {} arrive ({})",
                               micros(step.at), micros(step.took), step.bytes, step.rank,
                               names[step.node]);
            if (step.repaired > 0)
                out += fmt::format(", sent again {:.1f} µs after the first sending",
                                   micros(step.repaired));
            out += '\n';
        } else {
            out += fmt::format("{:>10.1f} µs  +{:.1f}  node: rank {} sends ({})\n", micros(step.at),
                               micros(step.took), step.rank, names[step.node]);
        }
    }
    return out;
}

}  // namespace ulc::tools
