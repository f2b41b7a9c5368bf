// SPDX-License-Identifier: BSD-3-Clause
// The memory control group of this process, and whether the kernel killed a process of it because
// its memory was used up.
#pragma once

#include <cstdint>
#include <string>

namespace ulc::tools {

class MemoryCgroup {
public:
    /// Finds the group (version 2 or 1) and remembers its count of kills.
    MemoryCgroup();

    /// True if a process of the group was killed since this object was made. Reads a file.
    [[nodiscard]] bool killed() const;
    /// Its folder; empty: there is none, and killed() is false.
    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }

private:
    [[nodiscard]] std::uint64_t kills() const;

    std::string folder_;
    std::uint64_t kills_before_ = 0;
};

}  // namespace ulc::tools
