// SPDX-License-Identifier: BSD-3-Clause
// The reader of coll/table_text.h: by recursive descent, line by line for messages. The meaning of
// a rule is validated at its line.
#include "coll/table_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace ulc::coll {
namespace {

/// Thrown to the end of the reading, not out of this file.
struct Mistake {
    std::string text;
};

class Reader {
public:
    Reader(std::string_view file, std::string_view text) : file_(file), text_(text) {}

    [[noreturn]] void fail(std::string_view key, const std::string& what, unsigned line = 0) const {
        std::string text(file_);
        text += ":" + std::to_string(line > 0 ? line : line_) + ": ";
        if (!key.empty()) text += std::string(key) + ": ";
        throw Mistake{text + what};
    }
    [[nodiscard]] unsigned line() const noexcept { return line_; }

    /// Blanks, and between lines also comments and ends of lines.
    void skip(bool lines = true) noexcept {
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '#' && lines) {
                while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n')
                    ++at_;
            } else if (c == '\n' && lines) {
                ++line_;
            } else if (c != ' ' && c != '\t' && c != '\r') {
                return;
            }
        }
    }
    [[nodiscard]] bool end() noexcept {
        skip();
        return at_ == text_.size();
    }
    [[nodiscard]] bool take(char wanted, bool lines = true) noexcept {
        skip(lines);
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    void expect(char wanted, std::string_view key, bool lines = true) {
        if (take(wanted, lines)) return;
        fail(key, std::string("'") + wanted + "' is missing here");
    }
    /// A name of letters, digits and '_', or any text in quotes.
    [[nodiscard]] std::string_view key() {
        skip(false);
        if (at_ < text_.size() && text_[at_] == '"') return quoted("");
        const std::size_t first = at_;
        while (at_ < text_.size() &&
               (text_[at_] == '_' || (text_[at_] >= 'a' && text_[at_] <= 'z') ||
                (text_[at_] >= 'A' && text_[at_] <= 'Z') ||
                (text_[at_] >= '0' && text_[at_] <= '9')))
            ++at_;
        if (at_ == first) fail("", "a key is missing here, as in: version = 1");
        return text_.substr(first, at_ - first);
    }
    [[nodiscard]] std::string_view quoted(std::string_view key) {
        expect('"', key, false);
        const std::size_t first = at_;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n' && text_[at_] != '\\')
            ++at_;
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
        if (at_ == text_.size() || text_[at_] != '"')
#else
        if (text_[at_] != '"')
#endif
            fail(key, "must be a text in quotes, on one line and without \\");
        return text_.substr(first, at_++ - first);
    }
    [[nodiscard]] std::uint64_t whole(std::string_view key) {
        std::uint64_t value = 0;
        return number(key, value, "must be a whole number from 0 on");
    }
    [[nodiscard]] double real(std::string_view key) {
        double value = 0;
        return number(key, value, "must be a number");
    }

private:
    template <typename T>
    T number(std::string_view key, T& value, const char* what) {
        skip(false);
        const char* first = text_.data() + at_;
        const auto [last, error] = std::from_chars(first, text_.data() + text_.size(), value);
        if (error != std::errc{} || (last != text_.data() + text_.size() && word(*last)))
            fail(key, what);
        at_ += static_cast<std::size_t>(last - first);
        return value;
    }
    [[nodiscard]] static bool word(char c) noexcept {
        return c == '.' || c == '_' || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    }

    std::string_view file_;
    std::string_view text_;
    std::size_t at_ = 0;
    unsigned line_ = 1;
};

/// Keys of one table, each of which may be there once.
class Keys {
public:
    [[nodiscard]] std::string_view next(Reader& reader) {
        const std::string_view key = reader.key();
        if (std::ranges::find(seen_, key) != seen_.end())
            reader.fail(key, "is there already; a key may be there once");
        seen_.push_back(key);
        reader.expect('=', key, false);
        return key;
    }

private:
    std::vector<std::string_view> seen_;
};

