// SPDX-License-Identifier: BSD-3-Clause
// When libfabric hears that the provider is there: if an engine listens (ofi/info.h). The answer
// is the same while many ranks connect to that engine at once.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ofi/info.h"

namespace ulc::ofi {
namespace {

/// A socket at an abstract name, which ULC_ENGINE gives.
struct OfiInfo : testing::Test {
    OfiInfo() {
        const std::string name = "@ulc-info-test-" + std::to_string(::getpid());
        ::setenv("ULC_ENGINE", name.c_str(), 1);
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
        length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    }
    ~OfiInfo() override {
        for (const int one : open)
            ::close(one);
        ::unsetenv("ULC_ENGINE");
    }
    int make() {
        open.push_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        return open.back();
    }
    [[nodiscard]] const sockaddr* name() const {
        return reinterpret_cast<const sockaddr*>(&address);
    }
    sockaddr_un address{};
    socklen_t length = 0;
    std::vector<int> open;
};

TEST_F(OfiInfo, an_engine_answers_while_it_listens) {
    EXPECT_FALSE(engine_answers());
    const int engine = make();
    ASSERT_EQ(::bind(engine, name(), length), 0);
    EXPECT_FALSE(engine_answers());
    ASSERT_EQ(::listen(engine, 8), 0);
    EXPECT_TRUE(engine_answers());
}

TEST_F(OfiInfo, an_engine_to_which_many_ranks_connect_at_once_answers) {
    const int engine = make();
    ASSERT_EQ(::bind(engine, name(), length), 0);
    ASSERT_EQ(::listen(engine, 1), 0);
    while (::connect(make(), name(), length) == 0) {
    }
    ASSERT_EQ(errno, EAGAIN);
    EXPECT_TRUE(engine_answers());
}

}  // namespace
}  // namespace ulc::ofi
