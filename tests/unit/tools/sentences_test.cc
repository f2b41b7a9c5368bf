// SPDX-License-Identifier: BSD-3-Clause
// The sentences with which `ulc` refuses a command line, a program or a socket. Each is compared
// whole: it names the fault and the next thing to type.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/shared/command_line.h"
#include "tools/ulc/engine_socket.h"
#include "tools/ulc/programs.h"

namespace ulc::tools {
namespace {

/// A command line as that of `ulc`, with two commands.
class Sentences : public testing::Test {
protected:
    Sentences() {
        app_.require_subcommand();
        Command run = app_.add_subcommand("run", "Runs");
        run.add_option("--rate", rate_, "A rate").rate(1'000'000, 1'000'000'000'000);
        run.add_option("--delay", delay_us_, "A delay").time(kMicrosecond, 0, 10 * kSecond);
        run.add_option("--timeout", timeout_s_, "A limit")
            .time(kSecond, kMillisecond, 600 * kSecond, true);
        app_.add_subcommand("stat", "Counts");
    }
    /// Returns what the program prints to stderr.
    std::string refusal(const std::vector<std::string>& words) {
        testing::internal::CaptureStderr();
        const auto status = app_.parse(words);
        std::string text = testing::internal::GetCapturedStderr();
        EXPECT_TRUE(status.value_or(0) != 0) << "taken";
        return text;
    }

    CommandLine app_{"A program", "ulc"};
    std::uint64_t rate_ = 0;
    double delay_us_ = 0;
    double timeout_s_ = 0;
};

TEST_F(Sentences, no_command_gets_the_list_of_commands) {
    EXPECT_EQ(refusal({}), "ulc: say which command to run: run, stat\nSee: ulc --help\n");
}

TEST_F(Sentences, a_mistyped_command_gets_the_nearest_one) {
    EXPECT_EQ(refusal({"rnu", "-n", "2"}),
              "ulc: there is no command rnu; did you mean run?\nSee: ulc --help\n");
    EXPECT_EQ(refusal({"build"}),
              "ulc: there is no command build; there are run, stat\nSee: ulc --help\n");
}

TEST_F(Sentences, a_mistyped_option_gets_the_nearest_one_of_its_command) {
    EXPECT_EQ(refusal({"run", "--raet", "5"}),
              "ulc run: there is no option --raet; did you mean --rate?\nSee: ulc run --help\n");
    EXPECT_EQ(refusal({"--versoin"}), "ulc: there is no option --versoin\nSee: ulc --help\n");
    EXPECT_EQ(refusal({"stat", "now"}), "ulc stat: one word too many: now\nSee: ulc stat --help\n");
}

TEST_F(Sentences, rates_and_times_take_units_and_name_them) {
    EXPECT_FALSE(app_.parse({"run", "--rate", "100mbit", "--delay", "1.5ms", "--timeout=2min"}));
    EXPECT_EQ(rate_, 100'000'000U);
    EXPECT_EQ(delay_us_, 1500);
    EXPECT_EQ(timeout_s_, 120);
}

TEST_F(Sentences, a_number_without_a_unit_has_the_unit_of_its_option) {
    EXPECT_FALSE(app_.parse({"run", "--rate", "100000000", "--delay", "50", "--timeout", "0"}));
    EXPECT_EQ(rate_, 100'000'000U);
    EXPECT_EQ(delay_us_, 50);
    EXPECT_EQ(timeout_s_, 0) << "none";
    EXPECT_EQ(refusal({"run", "--delay", "5x"}),
              "ulc run: --delay: 5x is no time; write a number and ns, us, ms, s, min or h, from 0 "
              "to 10 s; without a unit it is in us\nSee: ulc run --help\n");
    EXPECT_EQ(refusal({"run", "--rate", "100"}),
              "ulc run: --rate: 100 is out of range; write bits a second from 1 mbit to 1 tbit, as "
              "in 100mbit\nSee: ulc run --help\n");
}

/// A folder that is removed at the end.
class Folder {
public:
    Folder() {
        char path[] = "/tmp/ulc-sentences.XXXXXX";
        path_ = ::mkdtemp(path);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const {
        std::string path = path_ + "/" + name;
        std::ofstream(path) << "text\n";
        return path;
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

TEST(Programs, says_why_a_path_is_no_program) {
    const Folder folder;
    const std::string file = folder.file("a.py");
    EXPECT_EQ(why_no_program(file), file + " is not executable; run chmod +x " + file +
                                        ", or name the program that reads it before it, as in "
                                        "python3 " +
                                        file);
    ::chmod(file.c_str(), 0755);
    EXPECT_EQ(why_no_program(file), "");
    EXPECT_EQ(why_no_program(folder.path()), folder.path() + " is a folder; name a program");
    EXPECT_EQ(why_no_program("/tmp/none"),
              "no such program: /tmp/none; is it built, and is the path right?");
    EXPECT_EQ(why_no_program("ulc-none"),
              "no such program: ulc-none; is it built, and is PATH right?");
}

TEST(EngineSocket, a_file_that_is_no_socket_is_not_taken_for_one_of_an_engine_that_ended) {
    Descriptor none;
    std::string error;
    EXPECT_FALSE(ask_for_page("/etc/passwd", abi::HelloKind::kCounters, &none, &error));
    EXPECT_EQ(error,
              "/etc/passwd is no socket; name the one of the engine's option --socket, as "
              "/run/ulc/engine.sock");
}

}  // namespace
}  // namespace ulc::tools
