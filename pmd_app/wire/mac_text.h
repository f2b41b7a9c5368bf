// SPDX-License-Identifier: BSD-3-Clause
// Station addresses as text, for messages and logs.
#pragma once

#include <cstdio>
#include <string>

#include "wire/ids.h"

namespace ulc {

/// Returns "02:00:00:00:00:01".
[[nodiscard]] inline std::string text_of(const Mac& mac) {
    char text[18];
    const auto& o = mac.octets;
    std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", o[0], o[1], o[2], o[3], o[4],
                  o[5]);
    return text;
}

}  // namespace ulc
