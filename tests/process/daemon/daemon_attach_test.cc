// SPDX-License-Identifier: BSD-3-Clause
// Tests attaching to a real daemon: stale and live sockets, clients of other versions, nonsense on
// the socket, slow clients, and what a client can do to the memory that it was given.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <ulc.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "abi/attach.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

struct Daemon : testing::Test {
    void SetUp() override { start(); }
    void start() {
        engine =
            start_engine({"--device", "net_memif,role=server,id=0,socket=" + (scratch / "wire"),
                          "--socket", socket, "--hugepages", "never"},
                         log);
        ASSERT_TRUE(eventually([&] {
            return text_of(log).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log);
    }
    [[nodiscard]] int connect_raw() const {
        const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
        EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        const timeval limit{10, 0};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        return fd;
    }
    static abi::Hello hello() {
        abi::Hello packet{};
        packet.magic = abi::kHelloMagic;
        packet.abi_version = abi::kAbiVersion;
        packet.kind = abi::HelloKind::kAttach;
        return packet;
    }
    /// Returns the answer to these bytes; magic 0: the engine closed without one.
    abi::Offer answer(int fd, const void* data, std::size_t octets, int* memory = nullptr) {
        EXPECT_EQ(send(fd, data, octets, MSG_NOSIGNAL), static_cast<ssize_t>(octets));
        abi::Offer offer{};
        iovec part{&offer, sizeof offer};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t n = recvmsg(fd, &message, 0);
        if (n != sizeof offer) return abi::Offer{};
        if (const cmsghdr* header = CMSG_FIRSTHDR(&message); memory != nullptr && header != nullptr)
            std::memcpy(memory, CMSG_DATA(header), sizeof *memory);
        return offer;
    }
    /// Expects that a normal client can still attach.
    void expect_alive() {
        ulc_endpoint* ep = nullptr;
        EXPECT_EQ(ulc_open(socket.c_str(), &ep), ULC_OK) << ulc_last_error_text();
        ulc_close(ep);
    }
    Scratch scratch;
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "engine.log";
    Process engine;
};

TEST_F(Daemon, no_engine_and_a_dead_ones_socket_are_told_apart) {
    ulc_endpoint* ep = nullptr;
    EXPECT_EQ(ulc_open((scratch / "nothing").c_str(), &ep), ULC_ERR_NO_ENGINE);
    EXPECT_NE(std::strstr(ulc_last_error_text(), "start ulc-engine"), nullptr);
    engine.kill_now();
    EXPECT_EQ(ulc_open(socket.c_str(), &ep), ULC_ERR_NO_ENGINE);
    EXPECT_NE(std::strstr(ulc_last_error_text(), "no process listens"), nullptr);
}

TEST_F(Daemon, a_stopped_engine_is_named_at_once) {
    expect_alive();
    ASSERT_TRUE(engine.stop());
    ulc_endpoint* ep = nullptr;
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(ulc_open(socket.c_str(), &ep), ULC_ERR_TIMEOUT);
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(4))
        << "without a look at the process it takes 5 s";
    EXPECT_NE(std::string(ulc_last_error_text()).find("is stopped; continue it with kill -CONT"),
              std::string::npos)
        << ulc_last_error_text();
    engine.signal(SIGCONT);
    expect_alive();
}

TEST_F(Daemon, a_stale_socket_is_replaced_and_a_live_one_refused) {
    const std::string other_log = scratch / "other.log";
    Process other =
        start_engine({"--device", "net_memif,role=server,id=0,socket=" + (scratch / "wire2"),
                      "--socket", socket, "--hugepages", "never"},
                     other_log);
    EXPECT_NE(other.wait(), 0);
    EXPECT_NE(text_of(other_log).find("already serves"), std::string::npos) << text_of(other_log);
    expect_alive();
    engine.kill_now();
    ASSERT_EQ(access(socket.c_str(), F_OK), 0);
    unlink(log.c_str());
    start();
    expect_alive();
}

TEST_F(Daemon, other_versions_wrong_magic_and_unknown_nets_are_refused_in_words) {
    abi::Hello packet = hello();
    packet.abi_version += 1;
    int fd = connect_raw();
    abi::Offer offer = answer(fd, &packet, sizeof packet);
    EXPECT_EQ(offer.status, ULC_ERR_VERSION);
    EXPECT_NE(std::strstr(offer.text, "version"), nullptr);
    close(fd);
    packet = hello();
    packet.magic ^= 1;
    fd = connect_raw();
    EXPECT_NE(answer(fd, &packet, sizeof packet).status, 0);
    close(fd);
    packet = hello();
    std::strcpy(packet.net, "nowhere");
    fd = connect_raw();
    EXPECT_EQ(answer(fd, &packet, sizeof packet).status, ULC_ERR_INVALID);
    close(fd);
    packet = hello();
    packet.wanted.sq_slots = 100;  // not a power of two
    fd = connect_raw();
    EXPECT_EQ(answer(fd, &packet, sizeof packet).status, ULC_ERR_INVALID);
    close(fd);
    expect_alive();
}

TEST_F(Daemon, nonsense_of_any_length_closes_that_connection_only) {
    for (const std::size_t octets : {1U, 3U, 63U, 65U, 1000U, 60'000U}) {
        const std::string garbage(octets, 'x');
        const int fd = connect_raw();
        const abi::Offer offer = answer(fd, garbage.data(), garbage.size());
        EXPECT_TRUE(offer.magic == 0 || offer.status != 0) << octets;
        char octet = 0;
        EXPECT_LE(recv(fd, &octet, 1, 0), 0) << "closed";
        close(fd);
    }
    expect_alive();
}

TEST_F(Daemon, a_client_that_stops_in_the_handshake_delays_nobody_and_is_dropped) {
    const int silent = connect_raw();
    const int half = connect_raw();
    const abi::Hello packet = hello();
    int memory = -1;
    EXPECT_EQ(answer(half, &packet, sizeof packet, &memory).status, 0);
    expect_alive();
    char octet = 0;
    const timeval limit{15, 0};
    setsockopt(silent, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(recv(silent, &octet, 1, 0), 0) << "closed at its deadline";
    EXPECT_EQ(recv(half, &octet, 1, 0), 0);
    for (const int fd : {silent, half, memory})
        close(fd);
    EXPECT_TRUE(eventually([&] { return counter_of(socket, "clients_silent") >= 2; }));
    EXPECT_EQ(counter_of(socket, "clients_silent"), 2U) << "each once";
    expect_alive();
}

TEST_F(Daemon, of_many_silent_clients_the_oldest_are_refused) {
    constexpr unsigned kSilentMax = 64;  // SilentClients::kMax
    constexpr unsigned kRefused = 20;
    std::vector<int> silent(kRefused + kSilentMax);
    for (int& one : silent)
        one = connect_raw();
    for (unsigned n = 0; n < kRefused; ++n) {
        abi::Offer offer{};
        ASSERT_EQ(recv(silent[n], &offer, sizeof offer, 0), static_cast<ssize_t>(sizeof offer))
            << n;
        EXPECT_EQ(offer.status, ULC_ERR_LIMIT);
        EXPECT_NE(std::strstr(offer.text, "said nothing"), nullptr) << offer.text;
    }
    const abi::Hello packet = hello();
    int memory = -1;
    EXPECT_EQ(answer(silent.back(), &packet, sizeof packet, &memory).status, 0)
        << "one that speaks is served, whatever the others do";
    EXPECT_TRUE(eventually([&] { return counter_of(socket, "clients_silent") >= kRefused; }));
    expect_alive();
    for (const int fd : silent)
        close(fd);
    close(memory);
}

constexpr int kSealExec = 0x20;            // F_SEAL_EXEC, Linux 6.3
constexpr unsigned kNoExecSeal = 0x0008U;  // MFD_NOEXEC_SEAL

bool kernel_has_exec_seals() {
    const int probe = memfd_create("ulc-probe", MFD_CLOEXEC | kNoExecSeal);
    if (probe >= 0) close(probe);
    return probe >= 0;
}

TEST_F(Daemon, sealed_memory_refuses_holes_resizing_new_mappings_and_more_seals) {
    const int fd = connect_raw();
    const abi::Hello packet = hello();
    int memory = -1;
    const abi::Offer offer = answer(fd, &packet, sizeof packet, &memory);
    ASSERT_EQ(offer.status, 0);
    ASSERT_GE(memory, 0);
    const auto octets = static_cast<off_t>(offer.layout.region_octets);
    void* mapped =
        mmap(nullptr, offer.layout.region_octets, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const abi::Mapped confirm{abi::kHelloMagic, 0};
    ASSERT_EQ(send(fd, &confirm, sizeof confirm, 0), static_cast<ssize_t>(sizeof confirm));
    abi::Ready ready{};
    ASSERT_EQ(recv(fd, &ready, sizeof ready, 0), static_cast<ssize_t>(sizeof ready));
    EXPECT_EQ(ready.status, 0) << ready.text;

    EXPECT_EQ(fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(madvise(mapped, 4096, MADV_REMOVE), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(ftruncate(memory, octets / 2), -1);
    EXPECT_EQ(ftruncate(memory, octets * 2), -1);
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0), MAP_FAILED);
    EXPECT_EQ(fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE), -1);
    if (kernel_has_exec_seals()) {
        EXPECT_NE(fcntl(memory, F_GET_SEALS) & kSealExec, 0) << "it may become code";
        EXPECT_EQ(fchmod(memory, 0700), -1);
    }
    *static_cast<volatile char*>(mapped) = *static_cast<volatile char*>(mapped);  // still writable
    munmap(mapped, offer.layout.region_octets);
    close(memory);
    close(fd);
    expect_alive();
}

TEST_F(Daemon, a_client_that_scribbles_over_its_memory_hurts_itself_only) {
    const int fd = connect_raw();
    const abi::Hello packet = hello();
    int memory = -1;
    const abi::Offer offer = answer(fd, &packet, sizeof packet, &memory);
    ASSERT_EQ(offer.status, 0);
    auto* mapped = static_cast<unsigned char*>(
        mmap(nullptr, offer.layout.region_octets, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    const abi::Mapped confirm{abi::kHelloMagic, 0};
    ASSERT_EQ(send(fd, &confirm, sizeof confirm, 0), static_cast<ssize_t>(sizeof confirm));
    abi::Ready ready{};
    ASSERT_EQ(recv(fd, &ready, sizeof ready, 0), static_cast<ssize_t>(sizeof ready));
    for (unsigned pass = 1; pass < 200; ++pass) {
        for (std::uint64_t i = 0; i < offer.layout.region_octets; i += 1 + pass % 7)
            mapped[i] =
                static_cast<unsigned char>(pass % 3 == 0 ? 1 : i * 2654435761U >> pass % 24);
        const unsigned char octet = abi::kDoorbell;
        (void)send(fd, &octet, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    munmap(mapped, offer.layout.region_octets);
    close(memory);
    close(fd);
    expect_alive();
}

TEST_F(Daemon, its_counters_are_served_read_only) {
    const int fd = connect_raw();
    abi::Hello packet = hello();
    packet.kind = abi::HelloKind::kCounters;
    int memory = -1;
    const abi::Offer offer = answer(fd, &packet, sizeof packet, &memory);
    ASSERT_EQ(offer.status, 0);
    ASSERT_GE(memory, 0);
    EXPECT_EQ(mmap(nullptr, offer.layout.region_octets, PROT_WRITE, MAP_SHARED, memory, 0),
              MAP_FAILED);
    void* page = mmap(nullptr, offer.layout.region_octets, PROT_READ, MAP_SHARED, memory, 0);
    ASSERT_NE(page, MAP_FAILED);
    const auto* header = static_cast<const abi::CounterPageHeader*>(page);
    EXPECT_EQ(header->magic, abi::kCounterPageMagic);
    EXPECT_EQ(header->engine_pid, static_cast<std::uint32_t>(engine.pid()));
    munmap(page, offer.layout.region_octets);
    close(memory);
    close(fd);
}

}  // namespace
}  // namespace ulc::test
