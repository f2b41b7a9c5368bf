// SPDX-License-Identifier: BSD-3-Clause
// Children of fork() in a rank: they keep neither its endpoint nor its place on a wire of shared
// memory, can open endpoints, and do not disturb the rank.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <ulc.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/process/daemon/local_users.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

/// Sockets that this process has.
int sockets() {
    int count = 0;
    DIR* folder = opendir("/proc/self/fd");
    while (const dirent* entry = readdir(folder)) {
        struct stat status {};
        if (fstat(std::atoi(entry->d_name), &status) == 0 && S_ISSOCK(status.st_mode)) ++count;
    }
    closedir(folder);
    return count;
}

/// A message of this rank to itself and back through the engine of a job of one. False: it failed.
bool works(ulc_endpoint* ep) {
    ulc_request request;
    char got[8] = "";
    return ulc_receive(ep, 0, 7, 0, got, sizeof got, &request) == ULC_OK &&
           ulc_send(ep, 0, 7, "message", 8, nullptr) == ULC_OK &&
           ulc_wait_for(ep, &request, nullptr, 10 * kSecondNs) == ULC_OK &&
           std::strcmp(got, "message") == 0;
}

struct Forked : testing::Test {
    void start(const std::function<bool()>& before = {}) {
        engine = start_engine(shm_engine(scratch / "wire", socket), log, before);
        ASSERT_TRUE(eventually([&] { return logged("ulc-engine ready:"); })) << text_of(log);
    }
    [[nodiscard]] bool logged(const char* text) const {
        return text_of(log).find(text) != std::string::npos;
    }
    Scratch scratch;
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "engine.log";
    Process engine;
};

/// Results of a child: the number of the first check that failed; 0: none.
#define ULC_NEED(condition) \
    if (!(condition)) return __LINE__ % 250 + 1

int use_parents_endpoint(ulc_endpoint* ep, void* memory, int sockets_before) {
    ULC_NEED(sockets() == sockets_before);
    ULC_NEED(ulc_poll(ep) == -ULC_ERR_CLOSED);
    ULC_NEED(ulc_send(ep, 0, 1, "x", 1, nullptr) == ULC_ERR_CLOSED);
    ULC_NEED(ulc_wait(ep, kSecondNs) == ULC_ERR_CLOSED);
    ULC_NEED(ulc_job_state(ep) == ULC_ERR_CLOSED);
    ulc_request request;
    char octet = 0;
    ULC_NEED(ulc_receive(ep, 0, 1, 0, &octet, 1, &request) == ULC_ERR_CLOSED);
    ULC_NEED(ulc_leave(ep) != ULC_OK);
    std::memset(memory, 'c', 64);  // the parent's must stay as it is
    ulc_free(ep, memory);
    ulc_close(ep);
    return 0;
}

TEST_F(Forked, a_child_finds_its_parents_endpoint_closed_and_opens_its_own) {
    start();
    const int sockets_before = sockets();
    ulc_endpoint* ep = nullptr;
    ASSERT_EQ(ulc_open(socket.c_str(), &ep), ULC_OK) << ulc_last_error_text();
    ASSERT_EQ(ulc_join_wait(ep, "parent", 0, 1, 10 * kSecondNs), ULC_OK);
    ASSERT_TRUE(works(ep));
    auto* memory = static_cast<char*>(ulc_alloc(ep, 64));
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 'p', 64);
    Process child = run_child([&] {
        if (const int line = use_parents_endpoint(ep, memory, sockets_before); line != 0)
            return line;
        ulc_endpoint* own = nullptr;
        ULC_NEED(ulc_open(socket.c_str(), &own) == ULC_OK);
        ULC_NEED(ulc_join_wait(own, "child", 0, 1, 10 * kSecondNs) == ULC_OK);
        ULC_NEED(works(own));
        ulc_close(own);
        return 0;
    });
    EXPECT_EQ(child.wait(), 0) << "line of the check that failed, modulo 250, and 1";
    EXPECT_EQ(std::string(memory, 64), std::string(64, 'p'));
    EXPECT_TRUE(works(ep)) << "the child disturbed its parent";
    EXPECT_FALSE(logged("ended without closing")) << text_of(log);
    ulc_close(ep);
}

// Without a pidfd, as before Linux 5.3, the end of the socket is all that the engine has.
TEST_F(Forked, the_end_of_a_killed_rank_does_not_wait_for_its_child) {
    start(pretend_kernel_without_pidfd);
    int alive[2];
    ASSERT_EQ(pipe2(alive, O_CLOEXEC), 0);
    Process rank = run_child([&] {
        ulc_endpoint* ep = nullptr;
        if (ulc_open(socket.c_str(), &ep) != ULC_OK) return 1;
        if (fork() == 0) {
            char octet = 0;
            close(alive[1]);
            (void)!write(STDERR_FILENO, "", 0);
            (void)!read(alive[0], &octet, 1);
            _exit(0);
        }
        ulc_wait(ep, 60 * kSecondNs);
        return 0;
    });
    ASSERT_TRUE(eventually([&] { return logged("attached as endpoint"); })) << text_of(log);
    usleep(50'000);  // the child is there
    EXPECT_FALSE(logged("ended without closing"));
    rank.kill_now();
    EXPECT_TRUE(eventually([&] { return logged("ended without closing"); })) << text_of(log);
    close(alive[0]);
    close(alive[1]);  // the child ends
}

TEST_F(Forked, a_child_does_not_hold_its_parents_station) {
    const std::string device = "embedded:shm,path=" + (scratch / "wire") + ",stations=2,station=1";
    int opened[2];
    int alive[2];
    ASSERT_EQ(pipe2(opened, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(alive, O_CLOEXEC), 0);
    Process rank = run_child([&] {
        ulc_endpoint* ep = nullptr;
        if (ulc_open(device.c_str(), &ep) != ULC_OK) return 1;
        if (fork() == 0) {
            ulc_endpoint* own = nullptr;
            const bool held = ulc_open(device.c_str(), &own) != ULC_OK;
            const bool closed = ulc_poll(ep) == -ULC_ERR_CLOSED;
            ulc_close(ep);
            char octet = held && closed ? 'y' : 'n';
            close(alive[1]);
            (void)!write(opened[1], &octet, 1);
            (void)!read(alive[0], &octet, 1);
            _exit(0);
        }
        for (;;)
            static_cast<void>(ulc_wait(ep, kSecondNs));
    });
    char octet = 0;
    ASSERT_EQ(read(opened[0], &octet, 1), 1);
    EXPECT_EQ(octet, 'y') << "the child may not run its parent's engine, nor take its station";
    const auto take_station = [&] {
        return run_child([&] {
                   ulc_endpoint* ep = nullptr;
                   const int error = ulc_open(device.c_str(), &ep);
                   ulc_close(ep);
                   return error;
               })
            .wait();
    };
    EXPECT_NE(take_station(), ULC_OK) << "the rank lives";
    rank.kill_now();
    EXPECT_EQ(take_station(), ULC_OK) << "the child holds the station";
    for (const int fd : {opened[0], opened[1], alive[0], alive[1]})
        close(fd);
}

}  // namespace
}  // namespace ulc::test
