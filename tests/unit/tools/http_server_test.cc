// SPDX-License-Identifier: BSD-3-Clause
// The exporter's connections: whole requests are answered, and the time of each ends, whatever the
// reader does. The clock is the test's.
#include "tools/ulc/watch/http_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace ulc::tools {
namespace {

using std::chrono::seconds;

class Http : public ::testing::Test {
protected:
    Http() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0); }
    ~Http() override {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    void send(const std::string& text) {
        ASSERT_EQ(::send(ends_[1], text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    std::string received() {
        std::string out(1 << 20, '\0');
        const ssize_t n = ::recv(ends_[1], out.data(), out.size(), 0);
        out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
        return out;
    }
    /// The connection under test, which begins with its first use.
    HttpConnection& connection() {
        if (!connection_) connection_.emplace(ends_[0], now_);
        return *connection_;
    }
    bool advance(const HttpPage& page) {
        pollfd socket{ends_[0], connection().events(), 0};
        const bool ready = ::poll(&socket, 1, 0) == 1;
        return connection().advance(ready, page, [this] { return now_; });
    }
    /// Returns the seconds after which the connection is over, if the reader acts once a second.
    template <typename Action>
    int lasts(Action act) {
        for (int second = 0; second < 100; ++second) {
            act();
            if (!advance(page_)) return second;
            now_ += seconds(1);
        }
        return 100;
    }

    int ends_[2] = {-1, -1};
    std::optional<HttpConnection> connection_;
    HttpConnection::Time now_{};
    std::size_t page_bytes_ = 10;
    HttpPage page_ = [this] { return std::string(page_bytes_, 'x'); };
};

TEST_F(Http, a_request_is_answered) {
    send("GET /metrics HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(advance(page_));
    EXPECT_TRUE(received().starts_with("HTTP/1.0 200 OK\r\n"));
}

TEST_F(Http, a_reader_that_never_ends_its_request_has_five_seconds) {
    EXPECT_EQ(lasts([this] { send("x"); }), 5);
}

TEST_F(Http, a_reader_that_sends_on_after_the_reply_has_five_seconds) {
    send("GET /metrics HTTP/1.0\r\n\r\n");
    EXPECT_EQ(lasts([this] { send("x"); }), 5);
}

TEST_F(Http, a_reader_that_takes_the_reply_byte_by_byte_has_five_seconds) {
    page_bytes_ = 4U << 20U;
    send("GET /metrics HTTP/1.0\r\n\r\n");
    EXPECT_EQ(lasts([this] { (void)received(); }), 5);
}

TEST_F(Http, a_silent_reader_has_five_seconds) {
    EXPECT_EQ(lasts([] {}), 5);
}

TEST_F(Http, a_page_that_took_long_gets_time_to_be_sent) {
    const HttpPage slow = [this] {
        now_ += seconds(10);
        return std::string(10, 'x');
    };
    send("GET /metrics HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(advance(slow));
    EXPECT_TRUE(received().starts_with("HTTP/1.0 200 OK\r\n"));
    now_ += seconds(3);
    EXPECT_FALSE(advance(slow));
}

}  // namespace
}  // namespace ulc::tools
