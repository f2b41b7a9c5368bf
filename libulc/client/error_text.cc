// SPDX-License-Identifier: BSD-3-Clause
#include "client/error_text.h"

#include <cstdarg>
#include <cstdio>

#include "abi/put_text.h"
#include "base/error.h"
#include "client/ulc.h"

namespace ulc::client {
namespace {

thread_local char text[2048];  // a sentence of an engine, with its devices or job before it

}  // namespace

void set_last_error(const char* format, ...) noexcept {
    char whole[2 * sizeof text];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    put_text(text, whole);
}

const char* last_error() noexcept { return text; }

// ulc.h repeats the numbers of errors.def, because C users see neither.
#define ULC_ERROR(name, c_name, number, text) static_assert(ULC_ERR_##c_name == (number));
#include "base/errors.def"
#undef ULC_ERROR

}  // namespace ulc::client

extern "C" {

const char* ulc_error_text(int error) {
    return ulc::text_of(static_cast<ulc::Err>(error)).data();  // literals: terminated
}

const char* ulc_last_error_text(void) { return ulc::client::last_error(); }

const char* ulc_version(void) { return ULC_VERSION; }
}
