// SPDX-License-Identifier: BSD-3-Clause
// The report of `ulc doctor --report`: complete, without secrets, and never over another file.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tools/ulc/doctor/report.h"

namespace ulc::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kNonce[] = "00112233445566778899aabbccddeeff";

class DoctorReport : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/ulc-report-test.XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root_ = name;
        write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Example 9000\nflags\t: fpu");
        write("proc/cmdline", "quiet isolcpus=1");
        write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Example Linux 1\"");
        write("etc/ulc/engine.toml",
              "device = [\"net_memif,role=client,secret=hush,id=0\"]\nendpoints = 64");
        write("sys/class/net/eth7/mtu", "1500");
        write("sys/class/net/eth7/operstate", "up");
        write("sys/class/net/eth7/speed", "100");
        write("sys/class/net/eth7/address", "52:54:00:12:34:56");
        ::setenv("ULC_NONCE", kNonce, 1);
        ::setenv("ULC_PROFILE", "urtp", 1);
        ::setenv("OMPI_MCA_pml", "cm", 1);
    }
    void TearDown() override {
        for (const char* name : {"ULC_NONCE", "ULC_PROFILE", "OMPI_MCA_pml"})
            ::unsetenv(name);
        fs::remove_all(root_);
    }

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text << '\n';
    }
    [[nodiscard]] std::string report() const {
        const Findings findings{{Level::kWarn, "hugepages", "none reserved", "reserve some"}};
        return report_text(root_.string(), (root_ / "none.sock").string(), findings);
    }

    fs::path root_;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_F(DoctorReport, has_machine_findings_devices_environment_and_configuration) {
    const std::string text = report();
    EXPECT_TRUE(text.starts_with(std::string("ULC ") + ULC_VERSION + ", 20")) << text;
    for (const char* part :
         {"processor: Example 9000\n", "system: \"Example Linux 1\"\n",
          "kernel's options: quiet isolcpus=1\n", "warn  hugepages", "fix: reserve some",
          "eth7: driver none, up, MTU 1500 B, 100 Mb/s, MAC 52:54:00:xx:xx:xx\n",
          "ULC_PROFILE=urtp\n", "OMPI_MCA_pml=cm\n", "endpoints = 64\n"})
        EXPECT_TRUE(contains(text, part)) << part << " is missing in:\n" << text;
    // No engine answers, which the report says in the place of the counters.
    const auto engine = text.find("== engine\n");
    ASSERT_NE(engine, std::string::npos);
    EXPECT_TRUE(contains(text.substr(engine), "none.sock")) << text;
}

TEST_F(DoctorReport, has_no_secret) {
    const std::string text = report();
    EXPECT_TRUE(contains(text, "ULC_NONCE=(removed)\n")) << text;
    EXPECT_TRUE(contains(text, "secret=(removed),id=0")) << text;
    for (const char* secret : {kNonce, "hush", "12:34:56"})
        EXPECT_FALSE(contains(text, secret)) << secret;
}

TEST_F(DoctorReport, removes_long_numbers_and_leaves_the_rest) {
    EXPECT_EQ(without_secrets("nonce 0x" + std::string(kNonce) + "."), "nonce (removed).");
    EXPECT_EQ(without_secrets("id 0011223344556677, 64 KiB"), "id 0011223344556677, 64 KiB");
    EXPECT_EQ(without_secrets("secret=\"a b\", secret=x"), "secret=(removed), secret=(removed)");
    EXPECT_EQ(without_secrets("at 0000:03:00.0, 12:30:45"), "at 0000:03:00.0, 12:30:45");
}

TEST_F(DoctorReport, is_a_new_file_of_its_owner) {
    const std::string path = (root_ / "report.txt").string();
    EXPECT_EQ(write_report(path, "one\n"), "");
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    EXPECT_EQ(write_report(path, "two\n"), path + " is there already; name a new file");
    std::ostringstream kept;
    kept << std::ifstream(path).rdbuf();
    EXPECT_EQ(kept.str(), "one\n");
    const std::string nowhere = (root_ / "no/folder").string();
    EXPECT_TRUE(write_report(nowhere, "x").starts_with("cannot write " + nowhere));
}

TEST_F(DoctorReport, leaves_no_part_of_a_report_where_space_ends) {
    const std::string path = (root_ / "report.txt").string();
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{10, RLIM_INFINITY};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string error = write_report(path, std::string(100, 'x'));
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
    EXPECT_EQ(error, "cannot write " + path + ": File too large; make space there");
    EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace ulc::tools
