// SPDX-License-Identifier: BSD-3-Clause
// Log lines as systemd's journal gets them, read from a socket in its place: priority, fields of a
// client, and no field from a client's text. Lines go to stderr when the journal is gone.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "main/service/journal.h"

namespace ulc::daemon {
namespace {

class JournalTest : public testing::Test {
protected:
    void SetUp() override {
        path_ = testing::TempDir() + "journal." + std::to_string(getpid());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        ASSERT_LT(path_.size(), sizeof address.sun_path);
        std::memcpy(address.sun_path, path_.data(), path_.size());
        socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ASSERT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        name_stream(0);
    }
    void TearDown() override {
        close(socket_);
        std::remove(path_.c_str());
        unsetenv("JOURNAL_STREAM");
    }
    /// Says that stderr is the journal's stream; `other`: an offset to another file.
    static void name_stream(ino_t other) {
        struct stat status {};
        ASSERT_EQ(fstat(STDERR_FILENO, &status), 0);
        const std::string stream =
            std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino + other);
        setenv("JOURNAL_STREAM", stream.c_str(), 1);
    }
    void open() {
        auto sink = JournalSink::make(path_, "/run/ulc/a.sock");
        ASSERT_NE(sink, nullptr);
        log_ = std::make_unique<spdlog::logger>("test", sink);
    }
    /// Returns the next datagram; empty: there is none.
    [[nodiscard]] std::string next() const {
        char text[32768] = {};
        const ssize_t length = recv(socket_, text, sizeof text, MSG_DONTWAIT);
        return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : "";
    }

    std::string path_;
    std::unique_ptr<spdlog::logger> log_;
    int socket_ = -1;
};

TEST_F(JournalTest, a_line_has_its_priority_and_the_engine) {
    open();
    log_->warn("client {} refused", 17);
    EXPECT_EQ(next(),
              "MESSAGE=client 17 refused\nPRIORITY=4\nSYSLOG_IDENTIFIER=ulc-engine\n"
              "ULC_SOCKET=/run/ulc/a.sock\n");
    log_->error("no device");
    EXPECT_NE(next().find("\nPRIORITY=3\n"), std::string::npos);
    log_->info("ready");
    EXPECT_NE(next().find("\nPRIORITY=6\n"), std::string::npos);
}

TEST_F(JournalTest, fields_are_those_of_the_innermost_object) {
    open();
    {
        const LogFields fields{{"ULC_CLIENT_PID", 17}, {"ULC_CLIENT_UID", 1000}};
        log_->info("attached");
        EXPECT_NE(next().find("\nULC_CLIENT_PID=17\nULC_CLIENT_UID=1000\n"), std::string::npos);
        {
            const LogFields inner{{"ULC_ENDPOINT", 5}};
            log_->info("taken");
            const std::string line = next();
            EXPECT_NE(line.find("\nULC_ENDPOINT=5\n"), std::string::npos);
            EXPECT_EQ(line.find("ULC_CLIENT"), std::string::npos);
        }
        log_->info("again");
        EXPECT_NE(next().find("\nULC_CLIENT_PID=17\n"), std::string::npos);
    }
    log_->info("after");
    EXPECT_EQ(next().find("ULC_CLIENT"), std::string::npos);
}

TEST_F(JournalTest, text_of_a_client_makes_no_field) {
    open();
    log_->info("{}", "a\nULC_CLIENT_UID=0");
    const std::string head("MESSAGE\n\x12\0\0\0\0\0\0\0a\nULC_CLIENT_UID=0\nP", 36);
    EXPECT_EQ(next().substr(0, head.size()), head);
}

TEST_F(JournalTest, a_long_line_is_cut) {
    open();
    log_->info("{}", std::string(100'000, 'x'));
    EXPECT_EQ(next().find("\nPRIORITY"), 8 + 16384U);
}

TEST_F(JournalTest, lines_go_to_stderr_when_the_journal_is_gone) {
    open();
    close(socket_);
    std::remove(path_.c_str());
    testing::internal::CaptureStderr();
    log_->warn("client 17 refused");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "<4>client 17 refused\n");
}

TEST_F(JournalTest, without_a_journal_there_is_no_sink) {
    EXPECT_EQ(JournalSink::make(path_ + ".none", ""), nullptr);
    EXPECT_EQ(JournalSink::make(std::string(200, 'x'), ""), nullptr);
    name_stream(1);
    EXPECT_EQ(JournalSink::make(path_, ""), nullptr) << "stderr is another file";
    unsetenv("JOURNAL_STREAM");
    EXPECT_EQ(JournalSink::make(path_, ""), nullptr);
}

}  // namespace
}  // namespace ulc::daemon
