// SPDX-License-Identifier: BSD-3-Clause
// Places found from launchers: the environment alone, and a conversation with a Hydra that this
// test plays. That Hydra may be silent, talk rubbish, or hang up.
#include "launcher/launcher.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "launcher/ways.h"

namespace {

using namespace ulc::launcher;

constexpr const char* kVariables[] = {"ULC_RANK",     "PMIX_NAMESPACE",
                                      "PMIX_RANK",    "OMPI_COMM_WORLD_RANK",
                                      "PMI_RANK",     "PMI_SIZE",
                                      "PMI_FD",       "MPI_LOCALNRANKS",
                                      "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                                      "SLURM_NTASKS", "SLURM_JOB_ID",
                                      "SLURM_STEP_ID"};

class Launcher : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : kVariables)
            ::unsetenv(name);
    }
    static void set(const char* name, const std::string& value) {
        ::setenv(name, value.c_str(), 1);
    }
    Place place;
    std::string reason;
};

TEST_F(Launcher, an_environment_without_one_is_no_launcher_and_no_rank) {
    EXPECT_EQ(find_place(place, 1, Asker::kProgram, reason), Outcome::kNoLauncher);
    EXPECT_FALSE(rank_in_environment());
}

TEST_F(Launcher, slurm_gives_job_and_step_as_name_and_no_nonce) {
    set("SLURM_PROCID", "3");
    set("SLURM_STEP_ID", "7");
    set("SLURM_JOB_ID", "1234");
    set("SLURM_NTASKS", "100");
    set("SLURM_STEP_NUM_TASKS", "4");  // of this step, which counts
    ASSERT_EQ(by_slurm(place, reason), Outcome::kFound) << reason;
    EXPECT_EQ(place.job, "slurm-1234.7");
    EXPECT_EQ(place.rank, 3);
    EXPECT_EQ(place.size, 4);
    EXPECT_FALSE(place.nonce);
    EXPECT_EQ(rank_in_environment(), 3U);
}

TEST_F(Launcher, slurm_with_a_rank_outside_of_its_step_is_refused) {
    set("SLURM_PROCID", "4");
    set("SLURM_STEP_ID", "7");
    set("SLURM_JOB_ID", "1234");
    set("SLURM_STEP_NUM_TASKS", "4");
    EXPECT_EQ(find_place(place, 1, Asker::kProgram, reason), Outcome::kFailed);
    EXPECT_NE(reason.find("srun"), std::string::npos) << reason;
}

TEST_F(Launcher, names_that_a_job_may_not_have_are_hashed_and_differ) {
    const std::string longer(100, 'x');
    EXPECT_EQ(job_name("pmix", "3178.1"), "pmix-3178.1");
    EXPECT_EQ(job_name("pmix", "prterun-host-17@1"), "pmix-prterun-host-17@1");
    EXPECT_EQ(job_name("pmix", longer).size(), 21U);
    EXPECT_NE(job_name("pmix", longer), job_name("pmix", longer + "y"));
    EXPECT_NE(job_name("pmix", "a b"), job_name("pmix", "a c"));
}

TEST_F(Launcher, a_nonce_reads_as_it_was_written_and_nothing_else_reads) {
    const auto nonce = random_nonce();
    ASSERT_TRUE(nonce);
    EXPECT_EQ(nonce_of(text_of(*nonce)), *nonce);
    EXPECT_NE(random_nonce(), nonce);
    EXPECT_FALSE(nonce_of("00"));
    EXPECT_FALSE(nonce_of("0000000000000000000000000000000g"));
}

TEST_F(Launcher, ranks_are_numbers_and_ours_comes_first) {
    set("PMI_RANK", "12x");
    EXPECT_FALSE(rank_in_environment());
    set("SLURM_PROCID", "9");
    EXPECT_EQ(rank_in_environment(), 9U);
    set("OMPI_COMM_WORLD_RANK", "5");
    EXPECT_EQ(rank_in_environment(), 5U);
    set("ULC_RANK", "2");
    EXPECT_EQ(rank_in_environment(), 2U);
}

/// Plays Hydra on one end of a socket: answers each line by the table, and keeps what was put.
class Hydra {
public:
    Hydra() {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
        fd_ = ends[0];
        theirs = ends[1];
    }
    ~Hydra() {
        ::shutdown(fd_, SHUT_RDWR);
        if (thread_.joinable()) thread_.join();
        ::close(fd_);
        ::close(theirs);
    }
    void serve(bool silent = false) {
        thread_ = std::thread([this, silent] {
            std::string line;
            for (char letter = 0; ::read(fd_, &letter, 1) == 1;) {
                if (letter != '\n') {
                    line += letter;
                    continue;
                }
                heard.push_back(line);
                if (!silent) answer(line);
                line.clear();
            }
        });
    }

