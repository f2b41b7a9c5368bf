// SPDX-License-Identifier: BSD-3-Clause
// This file finds the word that somebody meant who mistyped it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ulc {

/// Returns the word of `words` that `mistyped` is most like, the first of several. Returns an empty
/// string if each differs in more than a third of its letters and in more than one.
[[nodiscard]] std::string nearest_word(std::string_view mistyped,
                                       const std::vector<std::string>& words);

}  // namespace ulc
