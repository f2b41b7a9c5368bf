// SPDX-License-Identifier: BSD-3-Clause
#include "base/state/schema.h"

#include "base/check.h"

namespace ulc::state {

namespace {

// Constant before any registration runs.
constinit const Registration* rows = nullptr;
constinit std::size_t rows_count = 0;

}  // namespace

Registration::Registration(const StructRow& of) noexcept
    : row(of), next(rows), place(rows_count++) {
    ULC_CHECK(find(of.name) == nullptr);
    rows = this;
}

const Registration* Registration::last() noexcept { return rows; }

const Registration* Registration::find(std::string_view name) noexcept {
    const Registration* at = rows;
    while (at != nullptr && at->row.name != name)
        at = at->next;
    return at;
}

std::size_t Registration::count() noexcept { return rows_count; }

}  // namespace ulc::state
