// SPDX-License-Identifier: BSD-3-Clause
// The attach server and its neighbours: who may connect, two engines on one path, links and files
// in its way, ranks that die and leave a child of fork(), text that a client chose. Also mode and
// group of the socket, memory that its client would resize, and the order of endpoint indices.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <ulc.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "abi/attach.h"
#include "tests/process/daemon/local_users.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

using namespace std::chrono_literals;

struct Neighbours : testing::Test {
    Process start(const std::vector<std::string>& more, const std::string& to_log,
                  const std::function<bool()>& before = {}) {
        std::vector<std::string> arguments = shm_engine(scratch / "wire", socket, stations++);
        arguments.insert(arguments.end(), more.begin(), more.end());
        return start_engine(arguments, to_log, before);
    }
    void start_ready(const std::vector<std::string>& more = {},
                     const std::function<bool()>& before = {}) {
        engine = start(more, log, before);
        ASSERT_TRUE(eventually([&] { return logged("ulc-engine ready:"); })) << text_of(log);
    }
    [[nodiscard]] bool logged(const std::string& text) const {
        return text_of(log).find(text) != std::string::npos;
    }
    void end() {
        engine.signal(SIGTERM);
        EXPECT_EQ(engine.wait(), 0);
    }
    [[nodiscard]] struct stat status_of_socket() const {
        struct stat status {};
        EXPECT_EQ(lstat(socket.c_str(), &status), 0);
        return status;
    }
    /// Returns the words of an engine that cannot start.
    std::string refusal() {
        const std::string other_log = scratch / "other.log";
        unlink(other_log.c_str());
        Process other = start({}, other_log);
        const auto said = [&](const char* text) {
            return text_of(other_log).find(text) != std::string::npos;
        };
        EXPECT_TRUE(eventually([&] { return said("[error]") || said("ready:"); }));
        if (said("ready:")) {
            other.kill_now();
            return "it started";
        }
        EXPECT_EQ(other.wait(), 1);
        return text_of(other_log);
    }
    Scratch scratch;
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "engine.log";
    int stations = 0;
    Process engine;
};

// ---------------------------------------------------------------- one engine a path

TEST_F(Neighbours, a_second_engine_ends_with_the_path_and_the_others_process) {
    start_ready();
    const std::string said = refusal();
    EXPECT_NE(said.find("an engine already serves " + socket + " (process " +
                        std::to_string(engine.pid()) + ")"),
              std::string::npos)
        << said;
    ulc_endpoint* ep = nullptr;
    EXPECT_EQ(ulc_open(socket.c_str(), &ep), ULC_OK) << "the loser took the survivor's socket";
    ulc_close(ep);
    end();
}

TEST_F(Neighbours, of_two_engines_that_start_together_one_serves) {
    const std::string logs[] = {scratch / "0.log", scratch / "1.log"};
    Process both[] = {start({}, logs[0]), start({}, logs[1])};
    ASSERT_TRUE(eventually([&] {
        int decided = 0;
        for (const std::string& each : logs)
            decided += static_cast<int>(text_of(each).find("ready:") != std::string::npos ||
                                        text_of(each).find("serves") != std::string::npos);
        return decided == 2;
    })) << text_of(logs[0])
        << text_of(logs[1]);
    const bool first = text_of(logs[0]).find("ready:") != std::string::npos;
    EXPECT_NE(first, text_of(logs[1]).find("ready:") != std::string::npos);
    EXPECT_EQ(both[first ? 1 : 0].wait(), 1);
    ulc_endpoint* ep = nullptr;
    EXPECT_EQ(ulc_open(socket.c_str(), &ep), ULC_OK) << ulc_last_error_text();
    ulc_close(ep);
}

