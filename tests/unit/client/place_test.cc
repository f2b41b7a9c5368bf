// SPDX-License-Identifier: BSD-3-Clause
// The sentences about a process's place in a job and about its engine, compared whole.
#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "client/attach/defaults.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

/// Variables of the environment, which are unset at the end.
class Environment {
public:
    Environment(std::initializer_list<std::pair<const char*, const char*>> values) {
        for (const auto& [name, value] : values) {
            ::setenv(name, value, 1);  // NOLINT(concurrency-mt-unsafe): one thread
            names_.push_back(name);
        }
    }
    ~Environment() {
        for (const char* name : names_)
            ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    std::vector<const char*> names_;
};

JoinPlace nothing_given() {
    JoinPlace place;
    place.rank = ULC_RANK_ANY;
    place.size = 0;
    return place;
}

TEST(Place, a_variable_that_is_no_number_is_not_called_missing) {
    JoinPlace place = nothing_given();
    {
        const Environment set{{"ULC_JOB", "j"}, {"ULC_RANK", "1"}, {"ULC_SIZE", "two"}};
        EXPECT_FALSE(complete_place(place, kSecond));
        EXPECT_STREQ(ulc_last_error_text(),
                     "ULC_SIZE=two is no number from 1 to 65534; set it to one, or unset it");
    }
    const Environment set{{"ULC_JOB", "j"}, {"ULC_RANK", "-1"}, {"ULC_SIZE", "2"}};
    place = nothing_given();
    EXPECT_FALSE(complete_place(place, kSecond));
    EXPECT_STREQ(ulc_last_error_text(),
                 "ULC_RANK=-1 is no number from 0 to 65533; set it to one, or unset it");
}

TEST(Place, values_that_the_program_gives_count_whatever_the_environment_has) {
    const Environment set{{"ULC_JOB", "j"}, {"ULC_RANK", "x"}, {"ULC_SIZE", "y"}};
    JoinPlace place = nothing_given();
    place.rank = 0;
    place.size = 2;
    EXPECT_TRUE(complete_place(place, kSecond));
}

TEST(Place, nodes_that_are_no_number_are_named) {
    const Environment set{{"ULC_NODES", "0"}};
    std::string engine = "/run/e-%n.sock";
    EXPECT_FALSE(choose_node(engine));
    EXPECT_STREQ(ulc_last_error_text(),
                 "ULC_NODES=0 is no number from 1 to 65534; set it to one, or unset it");
}

TEST_F(ClientTest, a_rank_beyond_the_size_is_refused_in_words) {
    EXPECT_EQ(ulc_join(ep, "j", 5, 2, nullptr), ULC_ERR_INVALID);
    EXPECT_STREQ(ulc_last_error_text(),
                 "rank 5 does not exist in a job of 2: ranks are 0 to 1; correct ULC_RANK or "
                 "ULC_SIZE, or what the program gives instead");
    EXPECT_EQ(ulc_join(ep, "j", 0, ULC_RANK_ANY, nullptr), ULC_ERR_INVALID);
    EXPECT_STREQ(ulc_last_error_text(), "a job has 1 to 65534 ranks, not 65535 (ULC_SIZE)");
    EXPECT_EQ(ulc_join(ep, "", 0, 1, nullptr), ULC_ERR_INVALID);
    EXPECT_STREQ(ulc_last_error_text(), "the job's name has 0 bytes; give it 1 to 64 (ULC_JOB)");
}

TEST(Permission, is_refused_by_engines_and_by_the_kernel) {
    // An engine inside has no allow list; net_af_packet needs a capability.
    EXPECT_STREQ(ulc_error_text(ULC_ERR_PERMISSION),
                 "not permitted, by the engine or by the kernel; the last error's text says which "
                 "permission is missing");
}

TEST(Engine, a_file_that_is_no_socket_is_not_taken_for_that_of_an_engine_that_ended) {
    ulc_endpoint* none = nullptr;
    EXPECT_EQ(ulc_open("/etc/passwd", &none), ULC_ERR_NO_ENGINE);
    EXPECT_STREQ(ulc_last_error_text(),
                 "/etc/passwd: this is no socket; set ULC_ENGINE to that of a ulc-engine");
}

}  // namespace
}  // namespace ulc::client
