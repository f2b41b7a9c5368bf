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
#define ULC_SAME(c_name, name) static_assert((c_name) == static_cast<int>(Err::name))
ULC_SAME(ULC_ERR_AGAIN, kAgain);
ULC_SAME(ULC_ERR_INVALID, kInvalid);
ULC_SAME(ULC_ERR_NO_MEMORY, kNoMemory);
ULC_SAME(ULC_ERR_VERSION, kVersion);
ULC_SAME(ULC_ERR_CORRUPT, kCorrupt);
ULC_SAME(ULC_ERR_PERMISSION, kPermission);
ULC_SAME(ULC_ERR_NO_ENGINE, kNoEngine);
ULC_SAME(ULC_ERR_CLOSED, kClosed);
ULC_SAME(ULC_ERR_PEER_LEFT, kPeerLeft);
ULC_SAME(ULC_ERR_PEER_DIED, kPeerDied);
ULC_SAME(ULC_ERR_JOB_SIZE, kJobSize);
ULC_SAME(ULC_ERR_RANK_TAKEN, kRankTaken);
ULC_SAME(ULC_ERR_TWO_ROSTERS, kTwoRosters);
ULC_SAME(ULC_ERR_TIMEOUT, kTimeout);
ULC_SAME(ULC_ERR_NOT_FORMED, kNotFormed);
ULC_SAME(ULC_ERR_MISMATCH, kMismatch);
ULC_SAME(ULC_ERR_TRUNCATED, kTruncated);
ULC_SAME(ULC_ERR_LIMIT, kLimit);
ULC_SAME(ULC_ERR_PORT_DOWN, kPortDown);
ULC_SAME(ULC_ERR_SYSTEM, kSystem);
ULC_SAME(ULC_ERR_UNSUPPORTED, kUnsupported);
ULC_SAME(ULC_ERR_PROFILE, kProfile);
ULC_SAME(ULC_ERR_LOST, kLost);
ULC_SAME(ULC_ERR_PEER_SLOW, kPeerSlow);
ULC_SAME(ULC_ERR_PEER_SILENT, kPeerSilent);
ULC_SAME(ULC_ERR_EXCLUDED, kExcluded);
#undef ULC_SAME

}  // namespace ulc::client

extern "C" {

const char* ulc_error_text(int error) {
    return ulc::text_of(static_cast<ulc::Err>(error)).data();  // literals: terminated
}

const char* ulc_last_error_text(void) { return ulc::client::last_error(); }

const char* ulc_version(void) { return ULC_VERSION; }
}
