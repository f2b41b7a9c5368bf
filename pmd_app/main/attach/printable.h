// SPDX-License-Identifier: BSD-3-Clause
// Text that a client chose, for a log or a message.
#pragma once

#include <string>
#include <string_view>

namespace ulc::daemon {

/// Octets other than printable ASCII, and the backslash, as \xNN: no line of a log can be forged.
[[nodiscard]] inline std::string printable(std::string_view text) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (const char c : text) {
        const auto octet = static_cast<unsigned char>(c);
        if (octet >= 0x20 && octet < 0x7f && c != '\\') {
            out += c;
        } else {
            out += "\\x";
            out += kDigits[octet >> 4];
            out += kDigits[octet & 15];
        }
    }
    return out;
}

}  // namespace ulc::daemon
