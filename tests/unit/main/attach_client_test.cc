// SPDX-License-Identifier: BSD-3-Clause
// libulc and a process that listens on the socket of an engine, but is none: memory that it may cut
// off is not mapped (client/attach/attach_client.h).
#include "client/attach/attach_client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "abi/attach.h"
#include "client/error_text.h"

namespace ulc::client {
namespace {

/// The memory that the listener offers.
struct Memory {
    int seals = 0;
    off_t missing = 0;  ///< bytes that its layout has more
};

class AttachClient : public testing::Test {
protected:
    void SetUp() override {
        path_ = testing::TempDir() + "ulc_attach_" + std::to_string(getpid()) + ".sock";
        unlink(path_.c_str());
        listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
        ASSERT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        ASSERT_EQ(listen(listener_, 1), 0);
    }
    void TearDown() override {
        close(listener_);
        unlink(path_.c_str());
    }
    /// Attaches to a listener that offers such memory. Returns the error; has_mapped_ is true if
    /// libulc mapped the memory.
    Err attach(const Memory& memory) {
        std::thread engine([&] { serve(memory); });
        const auto endpoint = attach_daemon(path_.c_str(), "", Limits{});
        engine.join();
        return endpoint.error();
    }

    bool has_mapped_ = false;

private:
    void serve(const Memory& memory) {
        const int fd = accept(listener_, nullptr, nullptr);
        abi::Hello hello{};
        EXPECT_EQ(recv(fd, &hello, sizeof hello, 0), ssize_t{sizeof hello});
        abi::RegionSizes sizes{};
        sizes.sq_slots = sizes.cq_slots = 64;
        sizes.tx_arena_octets = sizes.rx_arena_octets = 1U << 20U;
        const auto layout = abi::compute_layout(sizes);
        ASSERT_TRUE(layout.ok());
        const auto octets = static_cast<off_t>(layout.value().region_octets);
        const int region = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        EXPECT_EQ(ftruncate(region, octets - memory.missing), 0);
        void* control = mmap(nullptr, sizeof(abi::EndpointControl), PROT_READ | PROT_WRITE,
                             MAP_SHARED, region, 0);
        ASSERT_NE(control, MAP_FAILED);
        abi::initialise_control(control, layout.value(), 1, static_cast<std::uint32_t>(getpid()));
        munmap(control, sizeof(abi::EndpointControl));
        EXPECT_EQ(fcntl(region, F_ADD_SEALS, memory.seals), 0);
        abi::Offer offer{};
        offer.magic = abi::kHelloMagic;
        offer.abi_version = abi::kAbiVersion;
        offer.layout = layout.value();
        send_with(fd, offer, region);
        abi::Mapped mapped{};
        has_mapped_ = recv(fd, &mapped, sizeof mapped, 0) == ssize_t{sizeof mapped};
        close(region);
        close(fd);
    }
    static void send_with(int socket, const abi::Offer& offer, int descriptor) {
        iovec part{const_cast<abi::Offer*>(&offer), sizeof offer};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
        EXPECT_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), ssize_t{sizeof offer});
    }

    std::string path_;
    int listener_ = -1;
};

TEST_F(AttachClient, memory_that_the_engine_may_cut_off_is_not_mapped) {
    for (const int seals : {0, F_SEAL_GROW}) {
        EXPECT_EQ(attach({seals, 0}), Err::kVersion);
        EXPECT_NE(std::string(last_error()).find("restart it"), std::string::npos) << last_error();
        EXPECT_FALSE(has_mapped_) << seals;
    }
}

TEST_F(AttachClient, memory_that_is_shorter_than_its_layout_is_not_mapped) {
    EXPECT_EQ(attach({F_SEAL_SHRINK | F_SEAL_GROW, 4096}), Err::kCorrupt);
    EXPECT_FALSE(has_mapped_);
}

TEST_F(AttachClient, memory_of_a_size_for_good_is_mapped) {
    EXPECT_EQ(attach({F_SEAL_SHRINK | F_SEAL_GROW, 0}), Err::kNoEngine) << "it closes then";
    EXPECT_TRUE(has_mapped_);
}

}  // namespace
}  // namespace ulc::client
