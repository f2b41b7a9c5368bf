// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/trace/pcapng.h"

#include <bit>
#include <cstdint>
#include <string_view>

namespace ulc::tools {
namespace {

// Block types, options and values of the draft, sections 4 and 3.5.
constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1A2B3C4D;
constexpr std::uint16_t kLinkEthernet = 1;
constexpr std::uint16_t kOptionComment = 1;
constexpr std::uint16_t kOptionName = 2;         // of an interface
constexpr std::uint16_t kOptionFlags = 2;        // of a packet
constexpr std::uint16_t kOptionResolution = 9;   // of an interface: 9 is nanoseconds
constexpr std::uint16_t kOptionApplication = 4;  // of a section
constexpr std::uint32_t kInbound = 1;
constexpr std::uint32_t kOutbound = 2;

static_assert(std::endian::native == std::endian::little, "blocks are written as they lie");

template <typename Number>
void put(std::string& to, Number number) {
    to.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void pad(std::string& to) { to.append((4 - to.size() % 4) % 4, '\0'); }

void put_option(std::string& to, std::uint16_t code, std::string_view value) {
    put(to, code);
    put(to, static_cast<std::uint16_t>(value.size()));
    to.append(value);
    pad(to);
}

/// Returns type, length, body and length.
std::string block_of(std::uint32_t type, const std::string& body) {
    const auto length = static_cast<std::uint32_t>(body.size() + 12);
    std::string block;
    put(block, type);
    put(block, length);
    block += body;
    put(block, length);
    return block;
}

}  // namespace

std::string pcapng_head(const TraceFile& trace) {
    std::string section;
    put(section, kByteOrder);
    put(section, std::uint16_t{1});
    put(section, std::uint16_t{0});
    put(section, std::int64_t{-1});  // the section's length is not known
    put_option(section, kOptionApplication, "ulc dump " ULC_VERSION);
    put_option(section, kOptionComment, "engine process " + std::to_string(trace.engine_pid()));
    put_option(section, 0, "");
    std::string head = block_of(kSectionHeader, section);
    for (const std::string& net : trace.nets()) {
        std::string interface;
        put(interface, kLinkEthernet);
        put(interface, std::uint16_t{0});
        put(interface, static_cast<std::uint32_t>(abi::kTraceFrameBytes));
        put_option(interface, kOptionName, "net " + net);
        put_option(interface, kOptionResolution, "\x09");
        put_option(interface, 0, "");
        head += block_of(kInterface, interface);
    }
    return head;
}

std::string pcapng_block(const TraceFile& trace, const TimedRecord& record) {
    if (record.kind == abi::TraceKind::kCounter) return {};
    const auto time =
        static_cast<std::uint64_t>(record.at) + static_cast<std::uint64_t>(trace.realtime_ahead());
    std::string body;
    put(body, std::uint32_t{record.source});
    put(body, static_cast<std::uint32_t>(time >> 32));
    put(body, static_cast<std::uint32_t>(time));
    put(body, std::uint32_t{record.kept});
    put(body, record.amount);
    body.append(reinterpret_cast<const char*>(record.bytes), record.kept);
    pad(body);
    std::string flags;
    put(flags, record.kind == abi::TraceKind::kFrameIn ? kInbound : kOutbound);
    put_option(body, kOptionFlags, flags);
    if (record.kind == abi::TraceKind::kGivenUp)
        put_option(body, kOptionComment, "given up by the port");
    put_option(body, 0, "");
    return block_of(kEnhancedPacket, body);
}

}  // namespace ulc::tools
