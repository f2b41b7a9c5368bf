// SPDX-License-Identifier: BSD-3-Clause
// The ports of one process, and how arriving messages fill their buffers [GAMMA §4.4.3.1]. Pure: it
// copies and calls nothing. Used by Process.
//
//   message of `length` bytes:   fill ──▶ | copied = min(length, left) |   left = size − fill
//   then fill += copied; a full buffer is filled from its start by the next message
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ports/gamma.h"

namespace ulc::ports {

using PortNumber = std::uint8_t;

inline constexpr unsigned kPortBits = 8;  ///< low bits of a tag; the rest is the message's number
inline constexpr int kMasterNode = 0;     ///< the instance that releases barriers

/// Error of an arrival; the values of gamma_errno.
enum class Fault : std::uint8_t {
    kNone = 0,
    kFrameLost = GAMMA_ERR_FRAMELOST,
    kTooLong = GAMMA_ERR_MSGTOOLONG,
    kSendFailure = GAMMA_ERR_SENDFAILURE,
};

struct Port {
    // --- output
    bool sends = false;
    std::uint8_t node = 0;  ///< or BROADCAST
    PortNumber to = 0;
    std::uint8_t group = 0;  ///< parallel PID of another group; 0: the own one
    // --- input
    bool receives = false;
    gamma_handler on_message = nullptr;
    gamma_handler on_error = nullptr;
    unsigned char* buffer = nullptr;
    std::size_t size = 0;  ///< bytes; may be known without a buffer
    std::size_t fill = 0;
    /// Counts buffers: a message placed in an earlier one moves no fill
    std::uint32_t binding = 0;
};

/// The place of the first bytes of a message.
struct Place {
    unsigned char* at = nullptr;
    std::size_t copied = 0;
    Fault fault = Fault::kNone;
    std::uint32_t binding = 0;
};

class PortTable {
public:
    [[nodiscard]] Port& operator[](PortNumber number) noexcept { return ports_[number]; }

    /// Binds the port; `port` says all but its fill.
    void bind(PortNumber number, Port port) noexcept {
        port.fill = 0;
        port.binding = ports_[number].binding + 1;
        ports_[number] = port;
    }

    /// Gives it another buffer of the same size. False: no size is known.
    [[nodiscard]] bool attach(PortNumber number, void* buffer) noexcept {
        Port& port = ports_[number];
        if (!port.receives || port.size == 0 || buffer == nullptr) return false;
        port.buffer = static_cast<unsigned char*>(buffer);
        port.fill = 0;
        ++port.binding;
        return true;
    }

    /// Places a message at a port that receives.
    [[nodiscard]] Place place(PortNumber number, std::uint64_t length) const noexcept {
        const Port& port = ports_[number];
        Place place;
        place.binding = port.binding;
        if (length == 0) return place;
        const std::size_t left = port.buffer == nullptr ? 0 : port.size - port.fill;
        place.copied = static_cast<std::size_t>(std::min<std::uint64_t>(length, left));
        place.at = place.copied == 0 ? nullptr : port.buffer + port.fill;
        if (place.copied < length) place.fault = Fault::kTooLong;
        return place;
    }

    /// The bytes are in the buffer, unless it was replaced meanwhile.
    void advance(PortNumber number, const Place& place) noexcept {
        Port& port = ports_[number];
        if (port.binding != place.binding) return;
        port.fill += place.copied;
        if (port.fill == port.size) port.fill = 0;
    }

    void unbind_all() noexcept {
        for (Port& port : ports_)
            port = Port{};
    }

private:
    std::array<Port, GAMMA_PORTS> ports_{};
};

}  // namespace ulc::ports
