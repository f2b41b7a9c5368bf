// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/tune/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "tools/ulc/programs.h"

namespace ulc::tools {

coll::TableText shipped_table() {
    coll::TableText all;
    for (const std::string_view text : shipped_texts()) {
        coll::TableText one;
        std::string mistake;
        const Err error = coll::parse_table("shipped", text, one, mistake);
        ULC_CHECK(error == Err::kOk);
        all.source += (all.source.empty() ? "" : "; ") + one.source;
        all.rules.insert(all.rules.end(), one.rules.begin(), one.rules.end());
        all.cells.insert(all.cells.end(), one.cells.begin(), one.cells.end());
    }
    return all;
}

std::string read_table(const std::string& path, coll::TableText& out) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file.good())
        return path + ": cannot be read (" + std::strerror(errno) + "); is the path right?";
    std::string mistake;
    static_cast<void>(coll::parse_table(path, text.str(), out, mistake));
    return mistake;
}

std::string mistake_in_environment() {
    const std::string path = environment_of("ULC_COLL_TABLE");
    coll::TableText table;
    return path.empty() ? "" : read_table(path, table);
}

}  // namespace ulc::tools
