// SPDX-License-Identifier: BSD-3-Clause
#include "coll/selection.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"
#include "coll/table_text.h"

namespace ulc::coll {
namespace {

[[nodiscard]] Table make_shipped() {
    std::vector<Rule> rules;
    for (const ShippedRule& rule : shipped_rules())
        rules.push_back(
            {rule.op, rule.medium, rule.per_node, rule.ranks, rule.octets, rule.choice});
    Table table;
    ULC_CHECK(table.set(std::move(rules)) == Err::kOk);
    return table;
}

struct CloseFile {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
};

/// False: errno says why.
[[nodiscard]] bool read_file(const char* path, std::string& out) {
    const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "rbe"));
    if (!file) return false;
    char piece[4096];
    errno = 0;
    std::size_t got = 0;
    while (out.size() <= kTableOctetsMax &&
           (got = std::fread(piece, 1, sizeof piece, file.get())) > 0)
        out.append(piece, got);
    return std::ferror(file.get()) == 0;
}

}  // namespace

const Table& shipped() noexcept {
    static const Table table = make_shipped();
    return table;
}

Err Selection::read(const char* path) {
    std::string text;
    TableText table;
    if (!read_file(path, text)) {
        mistake_ = std::string(path) + ": cannot be read (" + std::strerror(errno) +
                   "); correct the path in ULC_COLL_TABLE, or unset it";
    } else if (text.size() > kTableOctetsMax) {
        mistake_ = std::string(path) + ": is longer than a selection table may be";
    } else if (parse_table(path, text, table, mistake_) == Err::kOk) {
        return own_.set(std::move(table.rules));
    }
    return Err::kInvalid;
}

const Choice& Selection::find(Situation at, const Rule** rule) const noexcept {
    at.medium = medium_of_group(at);
    const Choice* choice = own_.find(at, rule);
    if (choice == nullptr) choice = shipped().find(at, rule);
    while (choice == nullptr && at.medium != Medium::kSwitch) {
        at.medium = stand_in(at.medium);
        choice = shipped().find(at, rule);
    }
    ULC_CHECK(choice != nullptr);
    return *choice;
}

const Selection& selection() {
    static const Selection chosen = [] {
        Selection made;
        const char* path =
            std::getenv("ULC_COLL_TABLE");  // NOLINT(concurrency-mt-unsafe): read only
        if (path != nullptr && *path != '\0') static_cast<void>(made.read(path));
        return made;
    }();
    return chosen;
}

}  // namespace ulc::coll
