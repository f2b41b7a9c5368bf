// SPDX-License-Identifier: BSD-3-Clause
// Sentences for users in fields of fixed size: answers of the handshake, failures of a job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace ulc {

/// Writes a text into a field, terminated. A text that is too long, because of a name in it, ends
/// with " ..." behind the last word that fits.
inline void put_text(std::span<char> field, std::string_view text) noexcept {
    constexpr std::string_view kCut = " ...";
    if (field.size() <= kCut.size()) {
        if (!field.empty()) field[0] = '\0';
        return;
    }
    std::string_view cut;
    if (text.size() >= field.size()) {
        cut = kCut;
        text = text.substr(0, field.size() - 1 - kCut.size());
        if (const std::size_t word = text.rfind(' '); word != std::string_view::npos)
            text = text.substr(0, word);
    }
    char* end = std::copy(text.begin(), text.end(), field.data());
    *std::copy(cut.begin(), cut.end(), end) = '\0';
}

}  // namespace ulc
