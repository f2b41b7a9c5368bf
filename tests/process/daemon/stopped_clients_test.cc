// SPDX-License-Identifier: BSD-3-Clause
// An idle engine uses at most 2 % of a core, in whatever state its clients were stopped (SIGSTOP).
// Each state has two engines on a wire and a rank on each. Rank 1 brings itself into the state and
// stops; rank 0 does its part and pauses. All engines are measured in the same second.
//
// The cost of a nap is the machine's. So an engine may use its budget, or twice the share of an
// engine without clients that is measured with it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ulc.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "abi/attach.h"
#include "tests/process/daemon/local_users.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double kCpuShare = 0.02;
constexpr double kNoise = 2;
constexpr int kTries = 3;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kLarge = 64 << 10;

/// Ends the rank if a call failed: the test then finds it gone.
void need(int error) {
    if (error == ULC_OK) return;
    std::fprintf(stderr, "rank %d: %s: %s\n", getpid(), ulc_error_text(error),
                 ulc_last_error_text());
    _exit(1);
}

ulc_endpoint* open_endpoint(const std::string& socket) {
    ulc_endpoint* ep = nullptr;
    need(ulc_open(socket.c_str(), &ep));
    return ep;
}

ulc_endpoint* formed(const std::string& socket, std::uint16_t rank) {
    ulc_endpoint* ep = open_endpoint(socket);
    need(ulc_join_wait(ep, "stopped", rank, 2, 20 * kSecondNs));
    return ep;
}

/// Sends until the memory on the way has been full for a while. Requests are the caller's.
void send_until_full(ulc_endpoint* ep, std::uint16_t to, std::size_t length, bool polls) {
    auto* payload = static_cast<char*>(ulc_alloc(ep, length));
    if (payload == nullptr) _exit(2);
    std::memset(payload, 'x', length);
    static ulc_request requests[4096];
    unsigned sent = 0;
    for (auto full_since = Clock::now(); Clock::now() - full_since < 300ms;) {
        const int error = sent == std::size(requests)
                              ? int{ULC_ERR_AGAIN}
                              : ulc_send(ep, to, 1, payload, length, &requests[sent]);
        if (error == ULC_OK) {
            ++sent;
            full_since = Clock::now();
        } else if (error != ULC_ERR_AGAIN) {
            need(error);
        }
        if (polls) ulc_poll(ep);
    }
}

/// The two ranks of a state. Rank 1 returns when it is to be stopped, rank 0 when it is done.
struct State {
    const char* name;
    std::function<void(const std::string&)> rank_1;
    std::function<void(const std::string&)> rank_0;
};

const State kStates[] = {
    {"attached", [](const std::string& s) { open_endpoint(s); }, [](const std::string&) {}},
    {"in the handshake",
     [](const std::string& s) {
         abi::Hello hello{};
         hello.magic = abi::kHelloMagic;
         hello.abi_version = abi::kAbiVersion;
         hello.kind = abi::HelloKind::kAttach;
         abi::Offer offer;
         const int fd = connect_to(s);
         if (send(fd, &hello, sizeof hello, 0) < 0 || recv(fd, &offer, sizeof offer, 0) < 0)
             _exit(3);
     },
     [](const std::string&) {}},
    {"forming",
     [](const std::string& s) {
         ulc_endpoint* ep = open_endpoint(s);
         need(ulc_join(ep, "stopped", 1, 2, nullptr));
         ulc_poll(ep);
     },
     [](const std::string&) {}},
    {"formed", [](const std::string& s) { formed(s, 1); },
     [](const std::string& s) { formed(s, 0); }},
    {"asleep in a wait",
     [](const std::string& s) {
         ulc_endpoint* ep = formed(s, 1);
         static ulc_request request;
         static char octet;
         need(ulc_receive(ep, 0, 1, 0, &octet, 1, &request));
         static_cast<void>(ulc_wait_for(ep, &request, nullptr, kSecondNs / 2));
     },
     [](const std::string& s) { formed(s, 0); }},
    {"completion ring full", [](const std::string& s) { formed(s, 1); },
     [](const std::string& s) { send_until_full(formed(s, 0), 1, 8, true); }},
    {"receive memory full", [](const std::string& s) { formed(s, 1); },
     [](const std::string& s) { send_until_full(formed(s, 0), 1, kLarge, true); }},
    {"records behind a full completion ring",
     [](const std::string& s) {
         ulc_endpoint* ep = formed(s, 1);
         std::this_thread::sleep_for(700ms);  // rank 0 fills the ring
         send_until_full(ep, 0, 64, false);
     },
     [](const std::string& s) { send_until_full(formed(s, 0), 1, 8, true); }},
    {"in the midst of a long message",
     [](const std::string& s) {
         ulc_endpoint* ep = formed(s, 1);
         static const std::string payload(16 << 20, 'x');
         static ulc_request request;
         need(ulc_send(ep, 0, 1, payload.data(), payload.size(), &request));
         ulc_poll(ep);
     },
     [](const std::string& s) {
         ulc_endpoint* ep = formed(s, 0);
         static std::string buffer(16 << 20, 0);
         static ulc_request request;
         need(ulc_receive(ep, 1, 1, 0, buffer.data(), buffer.size(), &request));
         static_cast<void>(ulc_wait_for(ep, &request, nullptr, kSecondNs / 2));
     }},
    {"asked for a group", [](const std::string& s) { formed(s, 1); },
     [](const std::string& s) {
         ulc_endpoint* ep = formed(s, 0);
         static ulc_request request;
         const std::uint16_t both[] = {0, 1};
         need(ulc_group_create(ep, both, 2, &request));
         static_cast<void>(ulc_wait_for(ep, &request, nullptr, kSecondNs / 2));
     }},
    {"leaving",
     [](const std::string& s) {
         ulc_endpoint* ep = formed(s, 1);
         send_until_full(ep, 0, 8, true);
         static_cast<void>(ulc_leave(ep));
         ulc_poll(ep);
     },
     [](const std::string& s) { formed(s, 0); }},
};