TEST_F(Neighbours, an_engine_removes_no_socket_but_the_one_it_made) {
    start_ready();
    const std::string moved = socket + ".moved";
    ASSERT_EQ(rename(socket.c_str(), moved.c_str()), 0);
    const int other = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(other, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    end();
    EXPECT_TRUE(S_ISSOCK(status_of_socket().st_mode));
    EXPECT_NE(access((socket + ".lock").c_str(), F_OK), 0);
    close(other);
}

TEST_F(Neighbours, links_in_its_way_are_not_followed) {
    const std::string precious = scratch / "precious";
    std::ofstream(precious) << "precious";
    chmod(precious.c_str(), 0600);
    ASSERT_EQ(symlink(precious.c_str(), socket.c_str()), 0);
    EXPECT_NE(refusal().find("is not a socket"), std::string::npos);
    unlink(socket.c_str());
    ASSERT_EQ(symlink(precious.c_str(), (socket + ".lock").c_str()), 0);
    stations = 0;
    EXPECT_NE(refusal().find(socket + ".lock: it is a symbolic link"), std::string::npos)
        << text_of(scratch / "other.log");
    struct stat status {};
    ASSERT_EQ(stat(precious.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    EXPECT_EQ(text_of(precious), "precious");
}

// ---------------------------------------------------------------- who may connect

TEST_F(Neighbours, mode_and_group_of_the_socket_follow_the_allow_list) {
    const gid_t group = geteuid() == 0 ? 4321 : getegid();
    const struct {
        std::vector<std::string> options;
        mode_t mode;
        gid_t group;
    } cases[] = {
        {{}, 0600, getegid()},
        {{"--allow-uid", std::to_string(geteuid())}, 0600, getegid()},
        {{"--allow-gid", std::to_string(group)}, 0660, group},
        {{"--allow-uid", "4321"}, 0666, getegid()},
        {{"--allow-gid", "4321", "--allow-gid", "4322"}, 0666, getegid()},
        {{"--allow-all"}, 0666, getegid()},
    };
    for (const auto& each : cases) {
        stations = 0;
        unlink(log.c_str());
        start_ready(each.options, [] { return umask(077) != 0777; });
        EXPECT_EQ(status_of_socket().st_mode & 07777, each.mode) << each.options.size();
        EXPECT_EQ(status_of_socket().st_gid, each.group);
        end();
    }
}

TEST_F(Neighbours, a_supplementary_group_is_enough) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
    scratch.let_others_in();
    start_ready({"--allow-gid", "4321"});
    const auto open_as = [&](std::vector<gid_t> groups) {
        return run_child([&] {
                   if (setgroups(groups.size(), groups.data()) != 0 || setgid(kNobody) != 0 ||
                       setuid(kNobody) != 0)
                       return 100;
                   ulc_endpoint* ep = nullptr;
                   const int error = ulc_open(socket.c_str(), &ep);
                   ulc_close(ep);
                   return error;
               })
            .wait();
    };
    EXPECT_EQ(open_as({}), ULC_ERR_PERMISSION);
    EXPECT_EQ(open_as({4321}), ULC_OK);
    std::vector<gid_t> many;
    for (gid_t gid = 5000; gid < 5060; ++gid)
        many.push_back(gid);
    many.push_back(4321);
    EXPECT_EQ(open_as(many), ULC_OK);
}

// ---------------------------------------------------------------- what clients say and are given

abi::Hello hello() {
    abi::Hello packet{};
    packet.magic = abi::kHelloMagic;
    packet.abi_version = abi::kAbiVersion;
    packet.kind = abi::HelloKind::kAttach;
    return packet;
}

/// The offer and its memory; status other than 0: refused.
abi::Offer offer_to(int fd, const abi::Hello& packet, int& memory) {
    EXPECT_EQ(send(fd, &packet, sizeof packet, MSG_NOSIGNAL), ssize_t{sizeof packet});
    abi::Offer offer{};
    offer.status = -1;
    iovec part{&offer, sizeof offer};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    EXPECT_EQ(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), ssize_t{sizeof offer});
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr)
        std::memcpy(&memory, CMSG_DATA(header), sizeof memory);
    return offer;
}

TEST_F(Neighbours, a_nets_name_cannot_forge_a_line_of_the_log) {
    start_ready();
    abi::Hello packet = hello();
    std::strcpy(packet.net, "a\n[forged]\x1b[31m\\");
    const int fd = connect_to(socket);
    int memory = -1;
    const abi::Offer offer = offer_to(fd, packet, memory);
    EXPECT_EQ(offer.status, ULC_ERR_INVALID);
    EXPECT_NE(std::strstr(offer.text, "a\\x0a[forged]\\x1b[31m\\x5c;"), nullptr) << offer.text;
    EXPECT_TRUE(eventually([&] { return logged("a\\x0a[forged]"); }));
    EXPECT_FALSE(logged("\x1b[31m"));
    close(fd);
}

