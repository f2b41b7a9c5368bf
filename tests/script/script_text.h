// SPDX-License-Identifier: BSD-3-Clause
// Packet scripts as text: the words of a line, and the names of times, streams, flags and frames.
// Functions throw Failed for malformed text.
#pragma once

#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/urtp/world.h"

namespace ulc::urtp::test {

using Fields = std::map<std::string, std::string>;

struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A line's words; `key=value` words separate from bare ones.
struct Line {
    std::string verb;
    std::vector<std::string> words;
    Fields fields;

    explicit Line(const std::string& text) {
        std::istringstream in(text.substr(0, text.find('#')));
        std::string word;
        in >> verb;
        while (in >> word) {
            const std::size_t equals = word.find('=');
            if (equals == std::string::npos) {
                words.push_back(word);
            } else {
                fields[word.substr(0, equals)] = word.substr(equals + 1);
            }
        }
    }
    [[nodiscard]] std::string get(const std::string& key, const std::string& otherwise = "") const {
        const auto at = fields.find(key);
        return at != fields.end() ? at->second : otherwise;
    }
    [[nodiscard]] std::uint32_t number(const std::string& key, std::uint32_t otherwise = 0) const {
        return fields.contains(key) ? static_cast<std::uint32_t>(std::stoul(get(key))) : otherwise;
    }
};

/// Parses "30us", in ns, us, ms or s.
Nanos time_of(const std::string& text);
std::vector<std::string> split(const std::string& text, char at);
GroupHandle group_handle(const std::string& number);
/// Parses "world", "g3" or a rank.
StreamId stream_of(const std::string& name);
/// Parses the flags of docs/PROTOCOL.md §2: "FLA".
std::uint8_t flags_of(const std::string& letters);
/// Returns a frame that the member sent, as fields.
Fields describe(const wire::FrameView& frame);
std::string text_of(const Fields& fields);

}  // namespace ulc::urtp::test
