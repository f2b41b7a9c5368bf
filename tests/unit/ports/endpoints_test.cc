// SPDX-License-Identifier: BSD-3-Clause
// The right to use all endpoints of a process (ports/endpoints.h), on scripted endpoints. All
// promises are revoked or none, all endpoints are borrowed or none, and an upcall amid a change is
// put off.
#include "ports/endpoints.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

/// An endpoint of the script. The library has another one.
struct ulc_endpoint {
    char name = ' ';
    bool polls = true;                ///< its thread has promised to
    bool is_free = false;             ///< may be borrowed
    int revoked = ULC_OK;             ///< result of revoking
    int events = 0;                   ///< result of a poll
    std::function<void()> meanwhile;  ///< runs when it is revoked
};

namespace {
std::string calls;
}  // namespace

extern "C" {

int ulc_promise(ulc_endpoint* ep, int polls) {
    calls += std::string(polls != 0 ? "+" : "-") + ep->name;
    if (polls == 0 && ep->meanwhile) ep->meanwhile();
    if (polls == 0 && ep->revoked != ULC_OK) return ep->revoked;
    ep->polls = polls != 0;
    return ULC_OK;
}

int ulc_borrow(ulc_endpoint* ep) {
    if (!ep->is_free) return ULC_ERR_AGAIN;
    ep->is_free = false;
    return ULC_OK;
}

int ulc_give_back(ulc_endpoint* ep, int interrupt) {
    calls += std::string(interrupt != 0 ? "!" : "") + ep->name;
    ep->is_free = true;
    return ULC_OK;
}

int ulc_poll(ulc_endpoint* ep) {
    calls += ep->name;
    return ep->events;
}

}  // extern "C"

namespace ulc::ports {
namespace {

class PortsEndpoints : public testing::Test {
protected:
    PortsEndpoints() {
        calls.clear();
        char name = 'a';
        for (ulc_endpoint& one : each) {
            one.name = name++;
            endpoints.add(&one);
        }
    }
    [[nodiscard]] unsigned promised() const {
        unsigned count = 0;
        for (const ulc_endpoint& one : each)
            count += one.polls ? 1 : 0;
        return count;
    }

    ulc_endpoint each[3];
    Endpoints endpoints;
};

TEST_F(PortsEndpoints, all_promises_are_revoked_or_none) {
    EXPECT_EQ(endpoints.revoke(), ULC_OK);
    EXPECT_EQ(promised(), 0U);
    endpoints.promise();
    EXPECT_EQ(promised(), 3U);
    for (ulc_endpoint& one : each) {
        one.revoked = ULC_ERR_AGAIN;
        EXPECT_EQ(endpoints.revoke(), ULC_ERR_AGAIN);
        EXPECT_EQ(promised(), 3U) << one.name << " has news";
        one.revoked = ULC_OK;
    }
}

TEST_F(PortsEndpoints, an_upcall_leaves_the_promise_of_its_endpoint_alone) {
    EXPECT_EQ(endpoints.revoke(&each[1]), ULC_OK);
    endpoints.promise(&each[1]);
    each[0].revoked = ULC_ERR_AGAIN;
    EXPECT_EQ(endpoints.revoke(&each[1]), ULC_ERR_AGAIN);
    EXPECT_EQ(calls.find('b'), std::string::npos) << calls;
    EXPECT_EQ(promised(), 3U);
    EXPECT_FALSE(endpoints.was_put_off(&each[1]));
}

TEST_F(PortsEndpoints, an_upcall_amid_a_change_is_put_off) {
    // The last one is revoked first, and interrupts the thread before the others are.
    each[1].meanwhile = [this] { EXPECT_TRUE(endpoints.was_put_off(&each[2])); };
    EXPECT_EQ(endpoints.revoke(), ULC_ERR_AGAIN);
    EXPECT_EQ(promised(), 3U);
    each[1].meanwhile = nullptr;
    EXPECT_EQ(endpoints.revoke(), ULC_OK);
}

TEST_F(PortsEndpoints, all_are_borrowed_or_none) {
    for (ulc_endpoint& used : each) {
        for (ulc_endpoint& one : each)
            one.is_free = &one != &used;
        EXPECT_FALSE(endpoints.borrow());
        for (const ulc_endpoint& one : each)
            EXPECT_EQ(one.is_free, &one != &used)
                << one.name << " while " << used.name << " is used";
    }
    for (ulc_endpoint& one : each)
        one.is_free = true;
    EXPECT_TRUE(endpoints.borrow());
    calls.clear();
    endpoints.give_back(true);
    EXPECT_EQ(calls, "cb!a") << "one interrupt, when all are free";
}

TEST_F(PortsEndpoints, a_poll_passes_over_errors) {
    each[0].events = 2;
    each[1].events = -1;
    each[2].events = 3;
    EXPECT_EQ(endpoints.poll(), 5);
    EXPECT_EQ(endpoints.poll(&each[0]), 3);
    endpoints.remove(&each[2]);
    EXPECT_EQ(endpoints.poll(&each[0]), 0);
}

}  // namespace
}  // namespace ulc::ports
