// SPDX-License-Identifier: BSD-3-Clause
// Ranks of two users of one engine exchange messages by the provider for libfabric. None reads the
// memory of another user's rank or shares memory with it, even if the kernel would allow it, and
// whatever a hostile rank announces. Ranks of one user do both. Needs root, else skipped.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <ulc.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "ofi/message_header.h"
#include "tests/process/apps/fabric_ranks.h"
#include "tests/process/apps/near_reads.h"
#include "tests/process/daemon/local_users.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

constexpr uid_t kRoot = 0;
constexpr uid_t kOne = 2001;
constexpr uid_t kOther = 2002;
constexpr std::size_t kLong = 100'000;  // is announced
constexpr std::size_t kShort = 1000;    // fits into a ring
constexpr std::uint64_t kTag = 5;
constexpr std::uint64_t kEndTag = 6;
const std::string kProvider = std::string(from_meson("ULC_BUILD_DIR")) + "/libulc/ofi";

/// Memory with one address in all processes of this test.
alignas(ofi::kDescriptorAlignment) char secret[kLong];

/// True if this process was made that user, may be read by others of the same, and ends with the
/// test. A change of the user undoes the last two.
bool live_as(uid_t uid) {
    return become(uid) && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

/// Both ranks send each other a message of this length, which consists of their number.
void exchange(std::size_t length) {
    const std::vector<char> out(length, static_cast<char>('0' + rank));
    std::vector<char> in(length);
    post(in.data(), length, kTag, 0, in.data(), f.peer);
    const iovec piece{const_cast<char*>(out.data()), length};
    const fi_msg_tagged message{&piece, nullptr, 1, f.peer, kTag, 0, nullptr, 0};
    until_taken([&] { return fi_tsendmsg(f.ep, &message, FI_COMPLETION); });
    next();
    next();
    CHECK(in == std::vector<char>(length, static_cast<char>('1' - rank)));
}

/// Exchanges more messages than the engine's answer and the proof of the sender take.
void exchange_all(const std::string& folder) {
    exchange_addresses(folder);
    meet();
    for (int i = 0; i < 20; ++i) {
        exchange(kLong);
        exchange(kShort);
        meet();
    }
}

/// A rank that sends what the provider would not.
class Hostile {
public:
    Hostile() {
        need(ulc_open(nullptr, &ep_));
        const std::string job = std::string(std::getenv("ULC_JOB")) + ".ofi.0";
        need(ulc_join_wait(ep_, job.c_str(), 1, 2, kWait));
    }
    ~Hostile() { ulc_close(ep_); }
    Hostile(const Hostile&) = delete;
    Hostile& operator=(const Hostile&) = delete;

    /// Announces a message at `piece`, or where the descriptor lists; both are in the receiver.
    /// Sends 'w' then, which the receiver asks for if it does not read. Returns its answer.
    ofi::PullAnswer announce(bool proven, const void* piece) {
        const auto descriptor = reinterpret_cast<std::uintptr_t>(secret);
        const ofi::MessageHeader header = ofi::MessageHeader::announcing(descriptor, false, proven);
        const ofi::Announcement body{kLong, 0, reinterpret_cast<std::uintptr_t>(piece)};
        std::string message(sizeof header + sizeof body, '\0');
        std::memcpy(message.data(), &header, sizeof header);
        std::memcpy(message.data() + sizeof header, &body, sizeof body);
        send(ofi::kTaggedBit | kTag, message);
        ofi::PullAnswer answer{};
        ulc_request request;
        need(ulc_receive(ep_, 0, ofi::answer_tag(descriptor), ~std::uint64_t{0}, &answer,
                         sizeof answer, &request));
        need(ulc_wait_for(ep_, &request, nullptr, kWait));
        if (answer.what != ofi::PullAnswer::kTaken)
            send(ofi::whole_message_tag(descriptor), plain(std::string(kLong, 'w')));
        return answer;
    }
    void end() {
        send(ofi::kTaggedBit | kEndTag, plain(""));
        need(ulc_leave_wait(ep_, kWait));
    }

private:
    static constexpr std::int64_t kWait = 30'000'000'000;

    static void need(int error) {
        if (error == ULC_OK) return;
        std::printf("the hostile rank: %s\n", ulc_last_error_text());
        std::exit(1);
    }
    static std::string plain(const std::string& payload) {
        const ofi::MessageHeader header = ofi::MessageHeader::plain();
        return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
    }
    void send(std::uint64_t tag, const std::string& message) {
        ulc_request request;
        need(ulc_send(ep_, 0, tag, message.data(), message.size(), &request));
        need(ulc_wait_for(ep_, &request, nullptr, kWait));
    }
    ulc_endpoint* ep_ = nullptr;
};

/// Announces until the receiver refuses for good, then claims that it had been accepted.
void be_hostile() {
    std::memset(secret, 'h', sizeof secret);
    Hostile rank_1;
    ofi::PullAnswer answer{};
    while (answer.what != ofi::PullAnswer::kNever) {
        answer = rank_1.announce(false, secret);
        CHECK(answer.what != ofi::PullAnswer::kTaken && answer.has_token == 0);
        if (failures > 0) break;
    }
    for (const void* piece :
         {static_cast<const void*>(secret), static_cast<const void*>(nullptr)}) {
        answer = rank_1.announce(true, piece);
        CHECK(answer.what == ofi::PullAnswer::kNever && answer.has_token == 0);
    }
    rank_1.end();
}

/// Takes messages of the hostile rank: they have what it sent.
void be_its_receiver() {
    std::memset(secret, 's', sizeof secret);
    std::vector<char> in(kLong);
    for (Entry entry{}; entry.tag != kEndTag;) {
        in.assign(kLong, '.');
        post(in.data(), kLong, 0, kTagMax, in.data(), FI_ADDR_UNSPEC);
        entry = next();
        CHECK(entry.tag == kEndTag || in == std::vector<char>(kLong, 'w'));
    }
}

struct NearUsers : testing::Test {
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
        Process visitor = run_child([] {
            return become(kOne) && access((kProvider + "/libulc-fi.so").c_str(), R_OK) == 0 ? 0 : 1;
        });
        if (visitor.wait() != 0) GTEST_SKIP() << "other users cannot read " << kProvider;
        scratch.let_others_in();
        ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
        ASSERT_EQ(chmod(folder.c_str(), 01777), 0);
        std::vector<std::string> arguments = shm_engine(scratch / "wire", socket);
        for (const uid_t uid : {kOne, kOther})
            arguments.insert(arguments.end(), {"--allow-uid", std::to_string(uid)});
        engine = start_engine(arguments, log);
        ASSERT_TRUE(eventually([&] {
            return text_of(log).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log);
        for (const auto& [name, value] : {std::pair{"FI_PROVIDER", std::string("ulc")},
                                          {"FI_PROVIDER_PATH", kProvider},
                                          {"ULC_ENGINE", socket},
                                          {"ULC_JOB", std::string("users")},
                                          {"ULC_SIZE", std::string("2")}})
            ASSERT_EQ(setenv(name, value.c_str(), 1), 0);
    }
    /// Starts a rank, whose exit code says whether all its checks held.
    static Process start_rank(uid_t uid, int number, const std::function<void()>& body) {
        return run_child([&] {
            rank = number;
            deadline = Clock::now() + std::chrono::seconds(60);
            CHECK(setenv("ULC_RANK", std::to_string(number).c_str(), 1) == 0 && live_as(uid));
            if (failures == 0) body();
            return failures == 0 ? 0 : 1;
        });
    }
    /// Both ranks exchange messages, and `check` holds then.
    void run_ranks(uid_t first, uid_t second, void (*check)()) const {
        const auto body = [&] {
            open_endpoint();
            exchange_all(folder);
            check();
            meet();
            close_endpoint();
        };
        Process one = start_rank(first, 0, body);
        Process other = start_rank(second, 1, body);
        EXPECT_EQ(one.wait(), 0);
        EXPECT_EQ(other.wait(), 0);
    }
    static void reaches_none() {
        CHECK(reads == 0);
        CHECK(refusals == 0);
        CHECK(!has_ring());
    }
    static void reaches_the_other() {
        CHECK(reads > 0);
        CHECK(refusals == 0);
        CHECK(has_ring());
    }
    /// A receiver of this user and a hostile rank of kOne.
    static void run_hostile(uid_t receiver_uid) {
        Process receiver = start_rank(receiver_uid, 0, [] {
            open_endpoint();
            be_its_receiver();
            reaches_none();
            close_endpoint();
        });
        Process hostile = start_rank(kOne, 1, be_hostile);
        EXPECT_EQ(hostile.wait(), 0);
        EXPECT_EQ(receiver.wait(), 0);
    }

    Scratch scratch;
    std::string folder = scratch / "addresses";
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "engine.log";
    Process engine;
};

TEST_F(NearUsers, ranks_of_one_user_read_and_share_memory) {
    const std::string scope = text_of("/proc/sys/kernel/yama/ptrace_scope");
    if (!scope.empty() && scope != "0\n")
        GTEST_SKIP() << "Yama forbids reads: ptrace_scope " << scope;
    run_ranks(kOne, kOne, reaches_the_other);
}

TEST_F(NearUsers, ranks_of_two_users_exchange_messages_by_the_engine) {
    run_ranks(kOne, kOther, reaches_none);
}

TEST_F(NearUsers, a_rank_of_root_reads_no_rank_of_a_user) {
    run_ranks(kRoot, kOne, reaches_none);  // the kernel would let it
}

TEST_F(NearUsers, announcements_of_a_hostile_rank_are_refused) { run_hostile(kOther); }

TEST_F(NearUsers, announcements_of_a_hostile_rank_are_refused_by_root) { run_hostile(kRoot); }

}  // namespace
}  // namespace ulc::test
