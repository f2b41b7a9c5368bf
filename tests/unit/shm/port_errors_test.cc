// SPDX-License-Identifier: BSD-3-Clause
// Wires of shared memory that no engine can open, and texts that name none.
#include "tests/unit/shm/ports.h"

namespace ulc::shm {
namespace {

// ---- what a user gets wrong ---------------------------------------------------------------------

TEST_F(ShmPorts, two_engines_at_one_station_are_refused) {
    const auto a = open(0);
    std::unique_ptr<ShmPort> second;
    EXPECT_EQ(ShmPort::open(options(0), second, why_), Err::kInvalid);
    EXPECT_NE(why_.find("station 0 is held by another engine"), std::string::npos) << why_;
}

TEST_F(ShmPorts, a_wire_of_another_shape_is_refused) {
    const auto a = open(0);
    std::unique_ptr<ShmPort> other;
    EXPECT_EQ(ShmPort::open(options(1, 5), other, why_), Err::kInvalid);
    EXPECT_NE(why_.find("same stations= and ring="), std::string::npos) << why_;
}

TEST_F(ShmPorts, a_file_that_is_no_wire_is_refused_and_left_alone) {
    const auto a = open(0);
    struct stat state = {};
    ASSERT_EQ(stat(path().c_str(), &state), 0);
    const auto octets = static_cast<std::size_t>(state.st_size);
    ASSERT_EQ(unlink(path().c_str()), 0);
    std::ofstream(path()) << std::string(octets, '?');
    std::unique_ptr<ShmPort> port;
    EXPECT_EQ(ShmPort::open(options(0), port, why_), Err::kInvalid);
    EXPECT_NE(why_.find("is not a wire"), std::string::npos) << why_;
    std::string text;
    std::ifstream(path()) >> text;
    EXPECT_EQ(text, std::string(octets, '?'));
}

TEST_F(ShmPorts, a_wire_of_another_shape_is_made_again_when_no_engine_is_on_it) {
    open(0).reset();
    EXPECT_NE(open(0, 5), nullptr);
}

TEST_F(ShmPorts, a_file_that_its_maker_left_unfinished_is_made_again) {
    open(0).reset();
    struct stat state = {};
    ASSERT_EQ(stat(path().c_str(), &state), 0);
    const auto octets = static_cast<std::size_t>(state.st_size);
    const std::string lefts[] = {std::string(7, '\0'), std::string(octets / 2, '\0'),
                                 std::string(octets, '\0'),
                                 "ucwire00" + std::string(octets - 8, '\0')};
    for (const std::string& left : lefts) {
        std::ofstream(path(), std::ios::trunc) << left;
        const auto a = open(0);
        const auto b = open(1);
        ASSERT_TRUE(a != nullptr && b != nullptr) << left.size();
        EXPECT_TRUE(send(a->port(), b->port().info.mac, 100, 'x'));
    }
}

TEST_F(ShmPorts, a_maker_killed_at_any_moment_leaves_a_wire_for_the_next) {
    unsigned unfinished = 0;
    for (unsigned turn = 0; turn < 150; ++turn) {
        const pid_t maker = fork();
        if (maker == 0) {
            std::unique_ptr<ShmPort> port;
            std::string why;
            static_cast<void>(ShmPort::open(options(0, 64), port, why));
            pause();
        }
        usleep(turn * 40);
        kill(maker, SIGKILL);
        waitpid(maker, nullptr, 0);
        char magic[9] = {};
        std::ifstream(path()).read(magic, 8);
        if (std::string(magic) != "ucwire01") ++unfinished;
        ASSERT_NE(open(0, 64), nullptr) << "turn " << turn;
        unlink(path().c_str());
    }
    RecordProperty("unfinished", static_cast<int>(unfinished));
}

TEST_F(ShmPorts, a_file_that_others_may_change_is_refused) {
    const auto refusal = [&] {
        std::unique_ptr<ShmPort> port;
        EXPECT_NE(ShmPort::open(options(0), port, why_), Err::kOk);
        return why_;
    };
    const std::string other = folder_ + "/other";
    ASSERT_EQ(symlink(other.c_str(), path().c_str()), 0);
    EXPECT_NE(refusal().find("cannot be opened"), std::string::npos) << why_;
    EXPECT_NE(access(other.c_str(), F_OK), 0) << "made behind a symbolic link";
    unlink(path().c_str());

    open(0).reset();
    ASSERT_EQ(chmod(path().c_str(), 0660), 0);
    EXPECT_NE(refusal().find("chmod 600"), std::string::npos) << why_;
    ASSERT_EQ(chmod(path().c_str(), 0600), 0);
    ASSERT_EQ(link(path().c_str(), other.c_str()), 0);
    EXPECT_NE(refusal().find("hard link"), std::string::npos) << why_;
    unlink(other.c_str());
    EXPECT_NE(open(0), nullptr) << "refused for good";
    unlink(path().c_str());

    ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
    EXPECT_NE(refusal().find("no regular file"), std::string::npos) << why_;
    unlink(path().c_str());

    if (geteuid() == 0) {
        open(0).reset();
        ASSERT_EQ(chown(path().c_str(), 65534, 65534), 0);
        EXPECT_NE(refusal().find("belongs to user 65534"), std::string::npos) << why_;
    }
}

TEST_F(ShmPorts, a_full_tmpfs_is_named) {
    const pid_t child = fork();
    if (child == 0) {  // in a mount namespace, so that only this child sees the small tmpfs
        if (unshare(CLONE_NEWNS) != 0 ||
            mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", folder_.c_str(), "tmpfs", 0, "size=64k") != 0)
            _exit(77);
        std::unique_ptr<ShmPort> port;
        std::string why;
        const Err error = ShmPort::open(options(0), port, why);
        struct stat state = {};
        const bool left = stat(path().c_str(), &state) == 0 && state.st_size > 0;
        const bool named = why.find("does not fit") != std::string::npos &&
                           why.find("a tmpfs with more free space") != std::string::npos;
        _exit(error == Err::kNoMemory && named && !left ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root";
    EXPECT_EQ(status, 0);
}

TEST_F(ShmPorts, a_folder_that_is_not_there_is_named) {
    auto wrong = options(0);
    wrong.device.path = folder_ + "/nowhere/wire";
    std::unique_ptr<ShmPort> port;
    EXPECT_EQ(ShmPort::open(wrong, port, why_), Err::kInvalid);
    EXPECT_NE(why_.find("its folder must be there"), std::string::npos) << why_;
}

TEST(ShmDevice, is_read_from_text) {
    DeviceSpec spec;
    std::string why;
    ASSERT_EQ(parse_device("shm,path=/dev/shm/lab,station=3,stations=8,ring=131072", spec, why),
              Err::kOk);
    EXPECT_EQ(spec.path, "/dev/shm/lab");
    EXPECT_EQ(spec.station, 3U);
    EXPECT_EQ(spec.shape, (Shape{8, 131072}));
    ASSERT_EQ(parse_device("shm,path=w", spec, why), Err::kOk);
    EXPECT_EQ(spec.shape, (Shape{16, 524288}));
}

TEST(ShmDevice, what_is_wrong_is_said) {
    const std::pair<const char*, const char*> wrong[] = {
        {"shm", "without path="},
        {"shm,", "is not understood"},
        {"shm,path=", "is not understood"},
        {"shm,path=w,station", "is not understood"},
        {"shm,path=w,station=-1", "is not understood"},
        {"shm,path=w,station=1x", "is not understood"},
        {"shm,path=w,colour=2", "is not understood"},
        {"shm,path=w,station=16", "below stations="},
        {"shm,path=w,stations=0", "must be 1 to 64"},
        {"shm,path=w,stations=65", "must be 1 to 64"},
        {"shm,path=w,ring=100000", "a power of two"},
        {"shm,path=w,ring=4096", "a power of two"},
    };
    for (const auto& [device, text] : wrong) {
        DeviceSpec spec;
        std::string why;
        EXPECT_EQ(parse_device(device, spec, why), Err::kInvalid) << device;
        EXPECT_NE(why.find(text), std::string::npos) << device << ": " << why;
    }
    EXPECT_FALSE(is_shm("shmem,path=w"));
    EXPECT_FALSE(is_shm("net_memif,role=client"));
}

}  // namespace
}  // namespace ulc::shm
