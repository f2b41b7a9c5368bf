// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/say.h"

#include <cstdarg>
#include <cstdio>

namespace ulc::ofi {

void say(const char* format, ...) noexcept {
    char text[2048];
    std::va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    std::fprintf(stderr, "ulc: %s\n", text);
}

}  // namespace ulc::ofi
