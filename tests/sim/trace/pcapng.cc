// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/trace/pcapng.h"

#include <cstring>

namespace ulc::sim {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kOptionInterfaceName = 2;
constexpr std::uint16_t kOptionTimeResolution = 9;
constexpr std::uint16_t kOptionPacketFlags = 2;

/// A block's body: little endian, as the magic number says, options padded to 4 octets.
class Body {
public:
    Body& u16(std::uint32_t value) { return little(value, 2); }
    Body& u32(std::uint32_t value) { return little(value, 4); }
    Body& octets(const void* data, std::size_t size) {
        const auto* at = static_cast<const std::uint8_t*>(data);
        bytes_.insert(bytes_.end(), at, at + size);
        while (bytes_.size() % 4 != 0)
            bytes_.push_back(0);
        return *this;
    }
    Body& option(std::uint16_t code, const void* data, std::size_t size) {
        return u16(code).u16(static_cast<std::uint32_t>(size)).octets(data, size);
    }
    std::vector<std::uint8_t> take() { return std::move(bytes_); }

private:
    Body& little(std::uint32_t value, unsigned size) {
        for (unsigned n = 0; n < size; ++n)
            bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * n)));
        return *this;
    }
    std::vector<std::uint8_t> bytes_;
};

}  // namespace

std::unique_ptr<PcapngTrace> PcapngTrace::open(const std::string& path, std::uint16_t nodes) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return nullptr;
    std::unique_ptr<PcapngTrace> trace(new PcapngTrace(file));
    // Version 1.0; length of the section unknown: -1.
    trace->block(kSectionHeader,
                 Body().u32(kByteOrderMagic).u16(1).u16(0).u32(UINT32_MAX).u32(UINT32_MAX).take());
    const std::uint8_t nanoseconds = 9;
    for (std::uint16_t node = 0; node < nodes; ++node) {
        const std::string name = "node" + std::to_string(node);
        trace->block(kInterfaceDescription,
                     Body()
                         .u16(kLinkTypeEthernet)
                         .u16(0)
                         .u32(0)  // no limit of length
                         .option(kOptionInterfaceName, name.data(), name.size())
                         .option(kOptionTimeResolution, &nanoseconds, 1)
                         .option(kOptionEnd, nullptr, 0)
                         .take());
    }
    return trace;
}

void PcapngTrace::on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                           Nanos at) {
    const auto time = static_cast<std::uint64_t>(at);
    const auto length = static_cast<std::uint32_t>(frame.size());
    const std::uint8_t flags[4] = {static_cast<std::uint8_t>(outbound ? 2 : 1), 0, 0, 0};
    block(kEnhancedPacket, Body()
                               .u32(port)
                               .u32(static_cast<std::uint32_t>(time >> 32))
                               .u32(static_cast<std::uint32_t>(time))
                               .u32(length)
                               .u32(length)
                               .octets(frame.data(), frame.size())
                               .option(kOptionPacketFlags, flags, sizeof flags)
                               .option(kOptionEnd, nullptr, 0)
                               .take());
}

void PcapngTrace::block(std::uint32_t type, const std::vector<std::uint8_t>& body) {
    const auto length = static_cast<std::uint32_t>(body.size() + 12);
    const std::vector<std::uint8_t> head = Body().u32(type).u32(length).take();
    const std::vector<std::uint8_t> tail = Body().u32(length).take();
    for (const auto* part : {&head, &body, &tail})
        good_ = std::fwrite(part->data(), 1, part->size(), file_.get()) == part->size() && good_;
}

}  // namespace ulc::sim