class Scene {
public:
    explicit Scene(const State* state) : state_(state) {
        for (int station : {0, 1}) {
            engines_[station] = start_engine(
                shm_engine(scratch_ / "wire", socket(station), station), scratch_ / "engines.log");
        }
    }
    void start_ranks() {
        EXPECT_TRUE(eventually([&] {
            const std::string text = text_of(scratch_ / "engines.log");
            const std::size_t first = text.find("ready:");
            return first != std::string::npos &&
                   text.find("ready:", first + 1) != std::string::npos;
        })) << text_of(scratch_ / "engines.log");
        if (state_ == nullptr) return;
        ranks_[0] = run_child([&] {
            state_->rank_0(socket(0));
            raise(SIGSTOP);
            return 0;
        });
        ranks_[1] = run_child([&] {
            state_->rank_1(socket(1));
            raise(SIGSTOP);
            return 0;
        });
    }
    void expect_stopped() {
        for (const Process& rank : ranks_) {
            if (rank.pid() < 0) continue;
            int status = 0;
            EXPECT_EQ(waitpid(rank.pid(), &status, WUNTRACED), rank.pid());
            EXPECT_TRUE(WIFSTOPPED(status)) << name() << ": " << status;
        }
    }
    [[nodiscard]] const char* name() const {
        return state_ == nullptr ? "no client" : state_->name;
    }
    [[nodiscard]] pid_t engine(int station) const { return engines_[station].pid(); }

private:
    [[nodiscard]] std::string socket(int station) const {
        return scratch_ / (std::to_string(station) + ".sock");
    }
    const State* state_;
    Scratch scratch_;
    Process engines_[2];
    Process ranks_[2];
};

/// The share of a core of each engine, in the same second.
std::vector<double> shares_of(const std::vector<std::unique_ptr<Scene>>& scenes) {
    std::vector<double> shares;
    for (const auto& scene : scenes)
        for (int station : {0, 1})
            shares.push_back(-cpu_seconds(scene->engine(station)));
    const auto begun = Clock::now();
    std::this_thread::sleep_for(800ms);
    const std::chrono::duration<double> took = Clock::now() - begun;
    for (std::size_t n = 0; n < shares.size(); ++n)
        shares[n] = (shares[n] + cpu_seconds(scenes[n / 2]->engine(static_cast<int>(n % 2)))) /
                    took.count();
    return shares;
}

TEST(StoppedClients, cost_their_engine_no_more_than_a_nap) {
    std::vector<std::unique_ptr<Scene>> scenes;
    scenes.push_back(std::make_unique<Scene>(nullptr));
    for (const State& state : kStates)
        scenes.push_back(std::make_unique<Scene>(&state));
    for (const auto& scene : scenes)
        scene->start_ranks();
    for (const auto& scene : scenes)
        scene->expect_stopped();
    std::this_thread::sleep_for(200ms);
    std::vector<double> least(2 * scenes.size(), 1e9);
    double bound = kCpuShare;
    for (int n = 0; n<kTries&& * std::ranges::max_element(least)> bound; ++n) {
        const std::vector<double> shares = shares_of(scenes);
        bound = std::max({bound, kNoise * shares[0], kNoise * shares[1]});
        for (std::size_t i = 0; i < least.size(); ++i)
            least[i] = std::min(least[i], shares[i]);
    }
    for (std::size_t n = 0; n < scenes.size(); ++n) {
        std::printf("%-40s %5.2f %%, its peer's engine %5.2f %% (bound %.1f)\n", scenes[n]->name(),
                    least[2 * n + 1] * 100, least[2 * n] * 100, bound * 100);
        EXPECT_LE(least[2 * n], bound) << scenes[n]->name() << ", peer";
        EXPECT_LE(least[2 * n + 1], bound) << scenes[n]->name();
        EXPECT_GT(least[2 * n + 1], 0) << "nothing was measured";
    }
}

}  // namespace
}  // namespace ulc::test