    int theirs = -1;
    std::string put = "00112233445566778899aabbccddeeff";
    std::vector<std::string>
        heard;  ///< read after the destructor of the thread, or when all was answered

private:
    void answer(const std::string& line) {
        if (const auto at = line.find("value="); at != std::string::npos) put = line.substr(at + 6);
        std::string text;
        const auto asked = line.substr(4, line.find(' ') - 4);
        if (asked == "init") text = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
        if (asked == "get_my_kvsname") text = "cmd=my_kvsname kvsname=kvs_17_0_host";
        if (asked == "put") text = "cmd=put_result rc=0 msg=success";
        if (asked == "barrier_in") text = "cmd=barrier_out";
        if (asked == "get") text = "cmd=get_result rc=0 msg=success value=" + put;
        if (asked == "finalize") text = "cmd=finalize_ack";
        text += "\n";
        EXPECT_EQ(::write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    int fd_ = -1;
    std::thread thread_;
};

class UnderHydra : public Launcher {
protected:
    void start(int rank, int fd) {
        set("PMI_RANK", std::to_string(rank));
        set("PMI_SIZE", "4");
        set("PMI_FD", std::to_string(fd));
        set("MPI_LOCALNRANKS", "4");
    }
};

TEST_F(UnderHydra, a_rank_gets_the_nonce_of_rank_0_and_says_good_bye) {
    std::vector<std::string> heard;
    {
        Hydra hydra;
        hydra.serve();
        start(2, hydra.theirs);
        ASSERT_EQ(by_pmi1(place, 20, PmiOwner::kThisLibrary, reason), Outcome::kFound) << reason;
        heard = hydra.heard;
    }
    EXPECT_EQ(place.job, "pmi-kvs_17_0_host");
    EXPECT_EQ(place.rank, 2);
    EXPECT_EQ(place.size, 4);
    ASSERT_TRUE(place.nonce);
    EXPECT_EQ(text_of(*place.nonce), "00112233445566778899aabbccddeeff");
    ASSERT_EQ(heard.size(), 5U);  // no put
    EXPECT_EQ(heard.back(), "cmd=finalize");
}

TEST_F(UnderHydra, rank_0_tells_the_others_where_its_engine_can_be_asked) {
    Hydra hydra;
    hydra.serve();
    start(0, hydra.theirs);
    place.addresses = "10.0.0.5:4001,192.168.0.5:4001";
    ASSERT_EQ(by_pmi1(place, 20, PmiOwner::kMpi, reason), Outcome::kFound) << reason;
    EXPECT_EQ(hydra.put, text_of(*place.nonce) + ",10.0.0.5:4001,192.168.0.5:4001");
    Place other;
    other.addresses = "10.0.0.6:4001";
    start(2, hydra.theirs);
    ASSERT_EQ(by_pmi1(other, 20, PmiOwner::kMpi, reason), Outcome::kFound) << reason;
    EXPECT_EQ(other.nonce, place.nonce);
    EXPECT_EQ(other.addresses, "10.0.0.5:4001,192.168.0.5:4001");
    EXPECT_FALSE(read_published("10.0.0.5:4001", other));
}

// The connection is an MPI's, which greeted and says good-bye itself: either by us would end its
// conversation.
TEST_F(UnderHydra, a_guest_of_the_mpi_neither_greets_nor_says_good_bye) {
    std::vector<std::string> heard;
    {
        Hydra hydra;
        hydra.serve();
        start(0, hydra.theirs);
        ASSERT_EQ(by_pmi1(place, 20, PmiOwner::kMpi, reason), Outcome::kFound) << reason;
        EXPECT_EQ(text_of(*place.nonce), hydra.put);
        heard = hydra.heard;
    }
    std::vector<std::string> asked;
    asked.reserve(heard.size());
    for (const std::string& line : heard)
        asked.push_back(line.substr(4, line.find(' ') - 4));
    const std::vector<std::string> expected = {"get_my_kvsname", "put", "barrier_in", "get"};
    EXPECT_EQ(asked, expected);
}

TEST_F(UnderHydra, rank_0_publishes_a_nonce_of_its_own) {
    Hydra hydra;
    hydra.serve();
    start(0, hydra.theirs);
    ASSERT_EQ(by_pmi1(place, 20, PmiOwner::kThisLibrary, reason), Outcome::kFound) << reason;
    ASSERT_TRUE(place.nonce);
    EXPECT_NE(text_of(*place.nonce), "00112233445566778899aabbccddeeff");
    EXPECT_EQ(text_of(*place.nonce), hydra.put);
}

TEST_F(UnderHydra, one_that_is_silent_fails_in_time_with_advice) {
    Hydra hydra;
    hydra.serve(true);
    start(1, hydra.theirs);
    EXPECT_EQ(by_pmi1(place, 1, PmiOwner::kThisLibrary, reason), Outcome::kFailed);
    EXPECT_NE(reason.find("ULC_JOB"), std::string::npos) << reason;
}

TEST_F(UnderHydra, one_that_talks_rubbish_or_hangs_up_fails) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    start(1, ends[1]);
    ASSERT_EQ(::write(ends[0], "cmd=no_such_answer\n", 19), 19);
    EXPECT_EQ(by_pmi1(place, 1, PmiOwner::kThisLibrary, reason), Outcome::kFailed);
    ::close(ends[0]);
    EXPECT_EQ(by_pmi1(place, 1, PmiOwner::kThisLibrary, reason), Outcome::kFailed);
    ::close(ends[1]);
}

TEST_F(UnderHydra, ranks_and_sizes_that_do_not_fit_are_refused) {
    start(4, 0);
    EXPECT_EQ(by_pmi1(place, 1, PmiOwner::kThisLibrary, reason), Outcome::kFailed);
    start(1, 0);
    set("PMI_SIZE", "many");
    EXPECT_EQ(by_pmi1(place, 1, PmiOwner::kThisLibrary, reason), Outcome::kFailed);
}

}  // namespace
