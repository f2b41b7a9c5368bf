// SPDX-License-Identifier: BSD-3-Clause
#include "script_text.h"

#include <cstdio>
#include <cstring>

namespace ulc::urtp::test {
namespace {

std::string name_of(StreamId stream) {
    if (stream == kWorld) return "world";
    if (is_group(stream)) return 'g' + std::to_string((stream & ~kGroupBit) - 0x100);
    return std::to_string(stream);
}

constexpr char kFlagLetters[] = "FLARSTNC";

std::string hex(const std::byte* bytes, std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(bytes[i]));
        text += two;
    }
    return text;
}

std::string text_of(const wire::AckEntry& entry, bool credit) {
    std::string text = name_of(entry.stream) + ':' + std::to_string(entry.next);
    return credit ? text + ':' + std::to_string(entry.credit) : text;
}

void describe_data(const wire::FrameView& frame, Fields& out) {
    const bool data = frame.type == wire::FrameType::kData;
    out["type"] = data ? "DATA" : frame.type == wire::FrameType::kCounted ? "COUNTED" : "MCAST";
    out["seq"] = std::to_string(frame.seq.value);
    out["text"] = std::string(reinterpret_cast<const char*>(frame.body), frame.length);
    for (int i = 0; i < 8; ++i) {
        if ((frame.flags & 0x80 >> i) != 0) out["flags"] += kFlagLetters[i];
    }
    if (!data) out["stream"] = name_of(frame.handle);
    if (frame.ack != nullptr) out["ack"] = text_of(*frame.ack, false);
    for (int i = 0; i < frame.after_count; ++i) {
        if (i > 0) out["after"] += ',';
        out["after"] += name_of(frame.after[i].stream) + ':' + std::to_string(frame.after[i].seq);
    }
    if (frame.subset != 0) out["subset"] = std::to_string(frame.subset);
}

void describe_ack(const wire::FrameView& frame, Fields& out) {
    out["type"] = "ACK";
    const auto* entries = reinterpret_cast<const wire::AckEntry*>(frame.body);
    for (std::size_t i = 0; i < frame.length / sizeof(wire::AckEntry); ++i) {
        const char* comma = i > 0 ? "," : "";
        out["entries"] += comma + text_of(entries[i], false);
        out["credit"] += comma + std::to_string(entries[i].credit);
        out["delay"] += comma + std::to_string(entries[i].delay_us);
    }
}

}  // namespace

Nanos time_of(const std::string& text) {
    std::size_t end = 0;
    const double value = std::stod(text, &end);
    const std::string unit = text.substr(end);
    const Nanos scale = unit == "ns"   ? 1
                        : unit == "us" ? kMicrosecond
                        : unit == "ms" ? kMillisecond
                        : unit == "s"  ? kSecond
                                       : throw Failed("no unit in " + text);
    return static_cast<Nanos>(value * static_cast<double>(scale));
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);)
        parts.push_back(part);
    return parts;
}

GroupHandle group_handle(const std::string& number) {
    return kGroupBit | static_cast<GroupHandle>(0x100 + std::stoul(number));
}
StreamId stream_of(const std::string& name) {
    if (name == "world") return kWorld;
    if (name[0] == 'g') return group_handle(name.substr(1));
    return static_cast<StreamId>(std::stoul(name));
}

std::uint8_t flags_of(const std::string& letters) {
    std::uint8_t flags = 0;
    for (const char letter : letters) {
        const char* at = std::strchr(kFlagLetters, letter);
        if (at == nullptr) throw Failed(std::string("unknown flag ") + letter);
        flags = static_cast<std::uint8_t>(flags | 0x80U >> (at - kFlagLetters));
    }
    return flags;
}

Fields describe(const wire::FrameView& frame) {
    Fields out;
    out["to"] =
        frame.destination == kBroadcastMac ? "all" : std::to_string(frame.destination.octets[5]);
    switch (frame.type) {
        case wire::FrameType::kData:
        case wire::FrameType::kMcast:
        case wire::FrameType::kCounted:
            describe_data(frame, out);
            break;
        case wire::FrameType::kAck:
            describe_ack(frame, out);
            break;
        case wire::FrameType::kReq: {
            const auto& body = *reinterpret_cast<const wire::ReqBody*>(frame.body);
            out["type"] = "REQ";
            out["stream"] = name_of(body.ack.stream);
            out["next"] = std::to_string(body.ack.next);
            out["bitmap"] = hex(frame.body + sizeof body, body.bitmap_octets);
            break;
        }
        case wire::FrameType::kProbe:
            out["type"] = "PROBE";
            out["stream"] = name_of(reinterpret_cast<const wire::ProbeBody*>(frame.body)->stream);
            out["seq"] = std::to_string(frame.seq.value);
            out["handle"] = is_group(frame.handle) ? "group" : "endpoint";
            break;
        case wire::FrameType::kFlow: {
            const auto& body = *reinterpret_cast<const wire::FlowBody*>(frame.body);
            constexpr const char* kKinds[] = {"?", "reserve", "grant", "refuse"};
            out["type"] = "FLOW";
            out["kind"] = kKinds[static_cast<std::size_t>(body.kind)];
            out["stream"] = name_of(body.stream);
            out["first"] = std::to_string(body.first);
            out["count"] = std::to_string(body.count);
            break;
        }
        case wire::FrameType::kStatus: {
            const auto& body = *reinterpret_cast<const wire::StatusBody*>(frame.body);
            const auto* next = reinterpret_cast<const Be32*>(frame.body + sizeof body);
            out["type"] = "STATUS";
            out["global"] = std::to_string(body.global);
            out["wanted"] = std::to_string(body.flags & wire::kStatusWanted);
            for (std::size_t i = 0; i < body.count; ++i)
                out["next"] += (i > 0 ? "," : "") + std::to_string(next[i]);
            break;
        }
        case wire::FrameType::kNack: {
            const auto& body = *reinterpret_cast<const wire::NackBody*>(frame.body);
            constexpr const char* kKinds[] = {"?", "request", "personal", "global", "named"};
            out["type"] = "NACK";
            out["kind"] = kKinds[static_cast<std::size_t>(body.kind)];
            out["from"] = std::to_string(body.from);
            out["to"] = std::to_string(body.to);
            break;
        }
        case wire::FrameType::kJob:
        case wire::FrameType::kNode:
        case wire::FrameType::kLink:
            throw Failed("a member sent an engine's frame");
    }
    return out;
}

std::string text_of(const Fields& fields) {
    std::string text = fields.at("type");
    for (const auto& [key, value] : fields) {
        if (key != "type") text.append(" ").append(key).append("=").append(value);
    }
    return text;
}

}  // namespace ulc::urtp::test
