// SPDX-License-Identifier: BSD-3-Clause
// SIGKILL at random instants: of a client, of a client with a forked child that lives on, of an
// engine, of the switch. The peers are notified in time, and the next start works.
//
// Environment: ULC_KILLS (kills on each wire), ULC_KILL_SEED. tools/soak kills runs the long form.
#include <ulc.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "tests/process/cluster_of_two.h"

namespace ulc::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t kLimit = 30'000'000'000;  // ns
constexpr milliseconds kPeerDead{400};
constexpr milliseconds kToldIn = kPeerDead + milliseconds{1000};
constexpr milliseconds kToldAtLast{20'000};  ///< on a machine that is busy
constexpr int kBeforeForming = 100;  ///< added to the error of a client whose job never formed

/// Sent by a client when its job has formed.
struct Formed {
    pid_t child = 0;  ///< forked by it; 0: none
};

int exchange(ulc_endpoint* ep) {
    const auto other = static_cast<std::uint16_t>(1 - ulc_rank(ep));
    for (std::uint64_t n = 0;; ++n) {
        const std::size_t octets = n % 7 == 0 ? 50'000 : 64;
        std::vector<unsigned char> out(octets);
        std::vector<unsigned char> in(octets);
        ulc_request send;
        ulc_request receive;
        ulc_status status{};
        int error = ulc_receive(ep, other, n, UINT64_MAX, in.data(), octets, &receive);
        if (error == ULC_OK) error = ulc_send(ep, other, n, out.data(), octets, &send);
        if (error == ULC_OK) error = ulc_wait_for(ep, &receive, &status, kLimit);
        if (error == ULC_OK) error = status.error;
        if (error == ULC_OK) error = ulc_wait_for(ep, &send, &status, kLimit);
        if (error == ULC_OK) error = status.error;
        if (error != ULC_OK) return error;
    }
}

/// One job of two clients, one on each engine.
class Job {
public:
    Job(const ClusterOfTwo& cluster, const std::string& name, bool with_child) {
        for (const int rank : {0, 1}) {
            EXPECT_EQ(pipe2(pipes_[rank], O_CLOEXEC), 0);
            clients_[rank] = run_child([&, rank] {
                ulc_endpoint* ep = nullptr;
                int error = ulc_open(cluster.socket(rank).c_str(), &ep);
                if (error == ULC_OK)
                    error = ulc_join_wait(ep, name.c_str(), static_cast<std::uint16_t>(rank), 2,
                                          kLimit);
                if (error != ULC_OK) return kBeforeForming + error;
                Formed formed;
                if (with_child && (formed.child = fork()) == 0) {
                    for (;;)
                        pause();  // keeps every descriptor of its parent
                }
                if (write(pipes_[rank][1], &formed, sizeof formed) != sizeof formed) return 1;
                return exchange(ep);
            });
        }
        for (auto& ends : pipes_)
            close(ends[1]);
    }
    ~Job() {
        for (auto& client : clients_)
            client.kill_now();
        for (const pid_t child : children_)
            kill(child, SIGKILL);
        for (auto& ends : pipes_)
            close(ends[0]);
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// False: a client ended before.
    bool wait_until_formed() {
        bool all = true;
        for (auto& ends : pipes_) {
            Formed formed;
            if (read(ends[0], &formed, sizeof formed) != sizeof formed) {
                all = false;
            } else if (formed.child > 0) {
                children_.push_back(formed.child);
            }
        }
        return all;
    }
    Process& client(int rank) { return clients_[rank]; }

private:
    int pipes_[2][2] = {};
    Process clients_[2];
    std::vector<pid_t> children_;  ///< forked by the clients
};

enum class Victim { kClient, kClientWithChild, kEngine, kSwitch };

class Kills {
public:
    Kills(bool with_switch, unsigned seed) : cluster_(with_switch, kPeerDead), random_(seed) {}

    void run(int count) {
        for (int n = 0; n < count && !testing::Test::HasFailure(); ++n) {
            SCOPED_TRACE("kill " + std::to_string(n));
            one(n);
        }
        if (testing::Test::HasFailure()) return;
        cluster_.expect_clean_end();
        std::printf("%d kills; peers notified after %lld ms at most, %d times later than %lld ms\n",
                    count, static_cast<long long>(worst_.count()), late_,
                    static_cast<long long>(kToldIn.count()));
        EXPECT_LE(late_, 1 + count / 10);
    }

private:
    int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

    void one(int n) {
        const auto victim = static_cast<Victim>(below(cluster_.with_switch() ? 4 : 3));
        const int which = below(2);
        cluster_.start_missing();
        ASSERT_FALSE(testing::Test::HasFatalFailure());
        Job job(cluster_, "kill-" + std::to_string(n), victim == Victim::kClientWithChild);
        const bool early = victim != Victim::kClientWithChild && below(4) == 0;
        ASSERT_TRUE(early || job.wait_until_formed()) << "the next start did not work";
        usleep(static_cast<useconds_t>(below(30'000)));
        const auto killed = Clock::now();
        switch (victim) {
            case Victim::kClient:
            case Victim::kClientWithChild:
                job.client(which).kill_now();
                break;
            case Victim::kEngine:
                cluster_.kill_engine(which);
                break;
            case Victim::kSwitch:
                cluster_.kill_switch();
                return;  // its clients are ended, not notified
        }
        if (early) return;
        expect_notified(job.client(1 - which), killed, {ULC_ERR_PEER_DIED, ULC_ERR_PEER_LEFT});
        if (victim == Victim::kEngine)
            expect_notified(job.client(which), killed,
                            {ULC_ERR_NO_ENGINE, ULC_ERR_CLOSED, ULC_ERR_PEER_DIED});
    }

    void expect_notified(Process& client, Clock::time_point since, std::vector<int> errors) {
        std::optional<int> status;
        while (!(status = client.ended())) {
            ASSERT_LT(Clock::now() - since, kToldAtLast) << "a peer was not notified";
            usleep(1000);
        }
        const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - since);
        worst_ = std::max(worst_, took);
        if (took > kToldIn) ++late_;
        EXPECT_NE(std::find(errors.begin(), errors.end(), *status), errors.end())
            << "error " << *status;
    }

    ClusterOfTwo cluster_;
    std::mt19937 random_;
    milliseconds worst_{0};
    int late_ = 0;
};

TEST(Kill, on_shared_memory) {
    Kills(false, static_cast<unsigned>(number_of("ULC_KILL_SEED", 1)))
        .run(number_of("ULC_KILLS", 8));
}

TEST(Kill, over_a_switch) {
    Kills(true, static_cast<unsigned>(number_of("ULC_KILL_SEED", 2)))
        .run(number_of("ULC_KILLS", 4));
}

}  // namespace
}  // namespace ulc::test