/// "a, b or c".
template <typename Names>
[[nodiscard]] std::string list(const Names& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
    return text;
}

[[nodiscard]] Op operation(Reader& reader) {
    const std::string_view name = reader.quoted("operation");
    std::vector<std::string_view> names;
    for (std::uint8_t i = 0; i < kOps; ++i) {
        names.push_back(name_of(static_cast<Op>(i)));
        if (names.back() == name) return static_cast<Op>(i);
    }
    reader.fail("operation", "must be " + list(names) + ", and is \"" + std::string(name) + "\"");
}

[[nodiscard]] Medium medium(Reader& reader) {
    const std::string_view name = reader.quoted("medium");
    Medium out{};
    if (medium_of(name, out)) return out;
    reader.fail("medium",
                "must be " + list(kMediumNames) + ", and is \"" + std::string(name) + "\"");
}

void judge_choice(const Reader& reader, const Rule& rule) {
    std::vector<std::string_view> names;
    for (const Algorithm& algorithm : algorithms())
        if (algorithm.op == rule.op) names.push_back(algorithm.name);
    const std::string_view text = rule.choice;
    Choice choice;
    const Err parsed = parse_choice(rule.op, text, choice);
    const Algorithm* known = find_algorithm(rule.op, text.substr(0, text.find_first_of(":@")));
    if (known == nullptr) {
        reader.fail("choice",
                    std::string(name_of(rule.op)) + " has no algorithm \"" + rule.choice +
                        "\"; there are " + list(names),
                    rule.line);
    }
    if (parsed != Err::kOk)
        reader.fail("choice", "must be as name:k@octets, and is \"" + rule.choice + "\"",
                    rule.line);
    if (text.find(':') != std::string_view::npos && !known->has_k)
        reader.fail("choice", std::string(known->name) + " has no \":k\"", rule.line);
    if (choice.concurrent > kConcurrentMax) {
        reader.fail("choice",
                    "\":k\" must be from 1 to " + std::to_string(kConcurrentMax) + ", and is " +
                        std::to_string(choice.concurrent),
                    rule.line);
    }
    if (choice.segment < kSegmentMin || choice.segment > kSegmentMax) {
        reader.fail("choice",
                    "\"@octets\" must be from " + std::to_string(kSegmentMin) + " to " +
                        std::to_string(kSegmentMax) + ", and is " + std::to_string(choice.segment),
                    rule.line);
    }
}

/// Reads one bound of a rule, if the key names one.
[[nodiscard]] bool bound(Reader& reader, std::string_view key, Rule& rule) {
    const std::size_t cut = key.rfind('_');
    if (cut == std::string_view::npos) return false;
    const std::string_view of = key.substr(0, cut);
    const std::string_view end = key.substr(cut + 1);
    if (end != "from" && end != "to") return false;
    Span* span = of == "per_node" ? &rule.per_node
                 : of == "ranks"  ? &rule.ranks
                 : of == "octets" ? &rule.octets
                                  : nullptr;
    if (span == nullptr) return false;
    (end == "from" ? span->from : span->to) = reader.whole(key);
    if (span->from > span->to)
        reader.fail(key, std::string(of) + " begins at " + std::to_string(span->from) +
                             " and ends before, at " + std::to_string(span->to));
    return true;
}

[[nodiscard]] Rule rule(Reader& reader) {
    Rule out;
    out.line = reader.line();
    bool named = false;
    Keys keys;
    do {
        const std::string_view key = keys.next(reader);
        if (key == "operation") {
            out.op = operation(reader);
            named = true;
        } else if (key == "medium") {
            out.medium = medium(reader);
        } else if (key == "choice") {
            out.choice = reader.quoted(key);
        } else if (!bound(reader, key, out)) {
            reader.fail(
                key,
                "is not a key of a rule; there are operation, medium, choice, and per_node, "
                "ranks and octets, each with _from and _to");
        }
    } while (reader.take(',', false));
    if (!named) reader.fail("operation", "is missing in this rule", out.line);
    if (out.choice.empty()) reader.fail("choice", "is missing in this rule", out.line);
    judge_choice(reader, out);
    return out;
}

