// SPDX-License-Identifier: BSD-3-Clause
// Run in two guests that count instructions (QEMU -icount shift=0: one is a nanosecond): measures
// the cost of a message of a stream both ways for the polling thread, alone and with IP on the same
// NIC.
//   nic_stream PCI-ADDRESS FOLDER     rank ULC_RANK of 2, through the embedded engine
//
// Turns alternate between without and with IP. Before turn k it waits for the file FOLDER/go<k>,
// after it makes FOLDER/done<k>; its caller starts and ends the IP. A turn has kStreams streams of
// each size: both ranks send kMessages at full speed; each byte and the order are checked. The
// count is the thread's own processor time of the rounds that moved a message, including system
// calls and interrupts, minus the reading of that clock. The number of rounds that move one
// message, or two, depends on how the two guests meet: those beyond one for each message sent and
// received are counted minus an empty round. The remaining difference between streams is some per
// cent, so there are many. Ends with 1 if a message is lost, wrong or out of order, or costs more
// than kCostMax times with IP what it costs without.
#include <ulc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr unsigned kMessages = 4000;  // messages of a stream
constexpr int kTurns = 6;             // the odd ones with IP
constexpr int kStreams = 30;          // streams of each size in a turn
constexpr double kCostMax = 1.05;
constexpr std::array<std::size_t, 2> kSizes{64, 1400};  // bytes
constexpr std::size_t kOctetsMax = 1400;
constexpr std::int64_t kLimit = 60'000'000'000;  // ns
constexpr std::int64_t kTurnLimit = 120'000'000'000;
constexpr unsigned kNapMicroseconds = 200;
constexpr std::uint64_t kStreamTag = 1;
constexpr std::uint64_t kMeetTag = 2;