TEST_F(Neighbours, memory_keeps_its_size_from_before_a_client_has_it) {
    for (const auto& before :
         {std::function<bool()>{}, std::function<bool()>{pretend_old_kernel}}) {
        stations = 0;
        unlink(log.c_str());
        start_ready({}, before);
        for (const int factor : {1, 2, 3}) {
            const int fd = connect_to(socket);
            int memory = -1;
            const abi::Offer offer = offer_to(fd, hello(), memory);
            ASSERT_EQ(offer.status, 0);
            const auto bytes = static_cast<off_t>(offer.layout.region_octets);
            EXPECT_EQ(ftruncate(memory, bytes * factor / 2), factor == 2 ? 0 : -1);
            const int seals = fcntl(memory, F_GET_SEALS);
            constexpr int kSealExec = 0x20;
            constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
            EXPECT_TRUE(seals == kSize || (!before && seals == (kSize | kSealExec))) << seals;
            const abi::Mapped mapped{abi::kHelloMagic, 0};
            ASSERT_EQ(send(fd, &mapped, sizeof mapped, MSG_NOSIGNAL), ssize_t{sizeof mapped});
            abi::Ready ready{};
            ASSERT_EQ(recv(fd, &ready, sizeof ready, 0), ssize_t{sizeof ready});
            EXPECT_EQ(ready.status, ULC_OK) << ready.text;
            close(memory);
            close(fd);
        }
        end();
    }
}

TEST_F(Neighbours, an_index_comes_again_only_after_all_others) {
    start_ready({"--endpoints", "8"});
    constexpr std::uint32_t kIndexes = 8;
    std::vector<std::uint32_t> given;
    for (std::uint32_t n = 0; n < 2 * kIndexes; ++n) {
        const int fd = connect_to(socket);
        int memory = -1;
        const abi::Offer offer = offer_to(fd, hello(), memory);
        ASSERT_EQ(offer.status, 0) << offer.text;
        given.push_back(offer.endpoint);
        close(memory);
        close(fd);
        // Let go before the next one: only then could its index come again.
        ASSERT_TRUE(eventually([&] {
            const int other = connect_to(socket);
            char octet = 0;
            send(other, &octet, 1, MSG_NOSIGNAL);
            const bool answered = recv(other, &octet, 1, 0) >= 0;
            close(other);
            return answered;
        }));
    }
    const auto mask = [](std::uint32_t handle) { return handle & (kIndexes - 1); };
    for (std::uint32_t n = 1; n < given.size(); ++n)
        EXPECT_EQ(mask(given[n]), (mask(given[n - 1]) + 1) % kIndexes) << n;
}

// ---------------------------------------------------------------- ranks that die

TEST_F(Neighbours, the_end_of_a_rank_is_noticed_though_a_child_lives_on) {
    for (const auto& before :
         {std::function<bool()>{}, std::function<bool()>{pretend_old_kernel}}) {
        stations = 0;
        unlink(log.c_str());
        start_ready({}, before);
        int alive[2];
        int told[2];
        ASSERT_EQ(pipe2(alive, O_CLOEXEC), 0);
        ASSERT_EQ(pipe2(told, O_CLOEXEC), 0);
        Process rank = run_child([&] {
            ulc_endpoint* ep = nullptr;
            if (ulc_open(socket.c_str(), &ep) != ULC_OK) return 1;
            // Not fork(): its handlers are another test's. The child keeps the socket.
            const auto child = static_cast<pid_t>(syscall(SYS_fork));
            if (child == 0) {
                prctl(PR_SET_PDEATHSIG, 0);
                char octet = 0;
                close(alive[1]);
                (void)!read(alive[0], &octet, 1);
                _exit(0);
            }
            (void)!write(told[1], &child, sizeof child);
            for (;;)
                pause();
        });
        close(told[1]);
        pid_t child = 0;
        ASSERT_EQ(read(told[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
        close(told[0]);
        ASSERT_TRUE(eventually([&] { return logged("attached as endpoint"); })) << text_of(log);
        EXPECT_FALSE(logged("ended without closing"));
        rank.kill_now();
        EXPECT_TRUE(eventually([&] { return logged("ended without closing"); })) << text_of(log);
        EXPECT_EQ(kill(child, 0), 0) << "the child ended before";
        close(alive[0]);
        close(alive[1]);  // the child ends
        end();
    }
}

TEST_F(Neighbours, a_rank_that_closed_and_ended_at_once_did_not_die) {
    start_ready();
    for (int n = 1; n <= 10; ++n) {
        Process rank = run_child([&] {
            ulc_endpoint* ep = nullptr;
            if (ulc_open(socket.c_str(), &ep) != ULC_OK) return 1;
            ulc_close(ep);
            _exit(0);
        });
        EXPECT_EQ(rank.wait(), 0);
    }
    EXPECT_TRUE(eventually([&] {
        std::size_t closed = 0;
        const std::string text = text_of(log);
        for (std::size_t at = 0; (at = text.find(" closed", at)) != std::string::npos; ++at)
            ++closed;
        return closed == 10;
    })) << text_of(log);
    EXPECT_FALSE(logged("ended without closing"));
}

}  // namespace
}  // namespace ulc::test
