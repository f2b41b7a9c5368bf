// SPDX-License-Identifier: BSD-3-Clause
// Messages to systemd, read from the socket that NOTIFY_SOCKET names. An engine says that it is
// ready, alive, and stopping. Wrong variables, a full queue and a dead manager do not hold it up.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "main/service/service_manager.h"

namespace ulc::daemon {
namespace {

class ServiceManagerTest : public testing::Test {
protected:
    void SetUp() override {
        path_ = testing::TempDir() + "notify." + std::to_string(getpid());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        ASSERT_LT(path_.size(), sizeof address.sun_path);
        std::memcpy(address.sun_path, path_.data(), path_.size());
        socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ASSERT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        setenv("NOTIFY_SOCKET", path_.c_str(), 1);
        unsetenv("WATCHDOG_USEC");
        unsetenv("WATCHDOG_PID");
    }
    void TearDown() override {
        close(socket_);
        std::remove(path_.c_str());
        unsetenv("NOTIFY_SOCKET");
    }

    /// Returns the next message; empty: there is none.
    [[nodiscard]] std::string next() const {
        char text[256] = {};
        const ssize_t length = recv(socket_, text, sizeof text, MSG_DONTWAIT);
        return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : "";
    }

    std::string path_;
    std::string why_;
    int socket_ = -1;
};

TEST_F(ServiceManagerTest, systemd_hears_of_each_state_in_order) {
    ServiceManager service(why_);
    EXPECT_EQ(why_, "");
    EXPECT_EQ(next(), "") << "not ready yet";
    service.ready("port 0\nSTOPPING=1");
    EXPECT_EQ(next(), "READY=1\nSTATUS=port 0 STOPPING=1") << "a status is one line";
    service.alive();
    EXPECT_EQ(next(), "WATCHDOG=1");
    service.stopping();
    EXPECT_EQ(next(), "STOPPING=1\nSTATUS=delivering what clients sent");
    EXPECT_EQ(next(), "");
}

TEST_F(ServiceManagerTest, no_child_inherits_the_variables) {
    setenv("WATCHDOG_USEC", "1000000", 1);
    setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
    const ServiceManager service(why_);
    EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
    EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
    EXPECT_EQ(std::getenv("WATCHDOG_PID"), nullptr);
}

TEST_F(ServiceManagerTest, the_watchdog_is_served_twice_as_often_as_it_asks) {
    setenv("WATCHDOG_USEC", "10000000", 1);
    setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
    const ServiceManager service(why_);
    EXPECT_EQ(service.interval(), 5 * kSecond);
}

TEST_F(ServiceManagerTest, a_watchdog_of_another_process_or_of_no_length_is_none) {
    setenv("WATCHDOG_USEC", "10000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    EXPECT_EQ(ServiceManager(why_).interval(), kNever);
    for (const char* bad : {"", "0", "-1", "ten", "10s", "99999999999999999999"}) {
        setenv("NOTIFY_SOCKET", path_.c_str(), 1);
        setenv("WATCHDOG_USEC", bad, 1);
        EXPECT_EQ(ServiceManager(why_).interval(), kNever) << bad;
    }
    setenv("NOTIFY_SOCKET", path_.c_str(), 1);
    setenv("WATCHDOG_USEC", "9223372036854775807", 1);
    EXPECT_GT(ServiceManager(why_).interval(), kSecond) << "the largest number must not wrap";
}

TEST_F(ServiceManagerTest, without_systemd_nothing_is_sent) {
    unsetenv("NOTIFY_SOCKET");
    ServiceManager service(why_);
    service.ready("port 0");
    service.alive();
    service.stopping();
    EXPECT_EQ(why_, "");
    EXPECT_EQ(next(), "");
    EXPECT_EQ(service.interval(), kNever);
}

TEST_F(ServiceManagerTest, a_socket_that_cannot_be_used_is_named) {
    for (const std::string& path :
         {std::string("relative"), std::string("/no/such/socket"), "/" + std::string(200, 'x')}) {
        setenv("NOTIFY_SOCKET", path.c_str(), 1);
        setenv("WATCHDOG_USEC", "1000000", 1);
        why_.clear();
        ServiceManager service(why_);
        EXPECT_NE(why_.find("NOTIFY_SOCKET " + path), std::string::npos) << why_;
        EXPECT_EQ(service.interval(), kNever);
        service.ready("port 0");
    }
}

TEST_F(ServiceManagerTest, a_full_queue_or_a_dead_manager_does_not_hold_the_engine_up) {
    ServiceManager service(why_);
    for (int n = 0; n < 100'000; ++n)
        service.alive();
    close(socket_);
    socket_ = -1;
    service.alive();
    service.stopping();
}

}  // namespace
}  // namespace ulc::daemon