[[noreturn]] void fail(const std::string& what) {
    std::printf("nic_stream: %s\n", what.c_str());
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

std::int64_t read_clock(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t own_time() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Returns the usual cost of `action`, including the reading of the clock.
template <typename Action>
std::int64_t usual_cost(Action action) {
    std::vector<double> costs;
    std::int64_t before = own_time();
    for (int i = 0; i < 1000; ++i) {
        action();
        const std::int64_t now = own_time();
        costs.push_back(static_cast<double>(now - before));
        before = now;
    }
    return static_cast<std::int64_t>(median(costs));
}

/// Source of the messages, each from a different place: cheap to make and to check, since both are
/// counted.
class Pattern {
public:
    Pattern() {
        for (std::size_t i = 0; i < octets_.size(); ++i)
            octets_[i] = static_cast<char>(i % kPlaces * 31);
    }
    void fill(char* data, unsigned n, std::size_t octets) const {
        std::memcpy(data, octets_.data() + n % kPlaces, octets);
        std::memcpy(data, &n, sizeof n);
    }
    [[nodiscard]] bool fits(const char* data, unsigned n, std::size_t octets) const {
        return std::memcmp(data, &n, sizeof n) == 0 &&
               std::memcmp(data + sizeof n, octets_.data() + n % kPlaces + sizeof n,
                           octets - sizeof n) == 0;
    }

private:
    static constexpr std::size_t kPlaces = 251;
    std::array<char, kOctetsMax + kPlaces> octets_{};
};

class Rank {
public:
    explicit Rank(const std::string& card) {
        if (ulc_open(("embedded:" + card).c_str(), &ep_) != ULC_OK ||
            ulc_join_wait(ep_, nullptr, ULC_RANK_ANY, 0, kLimit) != ULC_OK)
            fail(ulc_last_error_text());
        peer_ = static_cast<std::uint16_t>(1 - ulc_rank(ep_));
        clock_cost_ = usual_cost([] {});
        empty_cost_ = usual_cost([this] {
                          (void)ulc_poll(ep_);
                          (void)take(0, 0);
                      }) -
                      clock_cost_;
    }
    ~Rank() {
        ulc_leave_wait(ep_, kLimit);
        ulc_close(ep_);
    }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    /// Waits until the file is there, and polls the engine now and then.
    void wait_for(const std::string& file) {
        const std::int64_t until = read_clock(CLOCK_MONOTONIC) + kTurnLimit;
        while (access(file.c_str(), F_OK) != 0) {
            if (read_clock(CLOCK_MONOTONIC) > until) fail("no process makes " + file);
            (void)ulc_poll(ep_);
            usleep(kNapMicroseconds);
        }
    }

    /// Waits until both ranks are here.
    void meet() {
        const char nothing = 0;
        const std::int64_t until = read_clock(CLOCK_MONOTONIC) + kTurnLimit;
        bool sent = false;
        for (bool came = false; !sent || !came;) {
            (void)ulc_poll(ep_);
            sent = sent || accepted(ulc_send(ep_, peer_, kMeetTag, &nothing, 1, nullptr));
            const void* view = nullptr;
            ulc_status status;
            if (!came && ulc_take(ep_, peer_, kMeetTag, UINT64_MAX, &view, &status) == ULC_OK) {
                ulc_release(ep_, view);
                came = true;
            }
            if (read_clock(CLOCK_MONOTONIC) > until) fail("the other rank does not come");
            usleep(kNapMicroseconds);
        }
    }

    /// Sends and receives a stream; returns instructions a message, sent and received.
    double stream(std::size_t octets) {
        unsigned sent = 0;
        unsigned received = 0;
        std::int64_t cost = 0;
        std::int64_t rounds = 0;
        std::int64_t moved_at = own_time();
        std::int64_t before = moved_at;
        while (sent < kMessages || received < kMessages) {
            if (ulc_poll(ep_) < 0) fail("poll");
            const bool went = sent < kMessages && send(sent, octets);
            const bool came = received < kMessages && take(received, octets);
            sent += went ? 1 : 0;
            received += came ? 1 : 0;
            const std::int64_t now = own_time();
            if (went || came) {
                cost += now - before - clock_cost_;
                ++rounds;
                moved_at = now;
            } else if (now - moved_at > kLimit) {
                fail("lost: " + std::to_string(received) + " of " + std::to_string(kMessages) +
                     " came, " + std::to_string(sent) + " were sent");
            }
            before = now;
        }
        return static_cast<double>(cost - (rounds - kMessages) * empty_cost_) / kMessages;
    }

private:
    static bool accepted(int error) {
        if (error != ULC_OK && error != ULC_ERR_AGAIN) fail("send: " + std::to_string(error));
        return error == ULC_OK;
    }
    bool send(unsigned n, std::size_t octets) {
        std::array<char, kOctetsMax> data;
        pattern_.fill(data.data(), n, octets);
        return accepted(ulc_send(ep_, peer_, kStreamTag, data.data(), octets, nullptr));
    }
    bool take(unsigned n, std::size_t octets) {
        const void* view = nullptr;
        ulc_status status;
        if (ulc_take(ep_, peer_, kStreamTag, UINT64_MAX, &view, &status) != ULC_OK) return false;
        if (status.length != octets) fail("a message of another length");
        if (!pattern_.fits(static_cast<const char*>(view), n, octets))
            fail("message " + std::to_string(n) + " is wrong or out of order");
        ulc_release(ep_, view);
        return true;
    }

    ulc_endpoint* ep_ = nullptr;
    std::uint16_t peer_ = 0;
    std::int64_t clock_cost_ = 0;
    std::int64_t empty_cost_ = 0;  ///< cost of an empty round
    Pattern pattern_;
};

void make(const std::string& file) {
    std::FILE* made = std::fopen(file.c_str(), "w");
    if (made == nullptr) fail("cannot make " + file);
    std::fclose(made);
}

/// Returns the mean of the middle half: as insensitive to outliers as the median, and less
/// uncertain.
double middle(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto quarter = static_cast<std::ptrdiff_t>(values.size() / 4);
    const double sum = std::accumulate(values.begin() + quarter, values.end() - quarter, 0.0);
    return sum / static_cast<double>(values.size() - 2 * static_cast<std::size_t>(quarter));
}

/// Costs of one size: those of a message of each stream, without and with IP.
using Costs = std::array<std::vector<double>, 2>;

/// Prints the cost of IP for messages of each size, and of both together. Returns true if it is too
/// high.
bool too_dear(const std::array<Costs, kSizes.size()>& costs) {
    std::array<double, 2> sum{};
    for (std::size_t size = 0; size < kSizes.size(); ++size) {
        const double without = middle(costs[size][0]);
        const double with = middle(costs[size][1]);
        std::printf("%zu octets: %.0f instructions a message without IP, %.0f with, ratio %.3f\n",
                    kSizes[size], without, with, with / without);
        sum[0] += without;
        sum[1] += with;
    }
    std::printf("both: ratio %.3f, at most %.2f\n", sum[1] / sum[0], kCostMax);
    return sum[1] > kCostMax * sum[0];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::puts("usage: nic_stream PCI-ADDRESS FOLDER");
        return 2;
    }
    const std::string folder = argv[2];
    std::array<Costs, kSizes.size()> costs;
    Rank rank(argv[1]);
    make(folder + "/open");
    for (int turn = 0; turn < kTurns; ++turn) {
        rank.wait_for(folder + "/go" + std::to_string(turn));
        rank.meet();
        for (int n = 0; n < kStreams; ++n) {
            for (std::size_t size = 0; size < kSizes.size(); ++size)
                costs[size][turn % 2].push_back(rank.stream(kSizes[size]));
            rank.meet();
        }
        make(folder + "/done" + std::to_string(turn));
    }
    return too_dear(costs) ? 1 : 0;
}
