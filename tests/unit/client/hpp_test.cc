// SPDX-License-Identifier: BSD-3-Clause
// The C++ face compiles alone, throws what the C calls return, and closes what it opened.
#include "client/ulc.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace {

TEST(Hpp, a_failure_to_open_is_an_exception_with_code_and_advice) {
    try {
        const ulc::Endpoint endpoint("/nonexistent/engine.sock");
        FAIL();
    } catch (const ulc::Error& error) {
        EXPECT_EQ(error.code(), ULC_ERR_NO_ENGINE);
        EXPECT_NE(std::string(error.what()).find("start ulc-engine"), std::string::npos);
    }
}

TEST(Hpp, endpoints_move_and_requests_stay) {
    static_assert(std::is_nothrow_move_constructible_v<ulc::Endpoint>);
    static_assert(!std::is_copy_constructible_v<ulc::Endpoint>);
    static_assert(!std::is_move_constructible_v<ulc::Request>);
}

TEST(C, null_arguments_are_invalid_or_ignored) {
    ulc_request request;
    EXPECT_EQ(ulc_open(nullptr, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_send(nullptr, 0, 0, nullptr, 0, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_receive(nullptr, 0, 0, 0, nullptr, 0, &request), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_test(nullptr, &request, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_wait(nullptr, 0), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_job_state(nullptr), ULC_ERR_INVALID);
    ulc_close(nullptr);
}

TEST(C, every_error_has_a_text_and_unknown_ones_say_so) {
    for (int error = ULC_OK; error <= ULC_ERR_UNSUPPORTED; ++error)
        EXPECT_STRNE(ulc_error_text(error), "unknown error") << error;
    EXPECT_STREQ(ulc_error_text(999), "unknown error");
    EXPECT_STREQ(ulc_version(), ULC_VERSION);
}

}  // namespace
