// SPDX-License-Identifier: BSD-3-Clause
// This file judges what a client says in the handshake (abi/attach.h): octets of a packet become a
// checked request, or a refusal in words. Pure: no socket, no engine. Used by attach_handshake.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "abi/attach.h"
#include "abi/put_text.h"
#include "base/error.h"

namespace ulc::daemon {

/// Offers of this engine.
struct HelloRules {
    std::vector<std::string> nets;  ///< names, by index; a client that names none gets the first
    abi::RegionSizes sizes;         ///< given when a client asks for 0
    abi::RegionSizes sizes_max;     ///< more is cut to this
};

/// A client's request, as far as it may have it.
struct HelloRequest {
    abi::HelloKind kind = abi::HelloKind::kAttach;
    std::uint32_t net = 0;
    abi::RegionLayout layout{};  ///< place of all parts of its region, if it attaches
};

/// Judges a Hello. Errors (why: the sentence for the client): kVersion, kInvalid.
[[nodiscard]] Err judge_hello(const HelloRules& rules, const void* packet, std::size_t octets,
                              HelloRequest& out, std::string& why);

/// Tells whether a packet says that the client has mapped its region.
[[nodiscard]] bool is_mapped(const void* packet, std::size_t octets) noexcept;

/// Makes an Offer or a Ready.
template <typename Reply>
[[nodiscard]] Reply reply_with(Err error, const std::string& text) {
    Reply reply{};
    reply.magic = abi::kHelloMagic;
    reply.status = static_cast<std::int32_t>(error);
    put_text(reply.text, text);
    return reply;
}

}  // namespace ulc::daemon
