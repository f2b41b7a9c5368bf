// SPDX-License-Identifier: BSD-3-Clause
// Names one step of one schedule that the engine runs (offload.h), for its sender or receiver. A
// name that outlived its schedule finds nothing.
#pragma once

#include <cstdint>

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

struct Sink {
    std::uint32_t offload = 0;  ///< 0: none
    std::uint32_t step = 0;

    void fields(state::Archive& archive);
    [[nodiscard]] explicit operator bool() const noexcept { return offload != 0; }
};

}  // namespace ulc::endpoint
