// SPDX-License-Identifier: BSD-3-Clause
// A wait of the MPI's collectives ends by its clock, whatever completes meanwhile
// (coll/mpi/session.h). Time and completions are the test's.
#include <gtest/gtest.h>

#include "coll/mpi/session.h"

namespace {

ulc::Nanos time_ns = 0;
unsigned polls = 0;
bool completes = true;

}  // namespace

extern "C" {

// Stand in for libulc's.
int ulc_poll(ulc_endpoint* /*ep*/) {
    ++polls;
    return completes ? 1 : 0;
}
unsigned ulc_empty_polls(const ulc_endpoint* /*ep*/) { return completes ? 0 : polls; }

}  // extern "C"

namespace ulc::mpi {

// Stand in for those of session.cc, which need an engine and an MPI.
thread_local unsigned Session::Waiting::depth = 0;
Nanos now() { return time_ns; }
Operation* Session::advance() { return nullptr; }
void Session::complete(Operation* /*finished*/) {}
Nanos Session::end_round(Pace& /*pace*/, Pace::Found /*found*/) { return time_ns += kMillisecond; }
Pace& Session::pace_of_thread() noexcept {
    static Pace pace;
    return pace;
}

namespace {

constexpr unsigned kPollsMax = 1'000'000;  ///< after which a wait ends in any case

TEST(Drive, ends_at_its_limit_although_each_poll_completes_something) {
    for (const bool each_completes : {true, false}) {
        completes = each_completes;
        polls = 0;
        Session session;
        const Nanos begun = time_ns;
        EXPECT_FALSE(session.drive(30 * kSecond, [] { return polls >= kPollsMax; }));
        EXPECT_GE(time_ns - begun, 30 * kSecond);
        EXPECT_LE(time_ns - begun, 31 * kSecond);
    }
}

TEST(Drive, sees_what_came_in_the_round_of_its_limit) {
    completes = true;
    polls = 0;
    Session session;
    EXPECT_TRUE(session.drive(0, [] { return polls >= 16; }));
}

TEST(Drive, without_limit_ends_when_it_is_done) {
    completes = false;
    polls = 0;
    Session session;
    EXPECT_TRUE(session.drive(kNever, [] { return polls >= 10'000; }));
}

}  // namespace
}  // namespace ulc::mpi
