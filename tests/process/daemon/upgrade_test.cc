// SPDX-License-Identifier: BSD-3-Clause
// The upgrade of a running engine by `ulc upgrade`: each refusal is one sentence after which the
// old core goes on, and a core that takes over serves clients. Cores are copies of test_core.cc,
// whose names choose what they do. Two ranks in full traffic lose, double and reorder nothing over
// many upgrades, whose blackout is shorter than what precedes it. ULC_UPGRADE_SECONDS: length of
// that traffic, whose blackouts have limits in milliseconds; tools/soak upgrades sets it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ulc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/process/daemon/local_users.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLimit = 30'000'000'000;
const char* const kUlc = from_meson("ULC_PATH");
const char* const kBuild = from_meson("ULC_BUILD_DIR");

/// Text and exit status of `ulc upgrade`.
struct Said {
    int status = -1;
    std::string text;
};

/// One engine, in a separate folder with the core that it starts with.
class UpgradeTest : public ::testing::Test {
protected:
    void start(const fs::path& core, const std::vector<std::string>& more = {}) {
        scratch_.let_others_in();
        fs::copy_file(kEngineProgram, folder() / "ulc-engine");
        fs::copy_file(core, folder() / "libulc-core.so");
        std::vector<std::string> arguments{
            "--device",    "shm,station=0,path=" + (scratch_ / "wire"),
            "--socket",    socket_,
            "--hugepages", "never"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        setenv("ULC_ENGINE_PATH", (folder() / "ulc-engine").c_str(), 1);
        engine_ = start_engine(arguments, log_);
        setenv("ULC_ENGINE_PATH", kEngineProgram, 1);
        ASSERT_TRUE(eventually([&] {
            return text_of(log_).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log_);
    }
    /// A copy of the test core under this name.
    [[nodiscard]] std::string core(const std::string& name) const {
        fs::copy_file(test_core(), folder() / name, fs::copy_options::overwrite_existing);
        return folder() / name;
    }
    [[nodiscard]] static fs::path test_core() {
        return fs::path(kBuild) / "tests/process/libprocess_test_core.so";
    }
    [[nodiscard]] static fs::path real_core() {
        return fs::path(kBuild) / "pmd_app/main/libulc-core.so";
    }
    Said upgrade(const std::string& library, uid_t as = 0, const char* more = nullptr) {
        const std::string out = scratch_ / "said";
        fs::remove(out);
        Process child = run_child([&] {
            const int fd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
            dup2(fd, STDOUT_FILENO);
            dup2(fd, STDERR_FILENO);
            if (as != 0 && !become(as)) return 126;
            execl(kUlc, kUlc, "upgrade", "--engine", socket_.c_str(), "--library", library.c_str(),
                  more, nullptr);
            return 127;
        });
        Said said;
        said.status = child.wait();
        said.text = text_of(out);
        return said;
    }
    void expect_refused(const Said& said, const std::string& sentence) {
        EXPECT_EQ(said.status, 1) << said.text;
        EXPECT_NE(said.text.find(sentence), std::string::npos) << said.text;
        EXPECT_EQ(said.text.find('\n'), said.text.size() - 1) << "one line: " << said.text;
        expect_served();
    }
    /// Two endpoints form a job and exchange a message.
    void expect_served() {
        const auto member = [&](std::uint16_t rank) {
            return run_child([&] {
                ulc_endpoint* ep = nullptr;
                if (ulc_open(socket_.c_str(), &ep) != ULC_OK) return 1;
                if (ulc_join_wait(ep, "test", rank, 2, kLimit) != ULC_OK) return 2;
                std::uint32_t got = 99;
                const std::uint32_t mine = rank;
                const auto other = static_cast<std::uint16_t>(1 - rank);
                ulc_request send;
                ulc_request receive;
                if (ulc_receive(ep, other, 0, 0, &got, sizeof got, &receive) != ULC_OK) return 3;
                if (ulc_send(ep, other, 0, &mine, sizeof mine, &send) != ULC_OK) return 4;
                if (ulc_wait_for(ep, &receive, nullptr, kLimit) != ULC_OK) return 5;
                if (ulc_wait_for(ep, &send, nullptr, kLimit) != ULC_OK || got != other) return 6;
                if (ulc_leave_wait(ep, kLimit) != ULC_OK) return 7;
                ulc_close(ep);
                return 0;
            });
        };
        Process zero = member(0);
        Process one = member(1);
        EXPECT_EQ(zero.wait(), 0) << text_of(log_);
        EXPECT_EQ(one.wait(), 0) << text_of(log_);
    }
    [[nodiscard]] fs::path folder() const { return fs::path(scratch_ / "").parent_path(); }

    Scratch scratch_;
    std::string socket_ = scratch_ / "engine.sock";
    std::string log_ = scratch_ / "engine.log";
    Process engine_;
};

/// Returns the number behind "word " in what the command says; -1: there is none.
double number_behind(const std::string& word, const std::string& text) {
    const std::size_t at = text.find(word + ' ');
    return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + word.size(), nullptr);
}

double median_of(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// Between the test and rank 0 of its traffic.
struct Traffic {
    std::atomic<std::uint32_t> rounds{0};  ///< ended ones
    std::atomic<bool> stop{false};

    static Traffic& shared() {
        void* memory = mmap(nullptr, sizeof(Traffic), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        return *new (memory) Traffic;
    }
};

/// Messages of a round: lengths from 4 octets to several frames.
constexpr std::size_t kWindow = 16;
constexpr std::size_t kUpgrades = 20;
/// Bytes that the blackout exports and imports, for one endpoint and one peer.
constexpr double kStateMax = 32768;
std::size_t words_of(std::size_t message) { return 1 + message * 97; }

/// Rank 0 sends windows, rank 1 sends each message back. Every word is that of its round, message
/// and place, and the last round is one of zeros. Returns 0, or where it went wrong.
int stream(const std::string& socket, std::uint16_t rank, Traffic& traffic) {
    ulc_endpoint* ep = nullptr;
    if (ulc_open(socket.c_str(), &ep) != ULC_OK) return 1;
    if (ulc_join_wait(ep, "stream", rank, 2, kLimit) != ULC_OK) return 2;
    const auto other = static_cast<std::uint16_t>(1 - rank);
    std::vector<std::vector<std::uint32_t>> out(kWindow);
    std::vector<std::vector<std::uint32_t>> in(kWindow);
    for (std::uint32_t round = 1;; ++round) {
        const bool last = traffic.stop;
        std::vector<ulc_request> sends(kWindow);
        std::vector<ulc_request> receives(kWindow);
        for (std::size_t m = 0; m < kWindow; ++m) {
            in[m].assign(words_of(m), 0);
            if (ulc_receive(ep, other, m, 0, in[m].data(), in[m].size() * 4, &receives[m]))
                return 3;
        }
        const auto send_all = [&] {
            for (std::size_t m = 0; m < kWindow; ++m)
                if (ulc_send(ep, other, m, out[m].data(), out[m].size() * 4, &sends[m]))
                    return false;
            return true;
        };
        const auto await = [&](std::vector<ulc_request>& requests) {
            return std::ranges::all_of(requests, [&](ulc_request& each) {
                return ulc_wait_for(ep, &each, nullptr, kLimit) == ULC_OK;
            });
        };
        for (std::size_t m = 0; m < kWindow && rank == 0; ++m) {
            out[m].resize(words_of(m));
            for (std::size_t w = 0; w < out[m].size(); ++w)
                out[m][w] = last ? 0 : static_cast<std::uint32_t>(round * 1000 + m * 10 + w);
        }
        if (rank == 0 && !send_all()) return 4;
        if (!await(receives)) return 5;
        if (rank == 1) {
            out = in;
            if (!send_all()) return 6;
        } else if (in != out) {
            return 7;
        }
        if (!await(sends)) return 8;
        const bool ends = rank == 0 ? last : in[1][0] == 0;
        for (std::size_t m = 0; m < kWindow && rank == 1 && !ends; ++m)
            for (std::size_t w = 0; w < in[m].size(); ++w)
                if (in[m][w] != static_cast<std::uint32_t>(round * 1000 + m * 10 + w)) return 9;
        if (rank == 0) traffic.rounds = round;
        if (ends) break;
    }
    if (ulc_leave_wait(ep, kLimit) != ULC_OK) return 10;
    ulc_close(ep);
    return 0;
}

TEST_F(UpgradeTest, under_full_traffic_loses_nothing) {
    start(real_core(), {"--sandbox", "yes"});
    const std::string log = scratch_ / "other.log";
    const std::string socket = scratch_ / "other.sock";
    Process other = start_engine({"--device", "shm,station=1,path=" + (scratch_ / "wire"),
                                  "--socket", socket, "--hugepages", "never"},
                                 log);
    ASSERT_TRUE(eventually([&] {
        return text_of(log).find("ulc-engine ready:") != std::string::npos;
    })) << text_of(log);
    Traffic& traffic = Traffic::shared();
    Process one = run_child([&] { return stream(socket, 1, traffic); });
    Process zero = run_child([&] { return stream(socket_, 0, traffic); });
    const char* given = std::getenv("ULC_UPGRADE_SECONDS");
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::duration<double>(given != nullptr ? std::atof(given) : 0);
    std::vector<double> blackouts;
    std::vector<double> preparations;
    for (std::size_t n = 0; n < kUpgrades || std::chrono::steady_clock::now() < until; ++n) {
        const std::uint32_t before = traffic.rounds;
        // The first of these rounds may have begun before the upgrade.
        ASSERT_TRUE(eventually([&] { return traffic.rounds >= before + 2; })) << text_of(log_);
        const fs::path next = folder() / ("next.so." + std::to_string(n % 2));
        fs::remove(next);
        fs::copy_file(real_core(), next);
        const Said said = upgrade(next);
        ASSERT_EQ(said.status, 0) << said.text << text_of(log_);
        blackouts.push_back(number_behind("blackout", said.text));
        preparations.push_back(number_behind("load", said.text) +
                               number_behind("create", said.text));
        EXPECT_GE(blackouts.back(), 0) << said.text;
        EXPECT_LE(number_behind("endpoints,", said.text), kStateMax) << said.text;
    }
    const std::uint32_t before = traffic.rounds;
    EXPECT_TRUE(eventually([&] { return traffic.rounds >= before + 2; })) << text_of(log_);
    traffic.stop = true;
    EXPECT_EQ(zero.wait(), 0) << text_of(log_);
    EXPECT_EQ(one.wait(), 0) << text_of(log);
    const double half = median_of(blackouts);
    const double prepared = median_of(preparations);
    std::ranges::sort(blackouts);
    const double most = blackouts[blackouts.size() * 99 / 100];
    std::printf(
        "%zu upgrades in %u rounds of %zu messages: blackout p50 %.2f ms, p99 %.2f ms, "
        "prepared in %.2f ms\n",
        blackouts.size(), traffic.rounds.load(), 2 * kWindow, half, most, prepared);
    EXPECT_LE(half, prepared);
    if (given == nullptr) return;
    EXPECT_LE(half, 10);
    EXPECT_LE(most, 100);
}

TEST_F(UpgradeTest, is_refused_for_a_file_that_is_no_fitting_core) {
    start(test_core(), {"--sandbox", "yes"});
    expect_refused(upgrade(folder() / "missing.so"), "cannot be read: No such file");
    std::ofstream(folder() / "text.so") << "no library";
    expect_refused(upgrade(folder() / "text.so"), "cannot be loaded");
    const auto libulc = fs::path(kBuild) / "libulc/libulc.so";
    expect_refused(upgrade(fs::canonical(libulc)), "is no engine core");
    expect_refused(upgrade(core("interface.so")), "has interface 99.");
    const std::string open_to_all = core("open.so");
    fs::permissions(open_to_all, fs::perms(0666));
    expect_refused(upgrade(open_to_all), "is not a file that only root");
}

TEST_F(UpgradeTest, is_rolled_back_when_the_new_core_refuses_or_is_late) {
    start(test_core(), {"--sandbox", "yes"});
    expect_refused(upgrade(core("schema.so")), "Session has version 3, this library knows 2");
    expect_refused(upgrade(core("slow.so")), "the upgrade was given up after ");
}

TEST_F(UpgradeTest, names_the_endpoint_that_is_in_the_way_for_a_second) {
    start(test_core());
    std::ofstream(folder() / "busy") << "";
    expect_refused(
        upgrade(core("next.so")),
        "endpoint 0x123 carries out a collective; try again when it has ended, or end that "
        "process by ulc upgrade --evict");
    fs::remove(folder() / "busy");
    EXPECT_EQ(upgrade(core("next.so")).status, 0);
}

TEST_F(UpgradeTest, ends_what_is_in_the_way_if_it_was_told_so) {
    start(test_core());
    std::ofstream(folder() / "busy") << "";
    const Said said = upgrade(core("next.so"), 0, "--evict");
    EXPECT_EQ(said.status, 0) << said.text;
    EXPECT_TRUE(eventually([&] {
        return text_of(log_).find("ended for the upgrade: process 17 of user 18") !=
               std::string::npos;
    })) << text_of(log_);
}

TEST_F(UpgradeTest, is_refused_to_other_users) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    start(test_core(), {"--allow-all"});
    expect_refused(upgrade(core("next.so"), kNobody), "only root and the engine's own user may");
}

TEST_F(UpgradeTest, is_refused_by_an_engine_that_was_told_so) {
    start(test_core(), {"--upgrade", "no"});
    expect_refused(upgrade(core("next.so")), "--upgrade no");
}

TEST_F(UpgradeTest, replaces_the_core_again_and_again_in_the_sandbox) {
    start(test_core(), {"--sandbox", "yes"});
    for (int n = 0; n < 5; ++n) {
        // A file of the same name, as an installation leaves it: another inode.
        const std::string next = core("next.so." + std::to_string(n));
        fs::rename(next, folder() / "next.so");
        const Said said = upgrade(folder() / "next.so");
        EXPECT_EQ(said.status, 0) << said.text << text_of(log_);
        EXPECT_GE(number_behind("blackout", said.text), 0) << said.text;
        expect_served();
    }
    // Replaced cores are unloaded.
    std::string mapped;
    std::ifstream maps("/proc/" + std::to_string(engine_.pid()) + "/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("r-xp") != std::string::npos &&
            (line.find("next.so") != std::string::npos ||
             line.find("libulc-core.so") != std::string::npos))
            mapped += line + '\n';
    EXPECT_EQ(std::ranges::count(mapped, '\n'), 1) << mapped;
    engine_.signal(SIGTERM);
    EXPECT_EQ(engine_.wait(), 0) << text_of(log_);
}

TEST_F(UpgradeTest, goes_on_when_the_command_dies) {
    start(test_core());
    const std::string next = core("slow.so");
    Process command = run_child([&] {
        execl(kUlc, kUlc, "upgrade", "--engine", socket_.c_str(), "--library", next.c_str(),
              nullptr);
        return 127;
    });
    const std::string maps = "/proc/" + std::to_string(engine_.pid()) + "/maps";
    EXPECT_TRUE(eventually([&] { return text_of(maps).find("slow.so") != std::string::npos; }));
    command.kill_now();
    EXPECT_TRUE(eventually([&] {
        return text_of(log_).find("not upgraded:") != std::string::npos;
    })) << text_of(log_);
    expect_served();
}

}  // namespace
}  // namespace ulc::test
