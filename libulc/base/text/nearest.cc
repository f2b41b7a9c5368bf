// SPDX-License-Identifier: BSD-3-Clause
#include "base/text/nearest.h"

#include <algorithm>
#include <numeric>

namespace ulc {
namespace {

/// Returns the number of letters to insert, remove or replace, or of neighbours to exchange, that
/// make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    // Three rows of the table of prefixes: the current one and two before it.
    std::vector<std::size_t> older(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        older.swap(last);
        last.swap(row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
            const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (exchanged) row[j] = std::min(row[j], older[j - 2] + 1);
        }
    }
    return row[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view mistyped, const std::vector<std::string>& words) {
    std::string best;
    std::size_t least = 0;
    for (const std::string& word : words) {
        const std::size_t distance = edit_distance(mistyped, word);
        const std::size_t most = std::max<std::size_t>(1, word.size() / 3);
        if (distance > most || (!best.empty() && distance >= least)) continue;
        best = word;
        least = distance;
    }
    return best;
}

}  // namespace ulc