[[nodiscard]] std::uint16_t ranks(Reader& reader, std::string_view key) {
    const std::uint64_t value = reader.whole(key);
    if (value < 1 || value > 65534) reader.fail(key, "must be from 1 to 65534");
    return static_cast<std::uint16_t>(value);
}

void times(Reader& reader, Cell& out) {
    reader.expect('{', "us", false);
    Keys keys;
    do {
        const std::string choice(keys.next(reader));
        out.us.emplace_back(choice, reader.real(choice));
    } while (reader.take(',', false));
    reader.expect('}', "us", false);
}

[[nodiscard]] Cell cell(Reader& reader) {
    Cell out;
    Keys keys;
    do {
        const std::string_view key = keys.next(reader);
        if (key == "operation") {
            out.at.op = operation(reader);
        } else if (key == "medium") {
            out.at.medium = medium(reader);
        } else if (key == "per_node") {
            out.at.per_node = ranks(reader, key);
        } else if (key == "ranks") {
            out.at.ranks = ranks(reader, key);
        } else if (key == "octets") {
            out.at.octets = reader.whole(key);
        } else if (key == "noise") {
            out.noise = reader.real(key);
        } else if (key == "us") {
            times(reader, out);
        } else {
            reader.fail(key,
                        "is not a key of a cell; there are operation, medium, per_node, ranks, "
                        "octets, noise and us");
        }
    } while (reader.take(',', false));
    if (out.us.empty()) reader.fail("us", "is missing in this cell");
    return out;
}

template <typename T>
void rows(Reader& reader, std::string_view key, std::vector<T>& out, T (*read)(Reader&)) {
    reader.expect('[', key, false);
    while (!reader.take(']')) {
        reader.expect('{', key);
        if (out.size() == kTableRowsMax)
            reader.fail(key, "has more than " + std::to_string(kTableRowsMax) + " lines");
        out.push_back(read(reader));
        reader.expect('}', key, false);
        if (reader.take(',')) continue;
        reader.expect(']', key);
        return;
    }
}

void judge_overlaps(const Reader& reader, const std::vector<Rule>& rules) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            if (!rules[i].meets(rules[k])) continue;
            reader.fail("rule",
                        "overlaps the rule of line " + std::to_string(rules[k].line) +
                            "; no call may match two",
                        rules[i].line);
        }
    }
}

void file(Reader& reader, TableText& out) {
    Keys keys;
    if (reader.end() || keys.next(reader) != "version") {
        reader.fail("version", "must stand first: version = " + std::to_string(kTableVersion));
    }
    if (const std::uint64_t version = reader.whole("version"); version != kTableVersion) {
        reader.fail("version", "is " + std::to_string(version) + ", and this library reads " +
                                   std::to_string(kTableVersion) +
                                   "; make the table again with its own ulc tune");
    }
    while (!reader.end()) {
        const std::string_view key = keys.next(reader);
        if (key == "source") {
            out.source = reader.quoted(key);
        } else if (key == "rule") {
            rows(reader, key, out.rules, rule);
        } else if (key == "cell") {
            rows(reader, key, out.cells, cell);
        } else {
            reader.fail(key, "is not a key here; there are version, source, rule and cell");
        }
    }
    judge_overlaps(reader, out.rules);
}

}  // namespace

Err parse_table(std::string_view name, std::string_view text, TableText& out,
                std::string& mistake) {
    out = {};
    Reader reader(name, text);
    try {
        file(reader, out);
    } catch (const Mistake& found) {
        mistake = found.text;
        return Err::kInvalid;
    }
    return Err::kOk;
}

}  // namespace ulc::coll
