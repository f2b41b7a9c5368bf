// SPDX-License-Identifier: BSD-3-Clause
// The sentence behind ulc_last_error_text(): one per thread.
#pragma once

namespace ulc::client {

/// Formats as printf. Arguments may be the text itself.
[[gnu::format(printf, 1, 2)]] void set_last_error(const char* format, ...) noexcept;
[[nodiscard]] const char* last_error() noexcept;

}  // namespace ulc::client
